/**
 * How long a fill of zeros rests between two pieces. It shares the disk and the processor with the shards: where fresh memory is
 * dear, as on many virtual machines, a MiB of zeros costs a core for milliseconds. Settler thread; one a fill.
 */
import { limits } from '../../src/model/limits.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'

/** While nobody works: enough for a writer that begins. */
const PAUSE_MS = 5
/** While a shard works it rests so many times as long as its last piece took: it has a quarter of a core at most. */
const REST_SHARE = 3

export class FillPace {
  readonly #counters: () => Iterable<SharedArrayBuffer>
  #seen: number

  /** @param counters of all shards, each of which writes its own. */
  constructor(counters: () => Iterable<SharedArrayBuffer>) {
    this.#counters = counters
    this.#seen = this.#workDone()
  }

  /** Groups written and reads answered. */
  #workDone(): number {
    let sum = 0
    for (const memory of this.#counters()) {
      const counters = new Float64Array(memory)
      sum += (counters[counterIndex.groups] ?? 0) + (counters[counterIndex.reads] ?? 0)
    }
    return sum
  }

  /** @param tookMs of the last piece. @returns ms until the next one. */
  nextPauseMs(tookMs: number): number {
    const workDone = this.#workDone()
    const isAtWork = workDone !== this.#seen
    this.#seen = workDone
    return isAtWork ? Math.min(Math.max(PAUSE_MS, REST_SHARE * tookMs), limits.fillRestMsMax) : PAUSE_MS
  }
}
