/**
 * Big-endian integers of ES01 in buffers, without bounds checks: the caller has compared the length first.
 * Pure, any thread. They read and write single bytes, because that works at any alignment and in shared memory.
 */
const TWO_32 = 0x1_0000_0000

/** @returns the u16 at that place. */
export function readU16(bytes: Uint8Array, at: number): number {
  return ((bytes[at] as number) << 8) | (bytes[at + 1] as number)
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

/** Writes the low 16 bits of value. @returns the position after them. */
export function writeU16(target: Uint8Array, at: number, value: number): number {
  target[at] = value >>> 8
  target[at + 1] = value
  return at + 2
}

/** Writes the low 32 bits of value: a u32, or an i32 in two's complement. @returns the position after them. */
export function writeU32(target: Uint8Array, at: number, value: number): number {
  target[at] = value >>> 24
  target[at + 1] = value >>> 16
  target[at + 2] = value >>> 8
  target[at + 3] = value
  return at + 4
}

/** @returns the u64 at that place: a number if that is exact, a bigint above 2^53 − 1. */
export function readU64Exact(bytes: Uint8Array, at: number): number | bigint {
  const high = readU32(bytes, at)
  const low = readU32(bytes, at + 4)
  return high > 0x1f_ffff ? (BigInt(high) << 32n) | BigInt(low) : high * TWO_32 + low
}

/** @returns the i64 at that place as the nearest number; exact from −2^53 to 2^53. */
export function readI64(bytes: Uint8Array, at: number): number {
  return readI32(bytes, at) * TWO_32 + readU32(bytes, at + 4)
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
