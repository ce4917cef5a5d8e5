/**
 * The heads of MessagePack values at a place in bytes, for answers that are written without an object per record. Pure, any
 * thread, no allocation. The caller has checked the room; MARK_BYTES_MAX is enough for any one of them.
 *
 *   map 0–15 0x80 | n · array 0–15 0x90 | n, u32 0xdd · str 0–31 0xa0 | n, u8 0xd9, u16 0xda, u32 0xdb
 *   bin u8 0xc4, u16 0xc5, u32 0xc6 · nil 0xc0 · uint 0–127 itself, u8 0xcc, u16 0xcd, u32 0xce, u64 0xcf · i64 0xd3
 */
import { assert } from '../../base/assert.ts'
import { write64, writeU16, writeU32 } from './u64.ts'

/** Bytes of the longest: a mark, and 64 bits. */
export const MARK_BYTES_MAX = 9
export const MSGPACK_NIL = 0xc0
/** Or'ed with the number of fields, up to 15. */
export const MSGPACK_MAP = 0x80
/** Or'ed with the number of elements, up to 15. */
export const MSGPACK_ARRAY = 0x90
/** Before a u32: the number of elements. */
export const MSGPACK_ARRAY_32 = 0xdd
/** Before a u64. */
export const MSGPACK_UINT_64 = 0xcf

/** An integer in the shortest form that keeps it, negative ones in 64 bits. @returns the position after it. */
export function writeMsgpackInt(target: Uint8Array, at: number, value: number): number {
  assert(Number.isSafeInteger(value), 'an integer is exact')
  if (value >= 0 && value < 0x80) {
    target[at] = value
    return at + 1
  }
  if (value >= 0 && value <= 0xffff_ffff) return writeSized(target, at, value, 0xcc)
  target[at] = value < 0 ? 0xd3 : MSGPACK_UINT_64
  write64(target, at + 1, value)
  return at + 9
}

/** The head of that many bytes. @returns the position after it: where they go. */
export function writeMsgpackBin(target: Uint8Array, at: number, length: number): number {
  return writeSized(target, at, length, 0xc4)
}

/** The head of a text of that many bytes of UTF-8. @returns the position after it: where they go. */
export function writeMsgpackStr(target: Uint8Array, at: number, length: number): number {
  if (length >= 32) return writeSized(target, at, length, 0xd9)
  target[at] = 0xa0 | length
  return at + 1
}

/** The head of an array. @returns the position after it. */
export function writeMsgpackArray(target: Uint8Array, at: number, count: number): number {
  if (count > 15) {
    target[at] = MSGPACK_ARRAY_32
    return writeU32(target, at + 1, count)
  }
  target[at] = MSGPACK_ARRAY | count
  return at + 1
}

/** A u32 in 8, 16 or 32 bits: `mark` and the two after it name them. */
function writeSized(target: Uint8Array, at: number, value: number, mark: number): number {
  if (value <= 0xff) {
    target[at] = mark
    target[at + 1] = value
    return at + 2
  }
  target[at] = value <= 0xffff ? mark + 1 : mark + 2
  return value <= 0xffff ? writeU16(target, at + 1, value) : writeU32(target, at + 1, value)
}
