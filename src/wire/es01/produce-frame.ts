/**
 * Produce, the client's side: requests (0x01) to bytes, answers (0x81) to results. Pure, any thread.
 * The layout of a request is in produce-request.ts.
 *
 *   answer:  count u32 · per record: partition u32 · offset u64 · duplicate u8
 */
import { assert } from '../../base/assert.ts'
import { RESULT_BYTES } from '../../model/requests.ts'
import { readU32, readU64Exact, writeU16, writeU32, writeU64Exact } from './bytes.ts'
import { FRAME_HEADER_BYTES, opcodes, writeFrameHeader } from './frame.ts'
import { RECORD_FIXED_BYTES } from '../produce/ring-layout.ts'

/** Bytes of the count at the head of an answer. */
export const PRODUCED_HEADER_BYTES = 4
/** i64::MIN, which says that a record has no sequence. */
const NO_SEQUENCE = -(2n ** 63n)

/** A record to produce. Strings are sent as UTF-8. */
export interface ProduceRecord {
  /** Absent or null: no key. */
  readonly key?: Uint8Array | string | null
  readonly value: Uint8Array | string
  /** Absent: by the hash of the key, or round-robin without one. */
  readonly partition?: number
  /** Counts only together with a producer id. */
  readonly sequence?: bigint
}

/** Records that follow each other in one partition: the first has that sequence, each further one the next. */
export interface SequenceRun {
  readonly partition: number
  /** A safe integer. */
  readonly firstSequence: number
}

/** Where a record was written. `offset` is exact up to 2^53 − 1, which no log reaches. */
export interface ProduceResult {
  readonly partition: number
  readonly offset: number
  readonly duplicate: boolean
}

function byteLength(field: Uint8Array | string): number {
  return typeof field === 'string' ? Buffer.byteLength(field, 'utf8') : field.length
}

function writeField(target: Buffer, at: number, field: Uint8Array | string): number {
  if (typeof field === 'string') return at + target.write(field, at, 'utf8')
  target.set(field, at)
  return at + field.length
}

/** Writes length and bytes. The length is known afterwards, so a text is measured no second time. */
function writeSized(target: Buffer, at: number, field: Uint8Array | string): number {
  const end = writeField(target, at + 4, field)
  writeU32(target, at, end - at - 4)
  return end
}

/**
 * @returns one whole frame. It may be sent again and again with another id (patchRequestId in frame.ts).
 * @param producerId absent or null: none.
 * @param run absent or null: partitions and sequences are those of the records.
 */
export function encodeProduceFrame(
  requestId: number,
  topic: string,
  records: readonly ProduceRecord[],
  producerId: string | null = null,
  run: SequenceRun | null = null
): Buffer {
  const topicBytes = byteLength(topic)
  assert(topicBytes <= 0xffff, 'a topic name has at most 65,535 bytes in a frame')
  let payloadBytes = 2 + topicBytes + 4 + byteLength(producerId ?? '') + 4
  for (const record of records) {
    payloadBytes += RECORD_FIXED_BYTES + byteLength(record.key ?? '') + byteLength(record.value)
  }
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payloadBytes)
  let at = writeFrameHeader(frame, 0, requestId, opcodes.produce, payloadBytes)
  at = writeU16(frame, at, topicBytes)
  at = writeField(frame, at, topic)
  at = writeU32(frame, at, producerId === null ? -1 : byteLength(producerId))
  at = writeField(frame, at, producerId ?? '')
  at = writeU32(frame, at, records.length)
  let sequence = run === null ? 0 : run.firstSequence
  for (const record of records) {
    at = writeKeyAndValue(frame, at, record)
    if (run === null) {
      at = writeU32(frame, at, record.partition ?? -1)
      at = frame.writeBigInt64BE(record.sequence ?? NO_SEQUENCE, at)
    } else {
      at = writeU32(frame, at, run.partition)
      at = writeU64Exact(frame, at, sequence++)
    }
  }
  assert(at === frame.length, 'a produce frame is as long as it was computed')
  return frame
}

function writeKeyAndValue(frame: Buffer, at: number, { key, value }: ProduceRecord): number {
  const isKeyless = key === undefined || key === null
  return writeSized(frame, isKeyless ? writeU32(frame, at, -1) : writeSized(frame, at, key), value)
}

/** @returns the results in the order of the request, or a text if the payload is malformed. */
export function decodeProduced(payload: Buffer): ProduceResult[] | string {
  if (payload.length < PRODUCED_HEADER_BYTES) return 'the answer to a produce ends inside count'
  const count = readU32(payload, 0)
  if (count * RESULT_BYTES > payload.length - PRODUCED_HEADER_BYTES)
    return `the answer to a produce lacks some of ${count} results`
  const results: ProduceResult[] = []
  for (let i = 0; i < count; i++) {
    const at = PRODUCED_HEADER_BYTES + i * RESULT_BYTES
    results.push({
      partition: readU32(payload, at),
      offset: Number(readU64Exact(payload, at + 4)),
      duplicate: payload[at + 12] !== 0
    })
  }
  return results
}
