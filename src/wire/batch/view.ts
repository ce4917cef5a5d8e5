/**
 * Reads RecordBatch v2 in place, from bytes that nobody vouches for: no lengths in them are believed, nothing outside the
 * given range is read. Pure, any thread; BatchView and RecordCursor are made once and opened on batch after batch.
 */
import { assert } from '../../base/assert.ts'
import { crc32c } from '../../base/crc32c.ts'
import { readI16, readI32, readI64, readU32, readU64 } from '../primitives/u64.ts'
import { VarintReader } from '../primitives/varint.ts'
import {
  ATTRIBUTES_AT,
  BASE_OFFSET_AT,
  BASE_SEQUENCE_AT,
  BASE_TIMESTAMP_AT,
  BATCH_HEADER_BYTES,
  BATCH_LENGTH_AT,
  BATCH_LENGTH_BASE,
  CODEC_MASK,
  CRC_AT,
  LAST_OFFSET_DELTA_AT,
  LEADER_EPOCH_AT,
  LOG_APPEND_TIME_BIT,
  MAGIC,
  MAGIC_AT,
  MAX_TIMESTAMP_AT,
  PRODUCER_EPOCH_AT,
  PRODUCER_ID_AT,
  RECORD_BYTES_MIN,
  RECORD_COUNT_AT,
  batchStatus
} from './layout.ts'
import type { BatchStatus } from './layout.ts'

export { BATCH_HEADER_BYTES, batchStatus } from './layout.ts'
export type { BatchStatus } from './layout.ts'

const NONE = new Uint8Array(0)

/** Bytes that the batch at bytes[at…] says it has, its header included; below 61 it lies. Needs 12 bytes there. */
export function batchBytesAt(bytes: Uint8Array, at: number): number {
  return readI32(bytes, at + BATCH_LENGTH_AT) + BATCH_LENGTH_BASE
}

/** Base offset of the batch at bytes[at…], or −1 if it is above 2^53 − 1. Needs 8 bytes there. */
export function baseOffsetAt(bytes: Uint8Array, at: number): number {
  return readU64(bytes, at + BASE_OFFSET_AT)
}

/** Offset of the last record of the batch at bytes[at…], less its base offset; negative ones lie. Needs 27 bytes there. */
export function lastOffsetDeltaAt(bytes: Uint8Array, at: number): number {
  return readI32(bytes, at + LAST_OFFSET_DELTA_AT)
}

/** Whether a batch is in order, though its records may be compressed: such a one is stored and handed out as it is. */
export function isWhole(status: BatchStatus): boolean {
  return status === batchStatus.ok || status === batchStatus.compressed
}

/** Length and magic of the batch that begins at `start`, without its checksum. */
function checkFrame(bytes: Uint8Array, start: number, end: number): BatchStatus {
  assert(start >= 0 && end <= bytes.length, 'a batch must be looked for inside its bytes')
  if (start + BATCH_HEADER_BYTES > end) return batchStatus.truncated
  // The magic stands at the same place in every version of the format; only then does the length mean what it says here.
  if (bytes[start + MAGIC_AT] !== MAGIC) return batchStatus.badMagic
  const length = batchBytesAt(bytes, start)
  if (length < BATCH_HEADER_BYTES) return batchStatus.badLength
  return start + length > end ? batchStatus.truncated : batchStatus.ok
}

/**
 * Checks magic, length and CRC of the batch that begins at bytes[start]; other batches may follow it before `end`.
 * What the records hold is not looked at.
 *
 * @param end exclusive; at most bytes.length.
 * @cost one pass over the batch.
 */
export function checkBatch(bytes: Uint8Array, start: number, end: number): BatchStatus {
  const status = checkFrame(bytes, start, end)
  if (status !== batchStatus.ok) return status
  const crc = crc32c(bytes, start + ATTRIBUTES_AT, start + batchBytesAt(bytes, start))
  return crc === readU32(bytes, start + CRC_AT) ? batchStatus.ok : batchStatus.badCrc
}

