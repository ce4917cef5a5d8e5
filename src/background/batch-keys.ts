/** What the job `checkKeys` is given and answers: whether the records of a client's batch have keys. */
import type { KeyVerdict } from '../wire/batch/batch-keys.ts'

/** One batch, which goes to the thread with the job, and comes back. */
export interface CheckKeysValue {
  readonly batch: ArrayBuffer
}

export interface CheckKeysResult {
  readonly verdict: KeyVerdict
  readonly batch: ArrayBuffer
}
