/**
 * Numbers of the ring layout of a record (model/requests.ts), for those who write it and those who read it. Pure.
 *
 *   key_len i32 · key · value_len u32 · value · partition i32 · sequence i64 [· headers_len u32 · headers]
 */

/** What a record costs beside key, value and headers: key_len, value_len, partition, sequence. */
export const RECORD_FIXED_BYTES = 20
/** Partition and sequence, behind the value. */
export const RECORD_TAIL_BYTES = 12
/** Sequence, the last of those. */
export const SEQUENCE_BYTES = 8
/** headers_len. */
export const HEADERS_LENGTH_BYTES = 4
/** A record without headers has one byte of them: the count 0. */
export const NO_HEADERS_BYTES = 1

/** What headers count as bytes of a record: all that is stored of them, and nothing where there are none. */
export function headerPayloadBytes(headersLength: number): number {
  return headersLength === NO_HEADERS_BYTES ? 0 : headersLength
}