/** The header of one batch as plain fields. All are valid after open() returned ok or compressed, and copies: no borrowing. */
export class BatchView {
  start = 0
  /** Exclusive end of the batch, where the next one begins. */
  end = 0
  /** Offset of the batch; its records may begin later after compaction. */
  baseOffset = 0
  /** Inclusive; stays when compaction removes the last record. */
  lastOffset = 0
  leaderEpoch = 0
  crc = 0
  attributes = 0
  lastOffsetDelta = 0
  baseTimestampMs = 0
  maxTimestampMs = 0
  /** −1: none. NaN beyond ±(2^53 − 1), which no producer id reaches. */
  producerId = -1
  producerEpoch = -1
  baseSequence = -1
  /** Records in the batch: 0 in one whose records compaction removed. */
  recordCount = 0
  /** Where the records begin. */
  recordsStart = 0

  /** What the records are compressed with; 0: nothing. */
  get codec(): number {
    return this.attributes & CODEC_MASK
  }

  /**
   * Reads the header of the batch that begins at bytes[start]. The CRC is not computed: see checkBatch.
   *
   * @returns ok; or compressed, with every field set; or what is wrong, with the fields meaningless.
   */
  open(bytes: Uint8Array, start: number, end: number): BatchStatus {
    const status = checkFrame(bytes, start, end)
    if (status !== batchStatus.ok) return status
    this.start = start
    this.end = start + batchBytesAt(bytes, start)
    this.recordsStart = start + BATCH_HEADER_BYTES
    this.baseOffset = baseOffsetAt(bytes, start)
    this.leaderEpoch = readI32(bytes, start + LEADER_EPOCH_AT)
    this.crc = readU32(bytes, start + CRC_AT)
    this.attributes = readI16(bytes, start + ATTRIBUTES_AT)
    this.lastOffsetDelta = lastOffsetDeltaAt(bytes, start)
    this.lastOffset = this.baseOffset + this.lastOffsetDelta
    this.baseTimestampMs = readI64(bytes, start + BASE_TIMESTAMP_AT)
    this.maxTimestampMs = readI64(bytes, start + MAX_TIMESTAMP_AT)
    this.producerId = readI64(bytes, start + PRODUCER_ID_AT)
    this.producerEpoch = readI16(bytes, start + PRODUCER_EPOCH_AT)
    this.baseSequence = readI32(bytes, start + BASE_SEQUENCE_AT)
    this.recordCount = readI32(bytes, start + RECORD_COUNT_AT)
    return this.#checkFields()
  }

  #checkFields(): BatchStatus {
    if (this.baseOffset < 0 || this.lastOffset > Number.MAX_SAFE_INTEGER) return batchStatus.badHeader
    if (this.recordCount < 0 || this.lastOffsetDelta < 0) return batchStatus.badHeader
    if (Number.isNaN(this.baseTimestampMs) || Number.isNaN(this.maxTimestampMs)) return batchStatus.numberRange
    return this.codec === 0 ? batchStatus.ok : batchStatus.compressed
  }
}

/**
 * Walks the records of one uncompressed batch. The fields describe the record that next() stepped to, as places in the
 * bytes given to open(), which are borrowed until the last next().
 */
export class RecordCursor {
  /** ok while records come and after the last; otherwise why next() returned false. */
  status: BatchStatus = batchStatus.ok
  /** To be added to the batch's base offset. */
  offsetDelta = 0
  /** To be added to the batch's base timestamp. */
  timestampDeltaMs = 0
  keyStart = 0
  /** −1: null. */
  keyLength = -1
  valueStart = 0
  /** −1: null. */
  valueLength = -1
  headerCount = 0
  /** Headers in their encoding: bytes[headersStart, headersEnd). Their parts were checked to add up. */
  headersStart = 0
  headersEnd = 0
  #bytes: Uint8Array = NONE
  #at = 0
  #end = 0
  #remaining = 0
  #baseTimestampMs = 0
  /** What the offset delta of the next record must lie between. */
  #deltaMin = 0
  #deltaMax = 0
  readonly #reader = new VarintReader()

  /** Begins at the first record of the batch that `view` has opened on the same bytes; it must have said ok. */
  open(bytes: Uint8Array, view: BatchView): void {
    this.#begin(bytes, view.recordsStart, view.end, view)
    this.status = view.codec === 0 ? batchStatus.ok : batchStatus.compressed
  }

