/**
 * RecordBatch v2, the format of every record at rest and of Kafka's produce and fetch. Positions and sizes only.
 *
 *   at  bytes  type  field                  in CRC
 *    0      8  i64   base offset            no
 *    8      4  i32   batch length: bytes after this field
 *                                           no
 *   12      4  i32   partition leader epoch no
 *   16      1  i8    magic = 2              no
 *   17      4  u32   CRC32C of byte 21 … end
 *   21      2  i16   attributes: bits 0–2 codec, 3 timestamp type, 4 transactional, 5 control, 6 delete horizon
 *   23      4  i32   last offset delta
 *   27      8  i64   base timestamp, ms
 *   35      8  i64   max timestamp, ms
 *   43      8  i64   producer id, −1 none
 *   51      2  i16   producer epoch, −1 none
 *   53      4  i32   base sequence, −1 none
 *   57      4  i32   record count
 *   61      …        records, one block if compressed
 *
 *   record = varint length of what follows · attributes i8 · varlong timestamp delta · varint offset delta
 *          · varint key length (−1 null) · key · varint value length (−1 null) · value
 *          · varint header count · headers: varint length · name · varint length (−1 null) · value
 *
 * Base offset and leader epoch are outside the CRC, so the broker sets them without touching it.
 */
import { assert } from '../../base/assert.ts'

export const BASE_OFFSET_AT = 0
export const BATCH_LENGTH_AT = 8
export const LEADER_EPOCH_AT = 12
export const MAGIC_AT = 16
export const CRC_AT = 17
export const ATTRIBUTES_AT = 21
export const LAST_OFFSET_DELTA_AT = 23
export const BASE_TIMESTAMP_AT = 27
export const MAX_TIMESTAMP_AT = 35
export const PRODUCER_ID_AT = 43
export const PRODUCER_EPOCH_AT = 51
export const BASE_SEQUENCE_AT = 53
export const RECORD_COUNT_AT = 57

/** Bytes before the first record. */
export const BATCH_HEADER_BYTES = 61
/** Bytes that the batch length does not count. */
export const BATCH_LENGTH_BASE = 12
export const MAGIC = 2

/** Bits of the attributes that name the compression; 0 is none. */
export const CODEC_MASK = 0x07
/** How many of them mean something: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd. */
export const CODECS = 5
export const ZSTD_CODEC = 4
/** Set: record timestamps are to be read as the max timestamp (the broker's time of append). */
export const LOG_APPEND_TIME_BIT = 0x08
export const TRANSACTIONAL_BIT = 0x10
export const CONTROL_BIT = 0x20

/** Least bytes of a record, its length included: empty body of attributes, two deltas, two nulls, no headers. */
export const RECORD_BYTES_MIN = 7

assert(RECORD_COUNT_AT + 4 === BATCH_HEADER_BYTES, 'the batch header must end where records begin')
assert(BATCH_LENGTH_AT + 4 === BATCH_LENGTH_BASE, 'the batch length counts what stands behind it')

/**
 * What is wrong with the bytes of a batch. Numbers, because hot paths return them; 0 is the only good one.
 *
 *   truncated     the bytes end before the batch does
 *   badLength     the length is below that of an empty batch
 *   badMagic      not version 2
 *   badCrc        the checksum does not match
 *   badHeader     a base offset beyond 2^53 − 1, or a negative count or last offset delta
 *   compressed    the records are compressed: they can be stored, not walked
 *   badRecord     a record runs over its end, or its parts do not add up, or its offset is not behind the one before and in
 *                 the batch, or bytes remain after the last record
 *   numberRange   a timestamp beyond ±(2^53 − 1) ms
 */
export const batchStatus = {
  ok: 0,
  truncated: 1,
  badLength: 2,
  badMagic: 3,
  badCrc: 4,
  badHeader: 5,
  compressed: 6,
  badRecord: 7,
  numberRange: 8
} as const
export type BatchStatus = (typeof batchStatus)[keyof typeof batchStatus]
