/**
 * Reads one partition batch by batch: settled data from its segment files, what follows from memory where the batch
 * still stands in the encode buffer, else from its slot. Shard thread only. Every batch from disk is checked before it
 * is handed out (R2); memory is what was checked or made here. A reader keeps its place between turns, so a long read
 * can be spread over many.
 */
import { BATCH_HEADER_BYTES, BatchView, batchBytesAt, batchStatus, checkBatch, isWhole } from '../wire/batch/view.ts'
import type { EncodeBuffer } from './encode-buffer.ts'
import type { PartitionLog } from './partition-log.ts'
import { SettledCursor, settledOutcomes } from './settled-cursor.ts'
import type { SettledWindow } from './settled-window.ts'
import type { SlotFiles } from './slot-files.ts'

/** Runs whose gaps are no larger are read in one piece (R1, measured). */
const GAP_BYTES = 16 * 1024
/** Bytes of one piece, unless a single batch is larger. */
const PIECE_BYTES = 256 * 1024

export const readOutcomes = { batch: 0, end: 1, damaged: 2 } as const
export type ReadOutcome = (typeof readOutcomes)[keyof typeof readOutcomes]

/** Counts of what reads touched, for the metrics. */
export interface ReadProbe {
  memoryBytes: number
  diskBytes: number
}

/** The pieces read from disk; shared by all readers of a shard, because a turn uses one at a time. */
export class ReadWindow {
  readonly files: SlotFiles
  readonly encoded: EncodeBuffer
  readonly settled: SettledWindow
  readonly probe: ReadProbe = { memoryBytes: 0, diskBytes: 0 }
  buffer = Buffer.allocUnsafeSlow(0)
  slot = -1
  start = 0
  length = 0

  constructor(files: SlotFiles, encoded: EncodeBuffer, settled: SettledWindow) {
    this.files = files
    this.encoded = encoded
    this.settled = settled
  }

  /** Makes slot bytes [position, position + bytes) present. @returns false at the end of the file. */
  load(slot: number, position: number, bytes: number): boolean {
    if (slot === this.slot && position >= this.start && position + bytes <= this.start + this.length) return true
    if (bytes > this.buffer.length) this.buffer = Buffer.allocUnsafeSlow(Math.max(bytes, PIECE_BYTES))
    this.slot = slot
    this.start = position
    // Nothing counts as present if the read is refused.
    this.length = 0
    this.length = this.files.file(slot).read('slot.read', this.buffer, 0, bytes, position)
    this.probe.diskBytes += this.length
    return this.length >= bytes
  }
}

export class LogReader {
  readonly #window: ReadWindow
  readonly #log: PartitionLog
  #run: number
  /** Layout of the log when `run` was found. */
  #layout: number
  readonly #settled: SettledCursor
  /** Place of the next batch within its run. */
  #at = 0
  /** Base offset that the next batch must have. */
  #expected: number
  /** The batch found: bytes[start, end), valid until the next call of anything on this shard's log. */
  bytes: Buffer
  start = 0
  end = 0
  /** The header of the batch found. */
  readonly view = new BatchView()
  /** First and last offset of the batch found, or of the damaged range. */
  firstOffset = 0
  lastOffset = 0

  /** @param offset first offset wanted; below the log's start offset it means the start. */
  constructor(window: ReadWindow, log: PartitionLog, offset: number) {
    this.#window = window
    this.#log = log
    this.#layout = log.layout
    const from = Math.max(offset, log.startOffset)
    this.#settled = new SettledCursor(window.settled, log, from)
    this.#run = Math.max(0, log.runs.find(from))
    this.#expected = log.runs.count > 0 ? log.runs.baseOffset(this.#run) : 0
    this.bytes = window.buffer
  }

  /** Steps to the next batch with a record at or after `offset`. */
  next(offset: number): ReadOutcome {
    if (this.#layout !== this.#log.layout) this.#findAgain(offset)
    const settled = this.#nextSettled(offset)
    return settled === readOutcomes.end ? this.#nextRun(offset) : settled
  }

  #nextSettled(offset: number): ReadOutcome {
    const cursor = this.#settled
    if (cursor.offset < offset) cursor.offset = offset
    const outcome = cursor.next(this.view)
    if (outcome === settledOutcomes.end) return readOutcomes.end
    this.#window.probe.diskBytes += this.#window.settled.takeDiskBytes()
    if (outcome === settledOutcomes.damaged) {
      this.firstOffset = cursor.damagedFirst
      this.lastOffset = cursor.damagedNext - 1
      return readOutcomes.damaged
    }
    this.bytes = cursor.bytes
    this.start = cursor.start
    this.end = cursor.end
    this.firstOffset = this.view.baseOffset
    this.lastOffset = this.view.lastOffset
    return readOutcomes.batch
  }

