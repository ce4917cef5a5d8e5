/**
 * Names in frames: UTF-8 bytes to strings, checked. A listener reads the same few topics over and over, so a small
 * table remembers strings by their bytes. One owner per instance; any thread.
 */
import { isUtf8 } from 'node:buffer'
import { readU16 } from './bytes.ts'

/** Slots of the table, a power of two: a collision only costs the decoding. */
const SLOTS = 64
/** Longer names are no valid topics: they are decoded for the error text and not remembered. */
const REMEMBERED_BYTES_MAX = 256

export class NameReader {
  readonly #bytes: (Buffer | undefined)[] = new Array<Buffer | undefined>(SLOTS).fill(undefined)
  readonly #texts: string[] = new Array<string>(SLOTS).fill('')

  /** @returns the name in bytes[start, end), or null if it is not UTF-8. @cost no allocation for a remembered name. */
  read(bytes: Buffer, start: number, end: number): string | null {
    const length = end - start
    if (length === 0) return ''
    const slot = (length * 31 + (bytes[start] as number) * 7 + (bytes[end - 1] as number)) & (SLOTS - 1)
    const known = this.#bytes[slot]
    if (known !== undefined && known.length === length && known.compare(bytes, start, end) === 0) {
      return this.#texts[slot] as string
    }
    if (!isUtf8(bytes.subarray(start, end))) return null
    const text = bytes.toString('utf8', start, end)
    if (length <= REMEMBERED_BYTES_MAX) {
      this.#bytes[slot] = Buffer.from(bytes.subarray(start, end))
      this.#texts[slot] = text
    }
    return text
  }
}

/** @returns the topic that stands first in the payload bytes[start, end) of a produce or consume; null if it is not whole, or not UTF-8. */
export function readTopic(bytes: Buffer, start: number, end: number, names: NameReader): string | null {
  if (end - start < 2) return null
  const topicStart = start + 2
  const topicEnd = topicStart + readU16(bytes, start)
  return topicEnd > end ? null : names.read(bytes, topicStart, topicEnd)
}

/** Is the topic that stands first in that payload whole, UTF-8 or not? */
export function hasWholeTopic(payload: Buffer): boolean {
  return payload.length >= 2 && payload.length >= 2 + readU16(payload, 0)
}
