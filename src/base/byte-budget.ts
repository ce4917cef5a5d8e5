/**
 * A bound on bytes held at once, shared by everyone who was given the same instance. Main thread only.
 * Invariant: 0 ≤ used ≤ limit, but for one holder that asked for more than the whole limit while nothing else was held,
 * and for what is here already and had to be counted.
 */
import { assert } from './assert.ts'

export class ByteBudget {
  readonly limitBytes: number
  #usedBytes = 0
  readonly #waiting: (() => void)[] = []

  constructor(limitBytes: number) {
    this.limitBytes = limitBytes
  }

  get usedBytes(): number {
    return this.#usedBytes
  }

  /** The most that can be reserved now. Infinity while nothing is held: one need may be larger than the whole. */
  get roomBytes(): number {
    return this.#usedBytes === 0 ? Infinity : Math.max(0, this.limitBytes - this.#usedBytes)
  }

  /** @returns false, and nothing is held, if that much is not free. */
  tryReserve(bytes: number): boolean {
    if (this.#usedBytes > 0 && this.#usedBytes + bytes > this.limitBytes) return false
    this.#usedBytes += bytes
    return true
  }

  /** Counts bytes that are in memory already, also beyond the limit: then nobody gets more until as much came back. */
  charge(bytes: number): void {
    this.#usedBytes += bytes
  }

  /** Takes back what was reserved in this very step and not used. Nobody has missed it since, so nobody is called. */
  undo(bytes: number): void {
    this.#usedBytes -= bytes
    assert(this.#usedBytes >= 0, 'more bytes undone than reserved')
  }

  /** Gives back what tryReserve granted or charge counted, then calls everyone who waits; they try again. */
  release(bytes: number): void {
    this.#usedBytes -= bytes
    assert(this.#usedBytes >= 0, 'more bytes released than reserved')
    if (this.#waiting.length === 0) return
    for (const callback of this.#waiting.splice(0)) callback()
  }

  /** Calls back once after the next release. */
  whenReleased(callback: () => void): void {
    this.#waiting.push(callback)
  }
}
