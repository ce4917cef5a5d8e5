/**
 * Walks the headers of one record, in place. Pure, any thread. RecordCursor has checked before that they add up: here
 * nothing is refused, only asserted.
 */
import { assert } from '../../base/assert.ts'
import { VarintReader } from '../primitives/varint.ts'

const NONE = new Uint8Array(0)

/** Made once and opened on record after record; fields are places in the bytes given to open(). */
export class HeaderCursor {
  nameStart = 0
  nameLength = 0
  valueStart = 0
  /** −1: null. */
  valueLength = -1
  #bytes: Uint8Array = NONE
  #at = 0
  #end = 0
  #left = 0
  readonly #reader = new VarintReader()

  /** Begins before the first of `count` headers in bytes[start, end): RecordCursor's, borrowed until the last next(). */
  open(bytes: Uint8Array, start: number, end: number, count: number): void {
    this.#bytes = bytes
    this.#at = start
    this.#end = end
    this.#left = count
  }

  /** @returns true: the fields are those of one more header, in order. False: there are no more. */
  next(): boolean {
    if (this.#left === 0) {
      // What was inflated may be large: a cursor that waits for the next record must not keep it.
      this.#bytes = NONE
      return false
    }
    this.#left--
    this.nameStart = this.#reader.readInt(this.#bytes, this.#at, this.#end)
    this.nameLength = this.#reader.value
    assert(this.nameStart >= 0 && this.nameLength >= 0, 'headers were checked')
    this.valueStart = this.#reader.readInt(this.#bytes, this.nameStart + this.nameLength, this.#end)
    this.valueLength = this.#reader.value
    assert(this.valueStart >= 0 && this.valueLength >= -1, 'headers were checked')
    this.#at = this.valueStart + Math.max(0, this.valueLength)
    assert(this.#at <= this.#end, 'headers were checked')
    return true
  }
}
