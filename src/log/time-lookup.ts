/**
 * Finds the first record at or after a time, over both layers of a partition: what HTTP answers for `timestamp_ms`, and
 * Kafka for ListOffsets. Shard thread only. Works in steps and keeps its place between them, so that a long search never
 * keeps produce waiting (R1); data may be appended, settled and dropped meanwhile, for its place is an offset.
 *
 * Times come from clients as well and need not grow with offsets: nothing is passed over because of what lies around it.
 *
 *   settled   extents by the greatest timestamp of their blocks, then the first block that has one late enough, then its
 *             batches and records. What is passed over here rests on entries whose bytes were not looked at; what is
 *             answered was checked (R2). A segment's receive times are no bound: clients may give later times.
 *   slots     halving, while all times there are the broker's own (PartitionLog.hasOrderedTimes); else batch by batch.
 *
 * Damage is passed over: the answer is the first record that can be read. Of a compressed batch that cannot be inflated the
 * answer is its first offset, at most a batch too early, with the greatest timestamp in it.
 */
import { BatchRecords } from '../wire/batch/records.ts'
import { batchStatus, timestampOf } from '../wire/batch/view.ts'
import { LogReader, readOutcomes, type ReadWindow } from './log-reader.ts'
import type { PartitionLog } from './partition-log.ts'
import { firstBehind } from './settled-cursor.ts'

/** A record by its time. */
export interface TimedOffset {
  readonly offset: number
  /** Unix ms. */
  readonly timestampMs: number
}

export class TimeLookup {
  readonly #window: ReadWindow
  readonly #log: PartitionLog
  readonly #timestampMs: number
  readonly #records = new BatchRecords()
  /** Every record below it is too early, or cannot be read. */
  #offset = 0
  /** Reads batches one after another; null: the next one is somewhere else. */
  #reader: LogReader | null = null
  /** Settled offsets below it are read batch by batch: a block that has a late timestamp. */
  #scanEnd = 0
  /** Base offset of the first run in the slots that is known to be late enough. */
  #lateRun = Number.POSITIVE_INFINITY
  /** Where the run that is looked at next while halving can be read, if its beginning was damaged; −1: at its beginning. */
  #probeAt = -1
  #found: TimedOffset | null = null

  /** @param timestampMs a safe integer; may be negative. */
  constructor(window: ReadWindow, log: PartitionLog, timestampMs: number) {
    this.#window = window
    this.#log = log
    this.#timestampMs = timestampMs
  }

  /** After step() returned true. null: no record that can be read is so late. */
  get found(): TimedOffset | null {
    return this.#found
  }

  /**
   * One piece of work. @returns true when the search is over. @throws DiskError
   * @cost at most one piece of 256 KiB (or one batch, if larger) is read and checked, and one batch inflated, or the entries of one extent:
   * 8 KiB for each MiB of it, the first time; they are kept, and the greatest timestamp for longer.
   */
  step(): boolean {
    const log = this.#log
    if (this.#offset < log.startOffset) this.#moveTo(log.startOffset)
    if (this.#offset >= log.highWatermark) return true
    if (this.#offset < log.settledEnd) {
      if (this.#offset >= this.#scanEnd) return this.#skipSettled()
    } else if (log.hasOrderedTimes) {
      const run = this.#middleRun()
      if (run >= 0) return this.#halve(run)
    }
    return this.#scan()
  }

  /** The next batch is not the one behind the last. */
  #moveTo(offset: number): false {
    this.#offset = offset
    this.#reader = null
    return false
  }

  /** Passes over what the blocks of the extent at the present offset say is too early. */
  #skipSettled(): boolean {
    const partition = this.#log.settled
    if (partition === null) return false
    const segment = firstBehind(partition.segments, this.#offset)
    const extent = segment === null ? null : firstBehind(segment.extents, this.#offset)
    if (segment === null || extent === null) return this.#moveTo(segment?.nextOffset ?? partition.nextOffset)
    const { settled, probe } = this.#window
    const isEarly = settled.timestampMax(partition, segment, extent) < this.#timestampMs
    const table = isEarly ? null : settled.place(partition, segment, extent).table
    probe.diskBytes += settled.takeDiskBytes()
    const block = table === null ? -1 : table.findTime(this.#timestampMs, Math.max(0, table.find(this.#offset)))
    if (table === null || block < 0) return this.#moveTo(extent.nextOffset)
    this.#scanEnd = block + 1 < table.count ? table.firstOffset(block + 1) : extent.nextOffset
    return this.#moveTo(Math.max(this.#offset, table.firstOffset(block)))
  }

  /** The run half-way between those known to be too early and those known to be late enough; −1: none is between them. */
  #middleRun(): number {
    const { runs } = this.#log
    const first = Math.max(0, runs.find(this.#offset))
    const end = this.#lateRun === Number.POSITIVE_INFINITY ? runs.count : runs.find(this.#lateRun - 1) + 1
    return first + 1 < end ? (first + end) >>> 1 : -1
  }

  /** One look at a run: all of it has one time. Only a time that was read is believed; the end only steers. */
  #halve(run: number): false {
    const { runs } = this.#log
    const baseOffset = runs.baseOffset(run)
    const at = Math.max(this.#probeAt, baseOffset)
    this.#probeAt = -1
    const reader = at < Math.min(this.#lateRun, this.#log.highWatermark) ? this.#open(at) : null
    const outcome = reader?.next(at) ?? readOutcomes.end
    if (reader !== null && outcome === readOutcomes.damaged) this.#probeAt = reader.lastOffset + 1
    else if (reader !== null && outcome === readOutcomes.batch && reader.view.maxTimestampMs < this.#timestampMs)
      this.#moveTo(reader.lastOffset + 1)
    else this.#lateRun = baseOffset
    return false
  }

  #open(offset: number): LogReader {
    return new LogReader(this.#window, this.#log, offset)
  }

  /** Looks at the next batch. */
  #scan(): boolean {
    this.#reader ??= this.#open(this.#offset)
    const reader = this.#reader
    const outcome = reader.next(this.#offset)
    if (outcome === readOutcomes.end) return true
    if (outcome === readOutcomes.batch && reader.view.maxTimestampMs >= this.#timestampMs) {
      const isFound = this.#walk(reader)
      this.#records.close()
      if (isFound) return true
    }
    this.#offset = reader.lastOffset + 1
    return false
  }

  /** Looks at the records of the batch that the reader stands on. @returns true if one is late enough. */
  #walk({ bytes, view }: LogReader): boolean {
    const { cursor } = this.#records
    this.#records.open(bytes, view)
    while (cursor.next()) {
      const offset = view.baseOffset + cursor.offsetDelta
      const timestampMs = timestampOf(view, cursor)
      if (offset < this.#offset || timestampMs < this.#timestampMs) continue
      this.#found = { offset, timestampMs }
      return true
    }
    if (cursor.status !== batchStatus.compressed || view.recordCount === 0) return false
    this.#found = { offset: Math.max(this.#offset, view.baseOffset), timestampMs: view.maxTimestampMs }
    return true
  }
}
