/**
 * Reads snappy: one raw block, or the framing of Java clients. Pure, any thread; from bytes that nobody vouches for.
 *
 *   framing   0x82 "SNAPPY" 0x00 · version i32 · least version i32 · blocks: i32 length · raw block
 *   raw       varint length of what comes out · elements
 *   element   tag: bits 0–1 kind, the others length or part of a distance
 *     0 literal   length − 1 in the tag up to 59; 60 … 63: in the next 1 … 4 bytes, little-endian
 *     1 copy      length 4 … 11 · distance: 3 bits of the tag, 1 byte
 *     2, 3 copy   length 1 … 64 · distance: 2 or 4 bytes, little-endian
 */
import { readI32 } from '../primitives/u64.ts'
import { Output } from './output.ts'

const FRAMING_MARK = Buffer.from([0x82, 0x53, 0x4e, 0x41, 0x50, 0x50, 0x59, 0])
const FRAMING_HEAD_BYTES = 16
/** A copy of 64 bytes takes 3: no block grows more. */
const GROWTH_MAX = 22

/** @returns what bytes[start, end) stand for; null: they are not snappy, or stand for more than `limitBytes`. */
export function inflateSnappy(bytes: Buffer, start: number, end: number, limitBytes: number): Buffer | null {
  const output = new Output((end - start) * 4, limitBytes)
  if (!isFramed(bytes, start, end)) return readBlock(bytes, start, end, output) ? output.taken() : null
  for (let at = start + FRAMING_HEAD_BYTES; at < end;) {
    if (at + 4 > end) return null
    const blockEnd = at + 4 + readI32(bytes, at)
    if (blockEnd < at + 4 || blockEnd > end || !readBlock(bytes, at + 4, blockEnd, output)) return null
    at = blockEnd
  }
  return output.taken()
}

function isFramed(bytes: Buffer, start: number, end: number): boolean {
  return end - start >= FRAMING_HEAD_BYTES && FRAMING_MARK.every((byte, i) => bytes[start + i] === byte)
}

/** Adds what one raw block stands for. @returns false: it is not one, or does not fit. */
function readBlock(bytes: Buffer, start: number, end: number, output: Output): boolean {
  let at = start
  let length = 0
  for (let unit = 1; ; unit *= 0x80) {
    if (at >= end || unit > 2 ** 28) return false
    const byte = bytes[at++] as number
    length += (byte & 0x7f) * unit
    if (byte < 0x80) break
  }
  if (length > (end - start) * GROWTH_MAX) return false
  const wanted = output.length + length
  while (at < end) {
    at = readElement(bytes, at, end, output)
    if (at < 0 || output.length > wanted) return false
  }
  return output.length === wanted
}

/** @returns the position behind the element at `at`; −1: it is none. */
function readElement(bytes: Buffer, at: number, end: number, output: Output): number {
  const tag = bytes[at] as number
  const kind = tag & 3
  const high = tag >>> 2
  if (kind === 0) {
    const lengthBytes = high < 60 ? 0 : high - 59
    const from = at + 1 + lengthBytes
    if (from > end) return -1
    const to = from + 1 + (lengthBytes === 0 ? high : littleEndian(bytes, at + 1, lengthBytes))
    return to <= end && output.literal(bytes, from, to) ? to : -1
  }
  const distanceBytes = kind === 1 ? 1 : kind === 2 ? 2 : 4
  const behind = at + 1 + distanceBytes
  if (behind > end) return -1
  const low = littleEndian(bytes, at + 1, distanceBytes)
  const distance = kind === 1 ? (tag >>> 5) * 256 + low : low
  const count = kind === 1 ? 4 + (high & 7) : 1 + high
  return output.repeat(distance, count) ? behind : -1
}

function littleEndian(bytes: Buffer, at: number, count: number): number {
  let value = 0
  for (let i = count - 1; i >= 0; i--) value = value * 256 + (bytes[at + i] as number)
  return value
}
