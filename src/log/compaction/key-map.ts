/**
 * The newest record of each key, in memory of a fixed size. Owned by one compaction pass; any one thread.
 *
 * Open addressing over typed arrays, 24 bytes a place, three quarters of the places used at most. A key is known by a
 * 128-bit fingerprint under a secret of the pass (key-hash.ts), never by its bytes, so long keys cost no more than short
 * ones. Two of n keys share a fingerprint with odds of n² / 2^129: for a billion keys in one pass, 1 to 7 × 10^20. That is
 * far below the odds of a disk returning wrong bytes that pass their checksum.
 *
 *   words      4 × i32   fingerprint                     its first word modulo the places is where a key is looked for
 *   ordinals   f64       ordinal of the record + 1       0: the place is empty
 */
import { assert } from '../../base/assert.ts'
import { freeMemory } from '../../base/free-memory.ts'
import { KeyHash } from './key-hash.ts'

/** Bytes of one place. */
export const KEY_PLACE_BYTES = 24
/** Above this share of used places, linear probing takes long walks (8 places for a key that is not there). */
const USED_SHARE_MAX = 0.75
const PLACES_MIN = 2

/** put() found no record of the key before. */
export const KEY_NEW = -1
/** put() had no place for another key. Keys that are there can still be put. */
export const KEY_MAP_FULL = -2

export class KeyMap {
  /** Keys it takes. At least 1. */
  readonly keysMax: number
  #keyCount = 0
  readonly #places: number
  readonly #words: Int32Array<ArrayBuffer>
  readonly #ordinals: Float64Array<ArrayBuffer>
  readonly #hash: KeyHash

  /**
   * @param bytes memory it takes, rounded down to whole places; too few for two places count as two.
   * @param secret KEY_SECRET_BYTES random bytes that no caller knows.
   */
  constructor(bytes: number, secret: Uint8Array) {
    this.#places = Math.max(PLACES_MIN, Math.floor(bytes / KEY_PLACE_BYTES))
    this.keysMax = Math.floor(this.#places * USED_SHARE_MAX)
    this.#words = new Int32Array(this.#places * 4)
    this.#ordinals = new Float64Array(this.#places)
    this.#hash = new KeyHash(secret)
  }

  /** Keys in it. */
  get keyCount(): number {
    return this.#keyCount
  }

  /**
   * Makes `ordinal` the newest record of the key bytes[start, end).
   *
   * @param ordinal above that of every record put before.
   * @returns the ordinal of the record that was the key's newest; or KEY_NEW; or KEY_MAP_FULL, and nothing is changed.
   */
  put(bytes: Uint8Array, start: number, end: number, ordinal: number): number {
    const place = this.#find(bytes, start, end)
    const before = (this.#ordinals[place] as number) - 1
    if (before >= 0) {
      assert(before < ordinal, 'records are mapped in the order of the log')
      this.#ordinals[place] = ordinal + 1
      return before
    }
    if (this.#keyCount === this.keysMax) return KEY_MAP_FULL
    const words = this.#words
    const hash = this.#hash
    words[place * 4] = hash.word0
    words[place * 4 + 1] = hash.word1
    words[place * 4 + 2] = hash.word2
    words[place * 4 + 3] = hash.word3
    this.#ordinals[place] = ordinal + 1
    this.#keyCount++
    return KEY_NEW
  }

  /** Whether a record of the key bytes[start, end) was put. */
  has(bytes: Uint8Array, start: number, end: number): boolean {
    return (this.#ordinals[this.#find(bytes, start, end)] as number) > 0
  }

  /** Forgets every key. The memory stays. */
  clear(): void {
    this.#ordinals.fill(0)
    this.#keyCount = 0
  }

  /** Gives the memory back at once. The map must not be used any more. */
  free(): void {
    freeMemory(this.#words.buffer)
    freeMemory(this.#ordinals.buffer)
  }

  /** Sets the hash to the key's. @returns its place, or the empty one where it belongs; there always is one. */
  #find(bytes: Uint8Array, start: number, end: number): number {
    const hash = this.#hash
    hash.hash(bytes, start, end)
    const words = this.#words
    let place = (hash.word0 >>> 0) % this.#places
    while (this.#ordinals[place] !== 0) {
      const at = place * 4
      if (
        words[at] === hash.word0 &&
        words[at + 1] === hash.word1 &&
        words[at + 2] === hash.word2 &&
        words[at + 3] === hash.word3
      ) {
        return place
      }
      place = place + 1 === this.#places ? 0 : place + 1
    }
    return place
  }
}
