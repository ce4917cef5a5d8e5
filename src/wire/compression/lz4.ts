/**
 * Reads LZ4 frames, as Kafka has them. Pure, any thread; from bytes that nobody vouches for. The checksums of a frame are not
 * computed: those of the batch that it comes in cover its bytes.
 *
 *   frame   magic u32 · flags u8 · sizes u8 · content size u64, if flagged · dictionary u32, never · header checksum u8
 *           · blocks · u32 0 · content checksum u32, if flagged                                       (little-endian)
 *   block   u32 length, bit 31: stored as it is · bytes · checksum u32, if flagged
 *   inside  sequences: token (literals in the high 4 bits, match length − 4 in the low) · more lengths, 255 each · literals
 *           · distance u16 · more lengths. The last one ends behind its literals
 */
import { Output } from './output.ts'

const MAGIC = 0x184d2204
const VERSION_MASK = 0xc0
const VERSION = 0x40
const BLOCK_CHECKSUM = 0x10
const CONTENT_SIZE = 0x08
const CONTENT_CHECKSUM = 0x04
const DICTIONARY = 0x01
const STORED = 0x8000_0000
/** Magic, flags, sizes, header checksum. */
const HEAD_BYTES_MIN = 7
const MATCH_MIN = 4

/** @returns what the frames bytes[start, end) stand for; null: they are none, or stand for more than `limitBytes`. */
export function inflateLz4(bytes: Buffer, start: number, end: number, limitBytes: number): Buffer | null {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length)
  const output = new Output((end - start) * 4, limitBytes)
  let at = start
  do {
    at = readFrame(bytes, view, { at, end }, output)
    if (at < 0) return null
  } while (at < end)
  return output.taken()
}

/** Part of the bytes, from `at` on. */
interface Range {
  readonly at: number
  readonly end: number
}

/** Adds what one frame stands for. @returns the position behind it; −1: it is none, or does not fit. */
function readFrame(bytes: Buffer, view: DataView, { at, end }: Range, output: Output): number {
  if (end - at < HEAD_BYTES_MIN || view.getUint32(at, true) !== MAGIC) return -1
  const flags = bytes[at + 4] as number
  if ((flags & VERSION_MASK) !== VERSION || (flags & DICTIONARY) !== 0) return -1
  const checksumBytes = (flags & BLOCK_CHECKSUM) === 0 ? 0 : 4
  let position = at + HEAD_BYTES_MIN + ((flags & CONTENT_SIZE) === 0 ? 0 : 8)
  for (;;) {
    if (position + 4 > end) return -1
    const head = view.getUint32(position, true)
    position += 4
    if (head === 0) break
    const blockEnd = position + (head % STORED)
    if (blockEnd + checksumBytes > end) return -1
    const isRead =
      head >= STORED ? output.literal(bytes, position, blockEnd) : readBlock(bytes, position, blockEnd, output)
    if (!isRead) return -1
    position = blockEnd + checksumBytes
  }
  position += (flags & CONTENT_CHECKSUM) === 0 ? 0 : 4
  return position <= end ? position : -1
}

/** Adds what a compressed block stands for. @returns false: it is none, or does not fit. */
function readBlock(bytes: Buffer, start: number, end: number, output: Output): boolean {
  let at = start
  while (at < end) {
    const token = bytes[at++] as number
    let literals = token >>> 4
    for (let more = literals === 15 ? 255 : 0; more === 255; literals += more) {
      if (at >= end) return false
      more = bytes[at++] as number
    }
    if (literals > end - at || !output.literal(bytes, at, at + literals)) return false
    at += literals
    if (at === end) return true
    if (at + 2 > end) return false
    const distance = (bytes[at] as number) + (bytes[at + 1] as number) * 256
    at += 2
    let count = token & 15
    for (let more = count === 15 ? 255 : 0; more === 255; count += more) {
      if (at >= end) return false
      more = bytes[at++] as number
    }
    if (!output.repeat(distance, count + MATCH_MIN)) return false
  }
  // Behind a match there must be more.
  return false
}
