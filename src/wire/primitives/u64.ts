/**
 * Big-endian 16, 32 and 64-bit integers at a place in bytes. Pure, any thread, no allocation, no bigint.
 *
 * A 64-bit number is handled as two 32-bit halves, or as a number where it is exact: up to 2^53 − 1 either way. Readers of
 * numbers report what is beyond that instead of rounding it. The caller has checked that the bytes are there.
 */
import { assert } from '../../base/assert.ts'

/** 2^32: what one unit of a high half is worth. */
export const TWO_32 = 0x1_0000_0000
/** High halves from here on (unsigned) mean 2^53 and more. */
const HIGH_UNSAFE = 0x20_0000

/** Writes the low 16 bits of an integer. @returns the position after them. */
export function writeU16(target: Uint8Array, at: number, value: number): number {
  target[at] = value >>> 8
  target[at + 1] = value
  return at + 2
}

/** Writes the low 32 bits of an integer: signed and unsigned alike. @returns the position after them. */
export function writeU32(target: Uint8Array, at: number, value: number): number {
  target[at] = value >>> 24
  target[at + 1] = value >>> 16
  target[at + 2] = value >>> 8
  target[at + 3] = value
  return at + 4
}

/** @returns the u16 at that place. */
export function readU16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
}

/** @returns the i16 at that place. */
export function readI16(bytes: Uint8Array, at: number): number {
  return (((bytes[at] as number) << 24) >> 16) | (bytes[at + 1] as number)
}

/** @returns the i32 at that place. */
export function readI32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}

/** @returns the u32 at that place. */
export function readU32(bytes: Uint8Array, at: number): number {
  return readI32(bytes, at) >>> 0
}

/** Bits 32 to 63 of a safe integer in two's complement, as u32. */
export function highOf(value: number): number {
  return Math.floor(value / TWO_32) >>> 0
}

/** Whether the u64 of these halves (u32 each) is exact as a number. */
export function isSafeU64(high: number): boolean {
  return high < HIGH_UNSAFE
}

/** Writes a safe integer, negative ones in two's complement: i64 and u64 alike. */
export function write64(target: Uint8Array, at: number, value: number): void {
  assert(Number.isSafeInteger(value), 'a 64-bit field takes safe integers only')
  writeU32(target, at, highOf(value))
  writeU32(target, at + 4, value >>> 0)
}

/** @returns the number, or −1 if it is above 2^53 − 1. */
export function readU64(bytes: Uint8Array, at: number): number {
  const high = readU32(bytes, at)
  return high < HIGH_UNSAFE ? high * TWO_32 + readU32(bytes, at + 4) : -1
}

/** @returns the number, or NaN if it is beyond ±(2^53 − 1). */
export function readI64(bytes: Uint8Array, at: number): number {
  return joinI64(readI32(bytes, at), readU32(bytes, at + 4))
}

/** The number of an i64 in two halves (high i32, low u32), or NaN if it is beyond ±(2^53 − 1). */
export function joinI64(high: number, low: number): number {
  const value = high * TWO_32 + low
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER ? value : NaN
}
