/**
 * Opens batches for the compactor and says of which the records can be told apart. Owned by one pass; any one thread.
 * Batches were stored as producers sent them, so nothing in their records is believed before check() has walked them.
 */
import { CONTROL_BIT, LOG_APPEND_TIME_BIT, TRANSACTIONAL_BIT } from '../../wire/batch/layout.ts'
import { BatchView, RecordCursor, batchStatus } from '../../wire/batch/view.ts'
import type { SourceBatch } from './pass.ts'

export class BatchReader {
  readonly view = new BatchView()
  /** At the first record after open(). */
  readonly cursor = new RecordCursor()

  /**
   * Whether a pass may take records out of the batch. Not so, and the batch is *opaque*, kept whole:
   *
   *   compressed, or damaged inside       its records cannot be read
   *   offsets that fall or exceed the last one, times beyond exact numbers   they cannot be written again
   *   transactional, control              a record of an aborted transaction must not push out a committed one
   *
   * @cost a walk over the records.
   */
  check(batch: SourceBatch): boolean {
    const { view, cursor } = this
    if (view.open(batch.bytes, batch.start, batch.end) !== batchStatus.ok || view.end !== batch.end) return false
    if ((view.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) !== 0) return false
    cursor.open(batch.bytes, view)
    let offsetDeltaMin = 0
    while (cursor.next()) {
      if (cursor.offsetDelta < offsetDeltaMin || cursor.offsetDelta > view.lastOffsetDelta) return false
      if (!Number.isSafeInteger(view.baseTimestampMs + cursor.timestampDeltaMs)) return false
      offsetDeltaMin = cursor.offsetDelta + 1
    }
    return cursor.status === batchStatus.ok
  }

  /** Opens a batch that check() found good. */
  open(batch: SourceBatch): void {
    this.view.open(batch.bytes, batch.start, batch.end)
    this.cursor.open(batch.bytes, this.view)
  }

  /** Time of the record that the cursor stands at, Unix ms. */
  timestampMs(): number {
    const { view } = this
    if ((view.attributes & LOG_APPEND_TIME_BIT) !== 0) return view.maxTimestampMs
    return view.baseTimestampMs + this.cursor.timestampDeltaMs
  }
}
