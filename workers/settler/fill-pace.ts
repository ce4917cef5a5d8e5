/**
 * How long a fill of zeros rests between two pieces. It shares the disk and the processor with its shard: where fresh memory is
 * dear, as on many virtual machines, a MiB of zeros costs a core for milliseconds. Settler thread; one a fill.
 */
import { counterIndex } from '../../src/wire/shard/counters.ts'

/** Measured to keep a writer's p99 under 2 ms. */
const PAUSE_MS = 5
/** While its shard works it rests so many times as long as its last piece took: it has a quarter of a core at most. */
const REST_SHARE = 3

export class FillPace {
  readonly #counters: Float64Array
  #seen: number

  /** @param counters of the shard, which writes them. */
  constructor(counters: SharedArrayBuffer) {
    this.#counters = new Float64Array(counters)
    this.#seen = this.#workDone
  }

  /** Groups written and reads answered. */
  get #workDone(): number {
    return (this.#counters[counterIndex.groups] ?? 0) + (this.#counters[counterIndex.reads] ?? 0)
  }

  /** @param tookMs of the last piece. @returns ms until the next one. */
  pauseMs(tookMs: number): number {
    const workDone = this.#workDone
    const isAtWork = workDone !== this.#seen
    this.#seen = workDone
    return isAtWork ? Math.max(PAUSE_MS, REST_SHARE * tookMs) : PAUSE_MS
  }
}
