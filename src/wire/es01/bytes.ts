/**
 * The integers of ES01: those of all protocols here, and 64 bits that stay exact where a client may name any offset.
 * Pure, any thread. The caller has compared the length first.
 */
import { TWO_32, isSafeU64, readU32, readU64, writeU32 } from '../primitives/u64.ts'

export { readI32, readI64, readU16, readU32, writeU16, writeU32 } from '../primitives/u64.ts'

/** @returns the u64 at that place: a number if that is exact, a bigint above 2^53 − 1. */
export function readU64Exact(bytes: Uint8Array, at: number): number | bigint {
  const high = readU32(bytes, at)
  return isSafeU64(high) ? readU64(bytes, at) : (BigInt(high) << 32n) | BigInt(readU32(bytes, at + 4))
}

/** Writes a whole number from 0, or a bigint below 2^64, as u64. @returns the position after it. */
export function writeU64Exact(target: Uint8Array, at: number, value: number | bigint): number {
  if (typeof value === 'bigint') {
    writeU32(target, at, Number(value >> 32n))
    return writeU32(target, at + 4, Number(value & 0xffff_ffffn))
  }
  const high = Math.floor(value / TWO_32)
  writeU32(target, at, high)
  return writeU32(target, at + 4, value - high * TWO_32)
}
