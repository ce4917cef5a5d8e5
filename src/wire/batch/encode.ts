/**
 * Encodes records from the ring layout (model/requests.ts) straight into RecordBatch v2. Runs in the shard, once per
 * record: no allocation, each key and each value copied once, by copyBytes.
 *
 * A batch is made in place: leave BATCH_HEADER_BYTES, write records one behind another, then seal. Every batch made here is
 * uncompressed, without headers, with one timestamp for all its records and consecutive offsets from the base offset.
 * The caller has checked lengths (limits) and room (recordBytes); nothing here reads or writes past them.
 */
import { assert } from '../../base/assert.ts'
import { copyBytes } from '../../base/copy.ts'
import { crc32c } from '../../base/crc32c.ts'
import { readI32, write64, writeU16, writeU32 } from '../primitives/u64.ts'
import { varintBytes, writeVarint } from '../primitives/varint.ts'
import { HEADERS_LENGTH_BYTES, RECORD_TAIL_BYTES } from '../produce/ring-layout.ts'
import {
  ATTRIBUTES_AT,
  BASE_OFFSET_AT,
  BASE_SEQUENCE_AT,
  BASE_TIMESTAMP_AT,
  BATCH_HEADER_BYTES,
  BATCH_LENGTH_AT,
  BATCH_LENGTH_BASE,
  CRC_AT,
  LAST_OFFSET_DELTA_AT,
  LEADER_EPOCH_AT,
  LOG_APPEND_TIME_BIT,
  MAGIC,
  MAGIC_AT,
  MAX_TIMESTAMP_AT,
  PRODUCER_EPOCH_AT,
  PRODUCER_ID_AT,
  RECORD_COUNT_AT
} from './layout.ts'

export { BATCH_HEADER_BYTES } from './layout.ts'

/**
 * Body of a record but for its offset delta: attributes and timestamp delta 0 (a byte each), key, value, headers.
 *
 * @param keyLength −1: no key. 0 is an empty key, which is a key.
 * @param valueLength 0 is stored as null: over HTTP and ES01 an empty value is a tombstone.
 * @param headersLength of the headers with their count; 1: none, the count 0.
 */
export function recordBodyBytes(keyLength: number, valueLength: number, headersLength: number): number {
  let bytes = 2 + headersLength
  bytes += keyLength < 0 ? 1 : varintBytes(keyLength) + keyLength
  bytes += valueLength === 0 ? 1 : varintBytes(valueLength) + valueLength
  return bytes
}

/**
 * Bytes of one record as writeRecord or writeRecordWithHeaders writes it.
 *
 * @param bodyBytes as of recordBodyBytes.
 */
export function recordBytes(offsetDelta: number, bodyBytes: number): number {
  const body = bodyBytes + varintBytes(offsetDelta)
  return varintBytes(body) + body
}

/**
 * Writes one record without headers at target[at…].
 *
 * @param offsetDelta offset of the record less the batch's base offset.
 * @param source bytes with the record in ring layout, its key_len at source[sourceAt]; borrowed until return.
 * @returns the position after the record: at + recordBytes(…).
 */
export function writeRecord(target: Buffer, at: number, offsetDelta: number, source: Buffer, sourceAt: number): number {
  const keyLength = readI32(source, sourceAt)
  const keyAt = sourceAt + 4
  const valueLengthAt = keyLength > 0 ? keyAt + keyLength : keyAt
  const valueLength = readI32(source, valueLengthAt)
  assert(keyLength >= -1 && valueLength >= 0, 'a ring record has lengths from 0, or −1 for no key')
  const bodyBytes = recordBodyBytes(keyLength, valueLength, 1)
  let to = writeStart(target, at, offsetDelta, bodyBytes)
  to = writePart(target, to, keyLength, source, keyAt)
  to = writePart(target, to, valueLength === 0 ? -1 : valueLength, source, valueLengthAt + 4)
  target[to] = 0
  return to + 1
}

