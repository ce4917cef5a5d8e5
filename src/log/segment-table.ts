/**
 * The sealed segments of one partition, oldest first: what is counted, dropped by retention and compacted. Numbers only;
 * where their bytes lie is another matter. Owned by the partition's log.
 *
 * A place counts from the first segment ever: it stays when older ones are dropped.
 */
import { assert } from '../base/assert.ts'
import { grownFloat64 } from '../base/grow.ts'

const FIRST_CAPACITY = 4
/** Numbers of one segment: base offset, bytes, first receive time, greatest receive time. */
const FIELDS = 4

export interface SegmentNumbers {
  readonly baseOffset: number
  readonly bytes: number
  /** Unix ms; NaN until the group with its first (its last) record is encoded. */
  readonly firstReceiveMs: number
  readonly receiveMsMax: number
}

export class SegmentTable {
  #values = new Float64Array(0)
  #dropped = 0
  #count = 0

  /** Place of the oldest. */
  get first(): number {
    return this.#dropped
  }

  /** Behind the place of the newest. */
  get end(): number {
    return this.#dropped + this.#count
  }

  get count(): number {
    return this.#count
  }

  push(baseOffset: number, bytes: number, firstReceiveMs: number, receiveMsMax: number): void {
    const at = this.#count * FIELDS
    if (at === this.#values.length) {
      this.#values = grownFloat64(this.#values, Math.max(FIRST_CAPACITY * FIELDS, at * 2))
    }
    this.#values[at] = baseOffset
    this.#values[at + 1] = bytes
    this.#values[at + 2] = firstReceiveMs
    this.#values[at + 3] = receiveMsMax
    this.#count++
  }

  at(place: number): SegmentNumbers {
    const at = this.#index(place)
    return {
      baseOffset: this.#values[at] as number,
      bytes: this.#values[at + 1] as number,
      firstReceiveMs: this.#values[at + 2] as number,
      receiveMsMax: this.#values[at + 3] as number
    }
  }

  baseOffset(place: number): number {
    return this.#values[this.#index(place)] as number
  }

  /** Gives the receive time of the group that is encoded to the segments that waited for it. */
  resolve(receiveMs: number): void {
    for (let i = this.#count - 1; i >= 0; i--) {
      const at = i * FIELDS
      if (!Number.isNaN(this.#values[at + 3])) return
      this.#values[at + 3] = receiveMs
      if (Number.isNaN(this.#values[at + 2])) this.#values[at + 2] = receiveMs
    }
  }

  /** Forgets the newest: `end` is what is left. */
  truncate(end: number): void {
    assert(end <= this.end, 'a table is cut within itself')
    this.#count = Math.max(0, end - this.#dropped)
  }

  /** Forgets the oldest, up to `place`. @returns their bytes. */
  dropBefore(place: number): number {
    const count = Math.min(Math.max(0, place - this.#dropped), this.#count)
    let bytes = 0
    for (let i = 0; i < count; i++) bytes += this.#values[i * FIELDS + 1] as number
    this.#values.copyWithin(0, count * FIELDS, this.#count * FIELDS)
    this.#dropped += count
    this.#count -= count
    return bytes
  }

  /** Puts others in the place of [from, to). Later places move. @returns the bytes that are gone. */
  replace(from: number, to: number, others: readonly SegmentNumbers[]): number {
    const kept: SegmentNumbers[] = []
    for (let place = to; place < this.end; place++) kept.push(this.at(place))
    let gone = 0
    for (let place = from; place < to; place++) gone += this.at(place).bytes
    this.truncate(from)
    for (const segment of [...others, ...kept]) {
      this.push(segment.baseOffset, segment.bytes, segment.firstReceiveMs, segment.receiveMsMax)
    }
    return gone - others.reduce((sum, segment) => sum + segment.bytes, 0)
  }

  /** Moves all places up by `count`, down if it is negative. */
  shift(count: number): void {
    this.#dropped += count
  }

  #index(place: number): number {
    assert(place >= this.#dropped && place < this.end, 'a segment of the table')
    return (place - this.#dropped) * FIELDS
  }
}
