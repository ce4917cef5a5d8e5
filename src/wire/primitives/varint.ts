/**
 * Zig-zag varints as RecordBatch v2 has them: varint (i32, up to 5 bytes) and varlong (i64, up to 10 bytes), which is read only.
 * Pure, any thread; no allocation but the reader itself. Reading never goes past the given end, and takes any bytes.
 *
 *   zig-zag   0 −1 1 −2 2 … becomes 0 1 2 3 4 …
 *   bytes     seven bits each, lowest first; the top bit says that another byte follows
 */
import { joinI64 } from './u64.ts'

/** Bytes of an i32 as a varint: 1 … 5. */
export function varintBytes(value: number): number {
  const zigzag = ((value << 1) ^ (value >> 31)) >>> 0
  if (zigzag < 0x80) return 1
  if (zigzag < 0x4000) return 2
  if (zigzag < 0x20_0000) return 3
  return zigzag < 0x1000_0000 ? 4 : 5
}

/** Writes an i32 at target[at…]; the caller has checked the room. @returns the position after it. */
export function writeVarint(target: Uint8Array, at: number, value: number): number {
  let rest = ((value << 1) ^ (value >> 31)) >>> 0
  while (rest >= 0x80) {
    target[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  target[at++] = rest
  return at
}

/** Reads varints out of bytes that nobody vouches for. One per reader, used again and again. */
export class VarintReader {
  /** What was read last: a safe integer, or NaN for a varlong beyond ±(2^53 − 1). */
  value = 0

  /**
   * Reads an i32 from bytes[at, end).
   *
   * @returns the position after it, or −1: cut off at `end`, or more than 32 bits.
   */
  readInt(bytes: Uint8Array, at: number, end: number): number {
    if (at < end) {
      // Nearly every length and delta is one byte.
      const only = bytes[at] as number
      if (only < 0x80) {
        this.value = (only >>> 1) ^ -(only & 1)
        return at + 1
      }
    }
    let zigzag = 0
    for (let shift = 0; shift < 35; shift += 7) {
      if (at >= end) return -1
      const byte = bytes[at++] as number
      zigzag |= (byte & 0x7f) << shift
      if (byte < 0x80) {
        // The fifth byte has room for 4 bits only.
        if (shift === 28 && byte > 0x0f) return -1
        this.value = (zigzag >>> 1) ^ -(zigzag & 1)
        return at
      }
    }
    return -1
  }

  /**
   * Reads an i64 from bytes[at, end).
   *
   * @returns the position after it, or −1: cut off at `end`, or more than 64 bits.
   */
  readLong(bytes: Uint8Array, at: number, end: number): number {
    let low = 0
    let high = 0
    for (let shift = 0; shift < 70; shift += 7) {
      if (at >= end) return -1
      const byte = bytes[at++] as number
      const bits = byte & 0x7f
      if (shift < 32) low |= bits << shift
      if (shift === 28) high |= bits >>> 4
      else if (shift > 28) high |= bits << (shift - 32)
      if (byte < 0x80) {
        // The tenth byte has room for 1 bit only.
        if (shift === 63 && byte > 1) return -1
        const sign = -(low & 1)
        this.value = joinI64((high >>> 1) ^ sign, (((low >>> 1) | (high << 31)) ^ sign) >>> 0)
        return at
      }
    }
    return -1
  }
}
