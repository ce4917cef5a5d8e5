/**
 * A set of ordinals, one bit each: records that a pass drops, batches that it does not look into. Owned by one pass; any
 * one thread. Memory is taken in pieces of 64 KiB where marks are set, so marks that are rare cost nearly nothing.
 */

const PIECE_BYTES = 64 * 1024
const PIECE_BITS = PIECE_BYTES * 8

export class Marks {
  #count = 0
  readonly #pieces: (Uint8Array | undefined)[] = []

  /** Ordinals in the set. */
  get count(): number {
    return this.#count
  }

  /** @returns false if it was in the set already. */
  add(ordinal: number): boolean {
    const index = Math.floor(ordinal / PIECE_BITS)
    const piece = (this.#pieces[index] ??= new Uint8Array(PIECE_BYTES))
    const bit = ordinal % PIECE_BITS
    const byte = piece[bit >>> 3] as number
    const mask = 1 << (bit & 7)
    if ((byte & mask) !== 0) return false
    piece[bit >>> 3] = byte | mask
    this.#count++
    return true
  }

  has(ordinal: number): boolean {
    const piece = this.#pieces[Math.floor(ordinal / PIECE_BITS)]
    if (piece === undefined) return false
    const bit = ordinal % PIECE_BITS
    return ((piece[bit >>> 3] as number) & (1 << (bit & 7))) !== 0
  }

  /** Whether any ordinal of [start, end) is in the set. */
  hasAny(start: number, end: number): boolean {
    let at = start
    while (at < end) {
      const index = Math.floor(at / PIECE_BITS)
      const piece = this.#pieces[index]
      if (piece === undefined) {
        at = (index + 1) * PIECE_BITS
        continue
      }
      const bit = at % PIECE_BITS
      const byte = piece[bit >>> 3] as number
      if (byte === 0) at += 8 - (bit & 7)
      else if ((byte & (1 << (bit & 7))) !== 0) return true
      else at++
    }
    return false
  }
}
