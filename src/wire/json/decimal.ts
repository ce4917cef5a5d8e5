/** Unsigned integers as decimal digits in a buffer, exact for 64 bits. Pure; any thread; nothing is allocated below 2^53. */
import { TWO_32 } from '../primitives/u64.ts'

const BILLION = 1_000_000_000
/** High halves below this make a safe integer. */
const SAFE_HIGH_END = 0x20_0000

/** Most digits of a u64. */
export const U64_DIGITS = 20

function digitCountOf(value: number): number {
  let count = 1
  for (let bound = 10; value >= bound && count < 10; bound *= 10) count++
  return count
}

/** Writes `value` < 2^32 in exactly `count` digits, zeros in front. */
function writeDigits(target: Buffer, at: number, value: number, count: number): number {
  let rest = value
  for (let i = at + count - 1; i >= at; i--) {
    const tenth = Math.floor(rest / 10)
    target[i] = 0x30 + (rest - tenth * 10)
    rest = tenth
  }
  return at + count
}

function writeSafe(target: Buffer, at: number, value: number): number {
  if (value < TWO_32) return writeDigits(target, at, value, digitCountOf(value))
  const billions = Math.floor(value / BILLION)
  return writeDigits(target, writeSafe(target, at, billions), value - billions * BILLION, 9)
}

/** Writes the u64 high × 2^32 + low at target[at…]; the caller has checked the room. @returns the position after it. */
export function writeDecimal(target: Buffer, at: number, high: number, low: number): number {
  if (high < SAFE_HIGH_END) return writeSafe(target, at, high * TWO_32 + low)
  return at + target.write(((BigInt(high) << 32n) | BigInt(low)).toString(), at, 'latin1')
}
