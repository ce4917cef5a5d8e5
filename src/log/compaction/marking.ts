/**
 * Which records of the given segments a pass drops. Filled by mark-records.ts, read by the sweeps after it. Owned by one
 * pass; any one thread.
 *
 * Records are named by *ordinals*, not offsets: the n-th readable record of all segments together. Ordinals have no holes,
 * so one bit a record is enough however sparse earlier passes have made the offsets (100 million records: 12 MiB). They
 * are the same in every sweep because sealed segments do not change, which is asserted.
 */
import { assert } from '../../base/assert.ts'
import { BatchReader } from './batch-reader.ts'
import { Marks } from './marks.ts'
import type { SourceBatch } from './pass.ts'

export class Marking {
  /** Ordinals of the records that go. */
  readonly dropped = new Marks()
  /** Ordinals of the batches whose records nobody looks at. */
  readonly opaque = new Marks()
  /** Of the dropped ones: tombstones that went for their age. */
  tombstonesDropped = 0
  /** Ordinals with which each segment begins, and behind them the end of the last. Known as far as segments were walked. */
  readonly starts: { readonly record: number; readonly batch: number }[] = [{ record: 0, batch: 0 }]

  /** Whether the segment of that index loses records. */
  hasDrops(segment: number): boolean {
    return this.dropped.hasAny(this.startOf(segment).record, this.startOf(segment + 1).record)
  }

  startOf(segment: number): { readonly record: number; readonly batch: number } {
    const start = this.starts[segment]
    assert(start !== undefined, 'a segment must have been walked once before its ordinals are asked for')
    return start
  }
}

/** Steps through the batches of one segment that was walked before, knowing the ordinals. */
export class SegmentWalk {
  readonly reader: BatchReader
  /** Ordinals of the records of the batch: [firstRecord, nextRecord). None if it is opaque. */
  firstRecord: number
  nextRecord: number
  readonly #marking: Marking
  readonly #segment: number
  #batch: number

  constructor(marking: Marking, segment: number, reader: BatchReader) {
    this.#marking = marking
    this.#segment = segment
    this.reader = reader
    const start = marking.startOf(segment)
    this.firstRecord = start.record
    this.nextRecord = start.record
    this.#batch = start.batch
  }

  /**
   * Goes on to the segment's next batch.
   *
   * @returns false if it is opaque; otherwise the reader has it open, and its first record is `firstRecord`.
   */
  step(batch: SourceBatch): boolean {
    this.firstRecord = this.nextRecord
    const isOpaque = this.#marking.opaque.has(this.#batch)
    this.#batch++
    if (isOpaque) return false
    this.reader.open(batch)
    this.nextRecord += this.reader.view.recordCount
    return true
  }

  /** As step(). @returns whether the batch loses records. */
  stepToDrops(batch: SourceBatch): boolean {
    return this.step(batch) && this.#marking.dropped.hasAny(this.firstRecord, this.nextRecord)
  }

  /** To be called behind the segment's last batch. */
  end(): void {
    const next = this.#marking.startOf(this.#segment + 1)
    const isSame = this.nextRecord === next.record && this.#batch === next.batch
    assert(isSame, 'a sealed segment must hold the same batches each time it is read')
  }
}
