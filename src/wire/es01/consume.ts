/**
 * Consume: the request (0x02) and its answer (0x82), both directions. Pure, any thread. All integers are big-endian.
 *
 *   request:  topic_len u16 · topic, UTF-8 · partition u32 · offset u64 · max_records u32 · max_bytes u32
 *   answer:   next_offset u64 · high_watermark u64 · count u32 · records
 *   a record: partition u32 · offset u64 · timestamp_ms i64 · key_len i32 (−1: no key) · key · value_len u32 · value
 *
 * The broker's answers are encoded by the shards (workers/shard).
 */
import type { ReadRequest } from '../../model/requests.ts'
import { readI32, readI64, readU16, readU32, readU64Exact, writeU16, writeU32, writeU64Exact } from './bytes.ts'
import { FRAME_HEADER_BYTES, opcodes, writeFrameHeader } from './frame.ts'
import type { NameReader } from './names.ts'

/** Bytes of a request after its topic. */
const REQUEST_TAIL_BYTES = 20
/** Bytes of an answer before its records. */
export const CONSUMED_HEADER_BYTES = 20
/** What a record of an answer costs beside key and value. */
export const CONSUMED_RECORD_FIXED_BYTES = 28

/** A consume request as it was sent: limits not clamped, the offset in halves of 32 bits. */
export type ConsumeRequestFields = Omit<ReadRequest, 'format'>

/** @returns the request in bytes[start, end), or a text that says what is malformed. Bytes after it are ignored. */
export function decodeConsumeRequest(
  bytes: Buffer,
  start: number,
  end: number,
  names: NameReader
): ConsumeRequestFields | string {
  if (end - start < 2) return 'the payload ends inside topic_len'
  const topicStart = start + 2
  const at = topicStart + readU16(bytes, start)
  if (at > end) return 'the payload ends inside topic'
  if (end - at < REQUEST_TAIL_BYTES) return `only ${end - at} of ${REQUEST_TAIL_BYTES} bytes follow the topic`
  const topic = names.read(bytes, topicStart, at)
  if (topic === null) return 'topic is not UTF-8'
  return {
    topic,
    partition: readU32(bytes, at),
    offsetHigh: readU32(bytes, at + 4),
    offsetLow: readU32(bytes, at + 8),
    maxRecords: readU32(bytes, at + 12),
    maxBytes: readU32(bytes, at + 16)
  }
}

/** What a client asks of one partition. `offset` may be a bigint above 2^53 − 1. */
export interface ConsumeRequest {
  readonly topic: string
  readonly partition: number
  readonly offset: number | bigint
  readonly maxRecords: number
  readonly maxBytes: number
}

/** @returns one whole frame. */
export function encodeConsumeFrame(requestId: number, request: ConsumeRequest): Buffer {
  const topic = Buffer.from(request.topic, 'utf8')
  const payloadBytes = 2 + topic.length + REQUEST_TAIL_BYTES
  const frame = Buffer.allocUnsafe(FRAME_HEADER_BYTES + payloadBytes)
  let at = writeFrameHeader(frame, 0, requestId, opcodes.consume, payloadBytes)
  at = writeU16(frame, at, topic.length)
  at += topic.copy(frame, at)
  at = writeU32(frame, at, request.partition)
  at = writeU64Exact(frame, at, request.offset)
  at = writeU32(frame, at, request.maxRecords)
  writeU32(frame, at, request.maxBytes)
  return frame
}

/** A record as it was read. */
export interface ConsumedRecord {
  readonly partition: number
  readonly offset: number
  /** Milliseconds since the Unix epoch. */
  readonly timestampMs: number
  /** null: no key. */
  readonly key: Buffer | null
  readonly value: Buffer
}

/** The answer to a consume. `nextOffset` echoes a requested offset beyond the end exactly, so it may be a bigint. */
export interface ConsumeAnswer {
  readonly nextOffset: number | bigint
  readonly highWatermark: number
  readonly records: readonly ConsumedRecord[]
}

/** @returns the answer, keys and values as views of the payload; or a text if it is malformed. */
export function decodeConsumed(payload: Buffer): ConsumeAnswer | string {
  if (payload.length < CONSUMED_HEADER_BYTES) return 'the answer to a consume ends inside its header'
  const count = readU32(payload, 16)
  const records: ConsumedRecord[] = []
  let at = CONSUMED_HEADER_BYTES
  for (let i = 0; i < count; i++) {
    if (payload.length - at < CONSUMED_RECORD_FIXED_BYTES) return `the answer to a consume ends inside record ${i}`
    const keyBytes = readI32(payload, at + 20)
    const keyStart = at + 24
    const keyEnd = keyStart + Math.max(0, keyBytes)
    if (keyEnd > payload.length - 4) return `the answer to a consume ends inside the key of record ${i}`
    const valueStart = keyEnd + 4
    const valueEnd = valueStart + readU32(payload, keyEnd)
    if (valueEnd > payload.length) return `the answer to a consume ends inside the value of record ${i}`
    records.push({
      partition: readU32(payload, at),
      offset: Number(readU64Exact(payload, at + 4)),
      timestampMs: readI64(payload, at + 12),
      key: keyBytes < 0 ? null : payload.subarray(keyStart, keyEnd),
      value: payload.subarray(valueStart, valueEnd)
    })
    at = valueEnd
  }
  return { nextOffset: readU64Exact(payload, 0), highWatermark: Number(readU64Exact(payload, 8)), records }
}
