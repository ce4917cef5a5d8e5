/**
 * The records of batches, inflated where they are compressed. Pure, any thread; made once and opened on batch after batch.
 */
import { limits } from '../../model/limits.ts'
import { inflate } from '../compression/inflate.ts'
import { RecordCursor, type BatchView } from './view.ts'

const NONE = Buffer.alloc(0)

export class BatchRecords {
  /** Before the first record after open(). Its status is `compressed` if the records cannot be inflated. */
  readonly cursor = new RecordCursor()
  /** What the cursor's places are in: the batch's own bytes, or what was inflated. */
  bytes: Buffer = NONE
  /** Where the first record begins in them. */
  start = 0
  /** What the last open() inflated, at most: its cost. 0: the batch is not compressed. */
  inflatedBytes = 0

  /**
   * Opens the batch that `view` has opened on the same bytes and found whole; they are borrowed until the last next().
   * @param limit of what is inflated.
   */
  open(bytes: Buffer, view: BatchView, limit: number = limits.inflatedBatchBytesMax): void {
    // Two batches inflated at once would be twice the memory.
    this.close()
    const { codec } = view
    const inflated = codec === 0 ? null : inflate(codec, bytes, view.recordsStart, view.end, limit)
    this.bytes = inflated ?? bytes
    this.start = inflated === null ? view.recordsStart : 0
    this.inflatedBytes = codec === 0 ? 0 : (inflated?.length ?? limit)
    if (inflated === null) this.cursor.open(bytes, view)
    else this.cursor.openInflated(inflated, view)
  }

  /** Lets the records go, which may be large where they were inflated; the cursor's status and the cost stay. */
  close(): void {
    this.bytes = NONE
    this.start = 0
    this.cursor.close()
  }

  /** Goes back before the first record of the batch opened last. @param view as open() had it. */
  rewind(view: BatchView): void {
    if (this.inflatedBytes > 0 && this.start === 0) this.cursor.openInflated(this.bytes, view)
    else this.cursor.open(this.bytes, view)
  }
}