/** The same with the headers that follow the record in ring layout: copied as they are. */
export function writeRecordWithHeaders(
  target: Buffer,
  at: number,
  offsetDelta: number,
  source: Buffer,
  sourceAt: number
): number {
  const keyLength = readI32(source, sourceAt)
  const keyAt = sourceAt + 4
  const valueLengthAt = keyLength > 0 ? keyAt + keyLength : keyAt
  const valueLength = readI32(source, valueLengthAt)
  const headersAt = valueLengthAt + 4 + valueLength + RECORD_TAIL_BYTES + HEADERS_LENGTH_BYTES
  const headersLength = readI32(source, headersAt - HEADERS_LENGTH_BYTES)
  assert(keyLength >= -1 && valueLength >= 0, 'a ring record has lengths from 0, or −1 for no key')
  assert(headersLength > 0, 'headers have a count at least')
  const bodyBytes = recordBodyBytes(keyLength, valueLength, headersLength)
  let to = writeStart(target, at, offsetDelta, bodyBytes)
  to = writePart(target, to, keyLength, source, keyAt)
  to = writePart(target, to, valueLength === 0 ? -1 : valueLength, source, valueLengthAt + 4)
  return copyBytes(source, headersAt, headersAt + headersLength, target, to)
}

/** Length, attributes, timestamp delta, offset delta. */
function writeStart(target: Buffer, at: number, offsetDelta: number, bodyBytes: number): number {
  const to = writeVarint(target, at, bodyBytes + varintBytes(offsetDelta))
  target[to] = 0
  target[to + 1] = 0
  return writeVarint(target, to + 2, offsetDelta)
}

/** A key or a value behind its length. @param length −1: null. */
function writePart(target: Buffer, at: number, length: number, source: Buffer, sourceAt: number): number {
  const to = writeVarint(target, at, length)
  return length > 0 ? copyBytes(source, sourceAt, sourceAt + length, target, to) : to
}

/** What the header of a batch says beside its length and its checksum. */
export interface BatchFields {
  /** Offset of the first record. */
  readonly baseOffset: number
  readonly leaderEpoch: number
  /** Of all records, ms since the Unix epoch. */
  readonly timestampMs: number
  /** At least 1; the records carry the offset deltas 0 … recordCount − 1. */
  readonly recordCount: number
  /** That time is the one of append, and is to be read so. */
  readonly takesAppendTime: boolean
}

/**
 * Writes the header of the batch target[start, end) whose records are in place, and its CRC.
 *
 * @cost one pass over the batch for the CRC.
 */
export function sealBatch(target: Buffer, start: number, end: number, fields: BatchFields): void {
  assert(start >= 0 && end <= target.length && end > start + BATCH_HEADER_BYTES, 'a batch must have records')
  assert(fields.recordCount > 0, 'a batch must have records')
  placeBatch(target, start, fields.baseOffset, fields.leaderEpoch)
  writeU32(target, start + BATCH_LENGTH_AT, end - start - BATCH_LENGTH_BASE)
  target[start + MAGIC_AT] = MAGIC
  writeU16(target, start + ATTRIBUTES_AT, fields.takesAppendTime ? LOG_APPEND_TIME_BIT : 0)
  writeU32(target, start + LAST_OFFSET_DELTA_AT, fields.recordCount - 1)
  write64(target, start + BASE_TIMESTAMP_AT, fields.timestampMs)
  write64(target, start + MAX_TIMESTAMP_AT, fields.timestampMs)
  write64(target, start + PRODUCER_ID_AT, -1)
  writeU16(target, start + PRODUCER_EPOCH_AT, -1)
  writeU32(target, start + BASE_SEQUENCE_AT, -1)
  writeU32(target, start + RECORD_COUNT_AT, fields.recordCount)
  writeU32(target, start + CRC_AT, crc32c(target, start + ATTRIBUTES_AT, end))
}

/** Gives the batch at target[start…] another place in the log. The CRC covers neither field and stays right. */
export function placeBatch(target: Buffer, start: number, baseOffset: number, leaderEpoch: number): void {
  assert(baseOffset >= 0, 'offsets begin at 0')
  write64(target, start + BASE_OFFSET_AT, baseOffset)
  writeU32(target, start + LEADER_EPOCH_AT, leaderEpoch)
}

/**
 * Makes the time of append the time of all records of the batch target[start, end), whatever they say themselves.
 *
 * @cost one pass over the batch for the CRC.
 */
export function stampBatch(target: Buffer, start: number, end: number, timestampMs: number): void {
  target[start + ATTRIBUTES_AT + 1] = (target[start + ATTRIBUTES_AT + 1] as number) | LOG_APPEND_TIME_BIT
  write64(target, start + MAX_TIMESTAMP_AT, timestampMs)
  writeU32(target, start + CRC_AT, crc32c(target, start + ATTRIBUTES_AT, end))
}
