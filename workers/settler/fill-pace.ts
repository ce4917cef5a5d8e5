/**
 * How long a fill of zeros rests between two pieces. It shares the disk and the processor with the shards: where fresh memory is
 * dear, as on many virtual machines, a MiB of zeros costs a core for milliseconds. Settler thread; one for all fills.
 */
import { limits } from '../../src/model/limits.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'

/** At the least: enough for a writer that begins. */
const PAUSE_MS = 5
/** Beside a shard that works it rests so many times as long as its last piece took: it has a ninth of a core at most. */
const REST_SHARE = 8

export class FillPace {
  readonly #counters: () => Iterable<SharedArrayBuffer>
  #seen = 0
  /** When a shard was last seen to work; none was yet: long ago. */
  #workedMs = -Infinity

  /** @param counters of all shards, each of which writes its own. */
  constructor(counters: () => Iterable<SharedArrayBuffer>) {
    this.#counters = counters
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

  /**
   * A shard that worked a moment ago works again soon: whoever wrote starts a reader now.
   * @param tookMs of the last piece.
   * @param nowMs on the clock of performance.now().
   * @returns ms until the next one.
   */
  nextPauseMs(tookMs: number, nowMs: number): number {
    const workDone = this.#workDone()
    if (workDone !== this.#seen) this.#workedMs = nowMs
    this.#seen = workDone
    if (nowMs - this.#workedMs >= limits.fillQuietMs) return PAUSE_MS
    return Math.min(Math.max(PAUSE_MS, REST_SHARE * tookMs), limits.fillRestMsMax)
  }
}