  /** The same for the records of a compressed batch. @param records all of them, inflated, and nothing else. */
  openInflated(records: Uint8Array, view: BatchView): void {
    this.#begin(records, 0, records.length, view)
    this.status = batchStatus.ok
  }

  /** Lets the bytes go, and keeps the status: no record comes any more before it is opened again. */
  close(): void {
    this.#bytes = NONE
    this.#at = 0
    this.#end = 0
    this.#remaining = 0
  }

  #begin(bytes: Uint8Array, start: number, end: number, view: BatchView): void {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    this.#remaining = view.recordCount
    this.#baseTimestampMs = view.baseTimestampMs
    this.#deltaMin = 0
    this.#deltaMax = view.lastOffsetDelta
  }

  /** @returns true: the fields describe one more record. False: no more, or damage; `status` says which. */
  next(): boolean {
    if (this.status !== batchStatus.ok) return false
    if (this.#remaining === 0) {
      if (this.#at !== this.#end) this.status = batchStatus.badRecord
      return false
    }
    this.#remaining--
    this.status = this.#step()
    return this.status === batchStatus.ok
  }

  #step(): BatchStatus {
    const bytes = this.#bytes
    const reader = this.#reader
    let at = reader.readInt(bytes, this.#at, this.#end)
    if (at < 0 || reader.value < RECORD_BYTES_MIN - 1 || reader.value > this.#end - at) return batchStatus.badRecord
    const recordEnd = at + reader.value
    // The attributes of a record have no meaning yet: stepped over.
    at = reader.readLong(bytes, at + 1, recordEnd)
    if (at < 0) return batchStatus.badRecord
    this.timestampDeltaMs = reader.value
    at = reader.readInt(bytes, at, recordEnd)
    if (at < 0) return batchStatus.badRecord
    this.offsetDelta = reader.value
    at = this.#readLength(at, recordEnd)
    if (at < 0) return batchStatus.badRecord
    this.keyLength = reader.value
    this.keyStart = at
    if (this.keyLength > 0) at += this.keyLength
    at = this.#readLength(at, recordEnd)
    if (at < 0) return batchStatus.badRecord
    this.valueLength = reader.value
    this.valueStart = at
    if (this.valueLength > 0) at += this.valueLength
    this.#at = recordEnd
    if (!this.#checkHeaders(at, recordEnd)) return batchStatus.badRecord
    if (this.offsetDelta < this.#deltaMin || this.offsetDelta > this.#deltaMax) return batchStatus.badRecord
    this.#deltaMin = this.offsetDelta + 1
    // NaN, too, where the delta alone is beyond exact numbers.
    return Number.isSafeInteger(this.#baseTimestampMs + this.timestampDeltaMs)
      ? batchStatus.ok
      : batchStatus.numberRange
  }

  /** Reads a length, −1 for null, of bytes that must lie before `end`. @returns the position after it, or −1. */
  #readLength(at: number, end: number): number {
    const behind = this.#reader.readInt(this.#bytes, at, end)
    if (behind < 0 || this.#reader.value < -1 || this.#reader.value > end - behind) return -1
    return behind
  }

  /** Sets the range of the headers. @returns whether they end exactly at `end`. */
  #checkHeaders(at: number, end: number): boolean {
    let behind = this.#reader.readInt(this.#bytes, at, end)
    if (behind < 0 || this.#reader.value < 0) return false
    this.headerCount = this.#reader.value
    this.headersStart = behind
    this.headersEnd = end
    // Each header takes two bytes at least, so a count that lies ends the loop at the end of the record.
    for (let i = 0; i < this.headerCount; i++) {
      behind = this.#readLength(behind, end)
      if (behind < 0 || this.#reader.value < 0) return false
      behind = this.#readLength(behind + this.#reader.value, end)
      if (behind < 0) return false
      if (this.#reader.value > 0) behind += this.#reader.value
    }
    return behind === end
  }
}

/** Timestamp of the record that the cursor stepped to, ms: the batch's, where the broker's time of append counts. */
export function timestampOf(view: BatchView, cursor: RecordCursor): number {
  const isAppendTime = (view.attributes & LOG_APPEND_TIME_BIT) !== 0
  return isAppendTime ? view.maxTimestampMs : view.baseTimestampMs + cursor.timestampDeltaMs
}
