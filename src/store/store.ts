/** The store as the main thread sees it. One transactional database in a thread of its own; see store-client.ts. */
import type { StoreChange, StoreImage } from '../control/store-image.ts'

export interface Store {
  /** State when it was opened. Main keeps its own copy up to date by applying what it committed. */
  readonly image: StoreImage
  /**
   * Makes the changes durable, all or none; commits that wait together share one sync, in order of the calls.
   * Rejects with BrokerError DISK_FULL or INTERNAL; then nothing of them is stored.
   */
  commit(changes: readonly StoreChange[]): Promise<void>
  /** Finishes what was asked, closes the database, gives up the directory lock. */
  close(): Promise<void>
}
