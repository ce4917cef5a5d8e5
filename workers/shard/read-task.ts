/**
 * One read in progress on a shard: steps through batches within a budget of bytes, so that a long read never keeps
 * produce waiting (R1). Knows what to answer; the loop sends it.
 */
import { RECORD_OVERHEAD_BYTES } from '../../src/model/limits.ts'
import { readFormats, type ReadFormat } from '../../src/model/requests.ts'
import { readOutcomes, type LogReader } from '../../src/log/log-reader.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { BatchRecords } from '../../src/wire/batch/records.ts'
import { batchStatus, timestampOf } from '../../src/wire/batch/view.ts'
import { AnsweredRecord } from './answer-buffer.ts'
import { saysSkipped, type AnswerWriter } from './answers.ts'
import type { BatchAnswer } from './batch-answer.ts'

export interface ReadWanted {
  readonly requestId: number
  readonly format: ReadFormat
  readonly partition: number
  /** u64; beyond 2^53 it can only be behind the end. */
  readonly offset: bigint
  /** Where the partition begins is meant, whatever stands in offset below that: to begin there skips nothing. */
  readonly isFromStart: boolean
  readonly maxRecords: number
  readonly maxBytes: number
}

/** Where answers are gathered; of one read at a time. */
export interface Answers {
  readonly records: AnswerWriter
  readonly batches: BatchAnswer
}

export const stepOutcomes = { more: 0, done: 1, damaged: 2 } as const
export type StepOutcome = (typeof stepOutcomes)[keyof typeof stepOutcomes]

export class ReadTask {
  readonly wanted: ReadWanted
  readonly #log: PartitionLog
  readonly #reader: LogReader
  readonly #answer: AnswerWriter
  readonly #batches: BatchAnswer
  readonly #records = new BatchRecords()
  readonly #record = new AnsweredRecord()
  /** First offset still wanted. */
  #offset: number
  /** Records in the answer, or batches. */
  #count = 0
  #recordCount = 0
  /** What max_bytes counts. */
  #sizeBytes = 0
  readonly #isOfBatches: boolean
  /** Batches are asked for by an offset that is gone: who asks learns where the partition begins. */
  readonly #isBelowStart: boolean
  /** The answer can say what was passed over. */
  readonly #saysSkipped: boolean
  /** When its time to wait for cold storage is over, monotonic ms; null: it has not waited. */
  coldEndMs: number | null = null
  /** First and last offset of what is damaged, if any of that was met: it is passed over, or ended the read. −1: none. */
  damagedFirst = -1
  damagedLast = -1
  /** It met bytes that are not as they were written. */
  metDamagedBytes = false
  /** It met records that a client sent so that nobody can decode them. */
  metUndecodable = false
  /** It met records that a client sent compressed and that are larger than a record may be. */
  metTooLarge = false
  /** What the last step inflated. */
  inflatedBytes = 0
  readonly #recordBytesMax: number
  /** A record that is too large was met, and the answer has no place to say so. */
  #isRefused = false

