/**
 * One read in progress on a shard: steps through batches within a budget of bytes, so that a long read never keeps
 * produce waiting (R1). Knows what to answer; the loop sends it.
 */
import { RECORD_OVERHEAD_BYTES } from '../../src/model/limits.ts'
import type { ReadFormat } from '../../src/model/requests.ts'
import { readOutcomes, type LogReader } from '../../src/log/log-reader.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { RecordCursor, batchStatus, timestampOf } from '../../src/wire/batch/view.ts'
import type { AnswerWriter } from './answers.ts'

export interface ReadWanted {
  readonly requestId: number
  readonly format: ReadFormat
  readonly partition: number
  /** u64; beyond 2^53 it can only be behind the end. */
  readonly offset: bigint
  readonly maxRecords: number
  readonly maxBytes: number
}

export const stepOutcomes = { more: 0, done: 1, damaged: 2 } as const
export type StepOutcome = (typeof stepOutcomes)[keyof typeof stepOutcomes]

export class ReadTask {
  readonly wanted: ReadWanted
  readonly #log: PartitionLog
  readonly #reader: LogReader
  readonly #answer: AnswerWriter
  readonly #cursor = new RecordCursor()
  /** First offset still wanted. */
  #offset: number
  #count = 0
  /** What max_bytes counts. */
  #sizeBytes = 0
  /** When its time to wait for cold storage is over, monotonic ms; null: it has not waited. */
  coldEndMs: number | null = null
  /** Of the damaged range, after step said so. */
  damagedFirst = 0
  damagedLast = 0

  constructor(wanted: ReadWanted, log: PartitionLog, reader: LogReader, answer: AnswerWriter) {
    this.wanted = wanted
    this.#log = log
    this.#reader = reader
    this.#answer = answer
    this.#offset = Math.max(Number(wanted.offset), log.startOffset)
    answer.begin(wanted.format, wanted.maxBytes)
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
    return this.#count
  }

  /** Key and value bytes of the records. */
  get payloadBytes(): number {
    return this.#sizeBytes - RECORD_OVERHEAD_BYTES * this.#count
  }

  /** Reads up to about `budgetBytes`. After done the answer stands finished in the writer. */
  step(budgetBytes: number): StepOutcome {
    let left = budgetBytes
    while (left > 0) {
      const outcome = this.#reader.next(this.#offset)
      if (outcome === readOutcomes.damaged) return this.#damaged()
      if (outcome === readOutcomes.end) {
        // Nothing is left up to the end: a gap that compaction left there must not hold a poller (5.6).
        this.#offset = Math.max(this.#offset, this.#log.highWatermark)
        return this.#finish()
      }
      left -= this.#reader.end - this.#reader.start
      const isFull = !this.#takeBatch()
      // A batch whose records cannot be decoded is passed over like a damaged one, and said so.
      if (this.#cursor.status !== batchStatus.ok) return this.#damaged()
      if (isFull) return this.#finish()
    }
    return stepOutcomes.more
  }

  /** @returns false when a limit is reached. */
  #takeBatch(): boolean {
    const { view, bytes } = this.#reader
    const cursor = this.#cursor
    cursor.open(bytes, view)
    while (cursor.next()) {
      const offset = view.baseOffset + cursor.offsetDelta
      if (offset < this.#offset) continue
      const size = RECORD_OVERHEAD_BYTES + Math.max(0, cursor.keyLength) + Math.max(0, cursor.valueLength)
      const isOver = this.#count >= this.wanted.maxRecords || this.#sizeBytes + size > this.wanted.maxBytes
      if (this.#count > 0 && isOver) return false
      const place = {
        bytes,
        keyStart: cursor.keyStart,
        keyLength: cursor.keyLength,
        valueStart: cursor.valueStart,
        valueLength: cursor.valueLength
      }
      if (!this.#answer.add(this.wanted.partition, offset, timestampOf(view, cursor), place)) return false
      this.#count++
      this.#sizeBytes += size
      this.#offset = offset + 1
    }
    // What cannot be decoded is not passed over: the offset stays at it, so the next read meets it first.
    if (cursor.status !== batchStatus.ok) return false
    this.#offset = view.lastOffset + 1
    return this.#count < this.wanted.maxRecords
  }

  /** A damaged range ends an answer that has records; the next read meets it first and is told. */
  #damaged(): StepOutcome {
    if (this.#count > 0) return this.#finish()
    this.damagedFirst = this.#reader.firstOffset
    this.damagedLast = this.#reader.lastOffset
    return stepOutcomes.damaged
  }

  #finish(): StepOutcome {
    const end = this.#log.highWatermark
    // Nothing at or behind the offset: a poller keeps its place, however far beyond the end it is (5.4).
    const next = this.#count === 0 && this.wanted.offset >= BigInt(end) ? this.wanted.offset : BigInt(this.#offset)
    this.#answer.finish(next, end)
    return stepOutcomes.done
  }
}
