/**
 * The bytes that a decoder has made so far: it grows as they come, never beyond a limit, which is looked at before anything
 * is written. Pure, any thread; one for each decoding.
 */
import { copyBytes } from '../../base/copy.ts'

const FIRST_BYTES = 4096
/** From this length on a copy within the buffer is left to the engine. */
const LONG_COPY_BYTES = 32

export class Output {
  bytes: Buffer
  length = 0
  readonly #limitBytes: number

  /** @param expectedBytes a guess; a wrong one costs copies. */
  constructor(expectedBytes: number, limitBytes: number) {
    this.#limitBytes = limitBytes
    this.bytes = Buffer.allocUnsafeSlow(Math.min(Math.max(FIRST_BYTES, expectedBytes), limitBytes))
  }

  /** Adds source[start, end). @returns false: beyond the limit, and nothing is added. */
  literal(source: Buffer, start: number, end: number): boolean {
    if (!this.#reserve(end - start)) return false
    this.length = copyBytes(source, start, end, this.bytes, this.length)
    return true
  }

  /**
   * Adds again what lies `distance` bytes back; what it adds counts, so a short distance repeats itself.
   * @returns false: there is nothing so far back, or it is beyond the limit, and nothing is added.
   */
  repeat(distance: number, count: number): boolean {
    if (distance <= 0 || distance > this.length || !this.#reserve(count)) return false
    const { bytes, length: at } = this
    const from = at - distance
    this.length = at + count
    if (count < LONG_COPY_BYTES) for (let i = 0; i < count; i++) bytes[at + i] = bytes[from + i] as number
    else repeatLong(bytes, from, at, count)
    return true
  }

  /** What it holds. */
  taken(): Buffer {
    return this.bytes.subarray(0, this.length)
  }

  #reserve(count: number): boolean {
    const needed = this.length + count
    if (needed > this.#limitBytes) return false
    if (needed <= this.bytes.length) return true
    const grown = Buffer.allocUnsafeSlow(Math.min(this.#limitBytes, Math.max(needed, this.bytes.length * 2)))
    this.bytes.copy(grown, 0, 0, this.length)
    this.bytes = grown
    return true
  }
}

/** What lies between `from` and `at` again and again; each copy is of all that is there, so there are few. */
function repeatLong(bytes: Buffer, from: number, at: number, count: number): void {
  const distance = at - from
  let made = Math.min(distance, count)
  bytes.copyWithin(at, from, from + made)
  while (made < count) {
    const length = Math.min(made, count - made)
    bytes.copyWithin(at + made, at, at + length)
    made += length
  }
}
