/**
 * When the requests of an open loop are due: a fixed grid, whatever the broker does. A request that leaves late keeps
 * its place on the grid, so that the wait of a stalled broker is in the latencies (no coordinated omission).
 * Pure; the caller brings the time.
 */
import { assert } from '../src/base/assert.ts'

export class Pacer {
  /** Between two requests. */
  readonly intervalMs: number
  #startMs = 0
  #taken = 0

  /** @param ratePerSecond requests per second, above 0. */
  constructor(ratePerSecond: number) {
    assert(ratePerSecond > 0, 'an open loop needs a rate above 0')
    this.intervalMs = 1000 / ratePerSecond
  }

  /** The first request is due at `nowMs`. */
  start(nowMs: number): void {
    this.#startMs = nowMs
    this.#taken = 0
  }

  /** Intended time of the next request. Counted from the start, so rounding never adds up. */
  nextDueMs(): number {
    return this.#startMs + this.#taken * this.intervalMs
  }

  /** Takes the next request if it is due. @returns its intended time, or −1. */
  takeDue(nowMs: number): number {
    const due = this.nextDueMs()
    if (due > nowMs) return -1
    this.#taken++
    return due
  }
}
