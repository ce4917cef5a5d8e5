/**
 * Opens batches for the compactor and says of which the records can be told apart. Owned by one pass; any one thread.
 * Batches were stored as producers sent them, so nothing in their records is believed before check() has walked them.
 */
import { assert } from '../../base/assert.ts'
import { CONTROL_BIT, TRANSACTIONAL_BIT } from '../../wire/batch/layout.ts'
import { BatchRecords } from '../../wire/batch/records.ts'
import { BatchView, batchStatus, isWhole, timestampOf } from '../../wire/batch/view.ts'
import type { SourceBatch } from './pass.ts'

export class BatchReader {
  readonly view = new BatchView()
  readonly #records = new BatchRecords()
  /** The open batch, and the one that the records are of. */
  #batch: SourceBatch | null = null
  #read: SourceBatch | null = null
  /** Before the first record after readRecords(); its places are in `bytes`. */
  readonly cursor = this.#records.cursor

  /** The records of the open batch, inflated if they were compressed: from recordsStart on. */
  get bytes(): Buffer {
    return this.#records.bytes
  }

  get isCompressed(): boolean {
    return this.view.codec !== 0
  }

  get recordsStart(): number {
    return this.#records.start
  }

  /**
   * Whether a pass may take records out of the batch. Not so, and the batch is *opaque*, kept whole:
   *
   *   damaged inside, or not to be inflated  its records cannot be read
   *   offsets that fall or exceed the last one, times beyond exact numbers   they cannot be written again
   *   transactional, control                 a record of an aborted transaction must not push out a committed one
   *
   * @cost a walk over the records.
   */
  check(batch: SourceBatch): boolean {
    const { view, cursor } = this
    if (!isWhole(view.open(batch.bytes, batch.start, batch.end)) || view.end !== batch.end) return false
    if ((view.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) !== 0) return false
    this.#openRecords(batch)
    while (cursor.next());
    return cursor.status === batchStatus.ok
  }

  /** Opens the header of a batch that check() found good. */
  open(batch: SourceBatch): void {
    this.view.open(batch.bytes, batch.start, batch.end)
    this.#batch = batch
  }

  /** Puts the cursor before the first record of the open batch; inflates it unless it was looked at last. */
  readRecords(): void {
    assert(this.#batch !== null, 'a batch is opened before its records')
    if (this.#batch === this.#read) this.#records.rewind(this.view)
    else this.#openRecords(this.#batch)
  }

  #openRecords(batch: SourceBatch): void {
    this.#records.open(batch.bytes, this.view)
    this.#read = batch
  }

  /** Time of the record that the cursor stands at, Unix ms. */
  timestampMs(): number {
    return timestampOf(this.view, this.cursor)
  }
}