  /** @param recordBytesMax of key, value and headers of a record that comes out of a compressed batch. */
  constructor(wanted: ReadWanted, log: PartitionLog, reader: LogReader, answers: Answers, recordBytesMax: number) {
    this.wanted = wanted
    this.#recordBytesMax = recordBytesMax
    this.#log = log
    this.#reader = reader
    this.#answer = answers.records
    this.#batches = answers.batches
    const isBelow = wanted.offset < BigInt(log.startOffset)
    this.#isBelowStart = isBelow && wanted.format === readFormats.batches
    this.#offset = Math.max(Number(wanted.offset), log.startOffset)
    this.#record.partition = wanted.partition
    this.#isOfBatches = wanted.format === readFormats.batches
    this.#saysSkipped = saysSkipped(wanted.format)
    if (this.#isOfBatches) answers.batches.begin()
    else answers.records.begin(wanted.format, wanted.maxBytes)
    // What is below the start is above no end: the number is exact.
    if (isBelow && !wanted.isFromStart) this.#skip(Number(wanted.offset))
  }

  get handle(): number {
    return this.#log.handle
  }

  /** Ends the answer with what it has. @returns false: it has no record, and cannot end. */
  endEarly(): boolean {
    if (this.#count === 0) return false
    this.#finish()
    return true
  }

  get recordCount(): number {
    return this.#recordCount
  }

  /** Key, value and header bytes of the records; of whole batches, all of their bytes. */
  get payloadBytes(): number {
    return this.#isOfBatches ? this.#sizeBytes : this.#sizeBytes - RECORD_OVERHEAD_BYTES * this.#count
  }

  /** Reads up to about `budgetBytes`, what is inflated included. After done the answer stands finished in the writer. */
  step(budgetBytes: number): StepOutcome {
    this.inflatedBytes = 0
    if (this.#isBelowStart) return this.#finish()
    // Between two turns retention may drop what was next; an answer that has records ends before such a gap.
    if (this.#offset < this.#log.startOffset) {
      if (this.#count > 0 || this.#isOfBatches) return this.#finish()
      const from = this.#offset
      this.#offset = this.#log.startOffset
      if (!this.wanted.isFromStart) this.#skip(from)
    }
    let left = budgetBytes
    while (left > 0) {
      const outcome = this.#reader.next(this.#offset)
      if (outcome === readOutcomes.damaged) {
        this.metDamagedBytes ||= this.#count === 0
        return this.#passOver(this.#reader.firstOffset, this.#reader.lastOffset)
      }
      if (outcome === readOutcomes.end) {
        // Nothing is left up to the end: a gap that compaction left there must not hold a poller (5.6).
        this.#offset = Math.max(this.#offset, this.#log.highWatermark)
        return this.#finish()
      }
      left -= this.#reader.end - this.#reader.start
      const isFull = this.#isOfBatches ? !this.#takeWhole() : !this.#takeBatch()
      // Before anything else is inflated, and before the read waits for its next turn.
      this.#records.close()
      this.#record.clear()
      left -= this.#records.inflatedBytes
      this.inflatedBytes += this.#records.inflatedBytes
      // A batch whose records cannot be decoded is passed over like a damaged one, and said so.
      if (this.#records.cursor.status !== batchStatus.ok) {
        this.metUndecodable ||= this.#count === 0
        return this.#passOver(this.#reader.firstOffset, this.#reader.lastOffset)
      }
      if (this.#isRefused) return stepOutcomes.damaged
      if (isFull) return this.#finish()
    }
    return stepOutcomes.more
  }

  /** Takes the batch as it is. @returns false when a limit is reached. */
  #takeWhole(): boolean {
    const { view, bytes, start, end } = this.#reader
    const isOver = this.#sizeBytes + end - start > this.wanted.maxBytes
    if (this.#count > 0 && isOver) return false
    if (!this.#batches.add(bytes, start, end)) return false
    this.#count++
    this.#recordCount += view.recordCount
    this.#sizeBytes += end - start
    this.#offset = view.lastOffset + 1
    return !isOver
  }

  /** @returns false when a limit is reached. */
  #takeBatch(): boolean {
    const { view } = this.#reader
    const record = this.#record
    this.#records.open(this.#reader.bytes, view)
    const { cursor, bytes } = this.#records
    while (cursor.next()) {
      record.offset = view.baseOffset + cursor.offsetDelta
      if (record.offset < this.#offset) continue
      record.timestampMs = timestampOf(view, cursor)
      record.place(bytes, cursor)
      if (this.#isTooLarge) {
        // What is in the answer goes first.
        if (this.#count > 0) return false
        this.metTooLarge = true
        this.#isRefused = this.#passOver(record.offset, record.offset) === stepOutcomes.damaged
        continue
      }
      // All that are too large in a row are told in one.
      if (this.#isRefused) return false
      // ES01 has no headers.
      const headerBytes = this.wanted.format === readFormats.es01 ? 0 : record.headerBytes
      const size = RECORD_OVERHEAD_BYTES + record.payloadBytes + headerBytes
      const isOver = this.#count >= this.wanted.maxRecords || this.#sizeBytes + size > this.wanted.maxBytes
      if (this.#count > 0 && isOver) return false
      if (!this.#answer.add(record)) return false
      this.#count++
      this.#recordCount++
      this.#sizeBytes += size
      this.#offset = record.offset + 1
    }
    // What cannot be decoded is not passed over here: the offset stays at it.
    if (cursor.status !== batchStatus.ok) return false
    this.#offset = view.lastOffset + 1
    return this.#count < this.wanted.maxRecords
  }

  /**
   * A few KiB can stand for a record of 32 MiB, and its JSON has up to six times as much. Whatever is not compressed took
   * its bytes on the way in, when it was within the limit of that day, and is always answered.
   */
  get #isTooLarge(): boolean {
    return (
      this.#records.inflatedBytes > 0 && this.#record.payloadBytes + this.#record.headerBytes > this.#recordBytesMax
    )
  }

  /**
   * A damaged range ends an answer that has records: the next read meets it first. There ES01 and batches, which have no
   * place to say what was skipped, are refused; the others go on behind it, in another step: so there can be many.
   */
  #passOver(first: number, last: number): StepOutcome {
    if (this.#count > 0) return this.#finish()
    if (this.damagedFirst < 0) this.damagedFirst = first
    this.damagedLast = last
    if (!this.#saysSkipped) return stepOutcomes.damaged
    const from = this.#offset
    this.#offset = Math.max(from, this.damagedLast + 1)
    this.#skip(from)
    return stepOutcomes.more
  }

  /** Says that what lies between `from` and the present offset cannot be read. */
  #skip(from: number): void {
    if (this.#saysSkipped) this.#answer.skip(from, this.#offset)
  }

  #finish(): StepOutcome {
    const end = this.#log.highWatermark
    if (this.#isOfBatches) {
      this.#batches.finish(this.#log.startOffset, end, this.#offset)
      return stepOutcomes.done
    }
    // Nothing at or behind the offset: a poller keeps its place, however far beyond the end it is (5.4).
    const next = this.#count === 0 && this.wanted.offset >= BigInt(end) ? this.wanted.offset : BigInt(this.#offset)
    this.#answer.finish(next, end)
    return stepOutcomes.done
  }
}