  /** Data moved to segment files: indexes of runs are others now. */
  #findAgain(offset: number): void {
    this.#layout = this.#log.layout
    this.#enter(Math.max(0, this.#log.runs.find(Math.max(offset, this.#log.settledEnd))))
  }

  #nextRun(offset: number): ReadOutcome {
    const runs = this.#log.runs
    while (this.#run < runs.count) {
      if (this.#at >= runs.bytes(this.#run)) {
        this.#enter(this.#run + 1)
        continue
      }
      if (runs.isQuarantined(this.#run)) return this.#damaged(offset)
      if (!this.#find()) {
        runs.quarantine(this.#run)
        return this.#damaged(offset)
      }
      this.#at += this.end - this.start
      this.#expected = this.lastOffset + 1
      if (this.lastOffset >= offset) return readOutcomes.batch
    }
    return readOutcomes.end
  }

  #enter(run: number): void {
    this.#run = run
    this.#at = 0
    if (run < this.#log.runs.count) this.#expected = this.#log.runs.baseOffset(run)
  }

  /** Reports the damaged run if it holds something at or after `offset`, and steps behind it. */
  #damaged(offset: number): ReadOutcome {
    const runs = this.#log.runs
    this.firstOffset = Math.max(runs.baseOffset(this.#run), offset)
    this.#enter(this.#run + 1)
    this.lastOffset = (this.#run < runs.count ? runs.baseOffset(this.#run) : this.#log.highWatermark) - 1
    return this.lastOffset >= offset ? readOutcomes.damaged : this.#nextRun(offset)
  }

  /** Finds the batch at the present place. @returns false if what stands there is not the batch that must. */
  #find(): boolean {
    const runs = this.#log.runs
    const memoryAt = runs.memoryAt(this.#run)
    const index = memoryAt < 0 ? -1 : this.#window.encoded.indexOf(memoryAt)
    if (index >= 0) {
      this.bytes = this.#window.encoded.bytes
      this.start = index + this.#at
      this.end = this.start + batchBytesAt(this.bytes, this.start)
      this.#window.probe.memoryBytes += this.end - this.start
    } else if (!this.#load()) {
      return false
    }
    if (!isWhole(this.view.open(this.bytes, this.start, this.end))) return false
    this.firstOffset = this.view.baseOffset
    this.lastOffset = this.view.lastOffset
    // The first 21 bytes of a batch are outside its CRC: offset and epoch are compared with what the log knows (R2).
    return this.firstOffset === this.#expected && this.view.leaderEpoch === this.#log.epochAt(this.firstOffset)
  }

  #load(): boolean {
    const runs = this.#log.runs
    const slot = runs.slot(this.#run)
    const position = runs.position(this.#run) + this.#at
    const runBytes = runs.bytes(this.#run) - this.#at
    const window = this.#window
    if (!this.#isLoaded(slot, position, BATCH_HEADER_BYTES))
      window.load(slot, position, this.#pieceBytes(position, runBytes))
    if (!this.#isLoaded(slot, position, BATCH_HEADER_BYTES)) return false
    const bytes = batchBytesAt(window.buffer, position - window.start)
    if (bytes < BATCH_HEADER_BYTES || bytes > runBytes) return false
    if (!window.load(slot, position, bytes)) return false
    this.bytes = window.buffer
    this.start = position - window.start
    this.end = this.start + bytes
    return checkBatch(this.bytes, this.start, this.end) === batchStatus.ok
  }

  #isLoaded(slot: number, position: number, bytes: number): boolean {
    const window = this.#window
    return slot === window.slot && position >= window.start && position + bytes <= window.start + window.length
  }

  /** Bytes worth reading at once: the rest of this run and those behind it that lie close. */
  #pieceBytes(position: number, runBytes: number): number {
    const runs = this.#log.runs
    const slot = runs.slot(this.#run)
    let end = position + runBytes
    for (let run = this.#run + 1; run < runs.count; run++) {
      const runEnd = runs.position(run) + runs.bytes(run)
      if (runs.slot(run) !== slot || runs.position(run) - end > GAP_BYTES || runEnd - position > PIECE_BYTES) break
      end = runEnd
    }
    return Math.min(end - position, PIECE_BYTES)
  }
}
