/**
 * Checks the sequences of one request as a whole, before anything of it is staged: pure, but for what it remembers of the
 * request itself. Shard thread only; one instance, used again for each request.
 *
 * Within a request a partition's records are judged as if those before them had been accepted; behind a new one only the
 * very next sequence will do, so a request never holds the same new record twice.
 */
import type { ErrorCode, ErrorDetails } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import { CHECK_RUN_BYTES } from '../wire/shard/messages.ts'
import { NO_HEADERS_BYTES, RECORD_TAIL_BYTES, headerPayloadBytes } from '../wire/produce/ring-layout.ts'
import type { TopicLogs } from './log-table.ts'
import {
  judgeSequence,
  relativeSequence,
  sequenceVerdicts,
  type ProducerSequences,
  type SequenceVerdict
} from './producer-sequences.ts'
import type { RingRecords } from './ring-records.ts'

/** In `offsets`: the record is new. */
export const NEW_RECORD = -1

/** Of a record in ring layout: the lengths of its key and value. */
const LENGTHS_BYTES = 8

/** Where the request stands in one partition. */
interface Cursor {
  readonly known: ProducerSequences | null
  readonly originHigh: number
  readonly originLow: number
  next: number
  hasNew: boolean
}

/** Why a request is refused. */
export interface SequenceFault {
  readonly code: Extract<ErrorCode, 'SEQUENCE_GAP' | 'SEQUENCE_TOO_LOW'>
  readonly details: ErrorDetails
}

export class RequestSequences {
  producer = 0
  /** After check() was content: for each record the offset of its original, or NEW_RECORD. */
  offsets = new Float64Array(1024)
  /** Duplicates among them. */
  duplicateCount = 0
  /** Their key, value and header bytes. */
  duplicateBytes = 0
  readonly #cursors = new Map<number, Cursor>()
  #topic: TopicLogs | null = null
  #lastPartition = -1
  #lastCursor: Cursor | null = null

  /** Judges the records of a request. @returns null if all of them may be taken. */
  check(topic: TopicLogs, producer: number, { source, at, count, hasHeaders }: RingRecords): SequenceFault | null {
    this.#begin(topic, producer)
    if (this.offsets.length < count) this.offsets = new Float64Array(Math.max(count, 2 * this.offsets.length))
    let position = at
    for (let i = 0; i < count; i++) {
      const keyLength = source.readInt32BE(position)
      const valueAt = position + 4 + Math.max(0, keyLength)
      const tail = valueAt + 4 + source.readUInt32BE(valueAt)
      const partition = source.readUInt32BE(tail)
      const high = source.readInt32BE(tail + 4)
      const low = source.readUInt32BE(tail + 8)
      const headersAt = tail + RECORD_TAIL_BYTES
      const headersLength = hasHeaders ? source.readUInt32BE(headersAt) : NO_HEADERS_BYTES
      const cursor = this.#cursorOf(partition, high, low)
      const relative = relativeSequence(high, low, cursor.originHigh, cursor.originLow)
      const verdict = judge(cursor, relative)
      if (verdict === sequenceVerdicts.next) this.offsets[i] = NEW_RECORD
      else if (verdict !== sequenceVerdicts.duplicate || cursor.known === null) {
        return faultOf(verdict, partition, cursor, (BigInt(high) << 32n) + BigInt(low))
      } else {
        this.offsets[i] = cursor.known.offsetOf(relative)
        this.duplicateCount++
        this.duplicateBytes += tail - position - LENGTHS_BYTES + headerPayloadBytes(headersLength)
      }
      position = hasHeaders ? headersAt + 4 + headersLength : headersAt
    }
    return null
  }

  /** The same for the runs of a CHECK message: of each, partition u32, count u32, first sequence i64. */
  checkRuns(topic: TopicLogs, producer: number, source: Buffer, at: number, runCount: number): SequenceFault | null {
    this.#begin(topic, producer)
    for (let position = at; position < at + runCount * CHECK_RUN_BYTES; position += CHECK_RUN_BYTES) {
      const partition = source.readUInt32BE(position)
      const count = source.readUInt32BE(position + 4)
      const high = source.readInt32BE(position + 8)
      const low = source.readUInt32BE(position + 12)
      const cursor = this.#cursorOf(partition, high, low)
      const first = relativeSequence(high, low, cursor.originHigh, cursor.originLow)
      for (let i = 0; i < count; i++) {
        const verdict = judge(cursor, first + i)
        if (verdict === sequenceVerdicts.next || verdict === sequenceVerdicts.duplicate) continue
        return faultOf(verdict, partition, cursor, (BigInt(high) << 32n) + BigInt(low) + BigInt(i))
      }
    }
    return null
  }

  #begin(topic: TopicLogs, producer: number): void {
    this.producer = producer
    this.duplicateCount = 0
    this.duplicateBytes = 0
    this.#topic = topic
    this.#cursors.clear()
    this.#lastPartition = -1
    this.#lastCursor = null
  }

  /** The cursor of a partition; the first sequence ever there is its origin. */
  #cursorOf(partition: number, high: number, low: number): Cursor {
    if (partition === this.#lastPartition && this.#lastCursor !== null) return this.#lastCursor
    let cursor = this.#cursors.get(partition)
    if (cursor === undefined) {
      const known = this.#topic?.logs[partition]?.producers.of(this.producer) ?? null
      const originHigh = known?.originHigh ?? high
      const originLow = known?.originLow ?? low
      cursor = { known, originHigh, originLow, next: known?.next ?? 0, hasNew: false }
      this.#cursors.set(partition, cursor)
    }
    this.#lastPartition = partition
    this.#lastCursor = cursor
    return cursor
  }
}

/** Judges a record and moves the cursor behind it. */
function judge(cursor: Cursor, relative: number): SequenceVerdict {
  const verdict = judgeSequence(relative, cursor.next, cursor.hasNew)
  if (verdict === sequenceVerdicts.next) {
    cursor.next++
    cursor.hasNew = true
  }
  return verdict
}

function faultOf(verdict: SequenceVerdict, partition: number, cursor: Cursor, got: bigint): SequenceFault {
  const expected = (BigInt(cursor.originHigh) << 32n) + BigInt(cursor.originLow) + BigInt(cursor.next)
  const details = { partition, expected: String(expected), got: String(got), window: limits.producerWindow }
  return { code: verdict === sequenceVerdicts.gap ? 'SEQUENCE_GAP' : 'SEQUENCE_TOO_LOW', details }
}
