/**
 * How long a fill of zeros rests between two pieces. It shares the disk and the processor with the shards: where fresh memory is
 * dear, as on many virtual machines, a MiB of zeros costs a core for milliseconds. Settler thread; one for all fills.
 */
import { limits } from '../../src/model/limits.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'

/** While all are quiet: enough for a writer that begins. */
const PAUSE_MS = 5
/** Beside a shard that writes it rests so many times as long as its last piece took: it has a ninth of a core at most. */
const REST_SHARE = 8

/** What the shards did, all together. */
interface Work {
  readonly groups: number
  readonly reads: number
}

export class FillPace {
  readonly #counters: () => Iterable<SharedArrayBuffer>
  #seen: Work = { groups: 0, reads: 0 }
  /** When a shard was last seen to write or to be read; none was yet: long ago. */
  #workedMs = -Infinity

  /** @param counters of all shards, each of which writes its own. */
  constructor(counters: () => Iterable<SharedArrayBuffer>) {
    this.#counters = counters
  }

  #workDone(): Work {
    let groups = 0
    let reads = 0
    for (const memory of this.#counters()) {
      const counters = new Float64Array(memory)
      groups += counters[counterIndex.groups] ?? 0
      reads += counters[counterIndex.reads] ?? 0
    }
    return { groups, reads }
  }

  /**
   * Who writes needs the slot soon. Who has just written or reads needs the disk and the processor, and so does who starts a
   * reader of what was written: there it rests as long as ever, until all were quiet for a while.
   * @param tookMs of the last piece.
   * @param nowMs on the clock of performance.now().
   * @returns ms until the next one.
   */
  nextPauseMs(tookMs: number, nowMs: number): number {
    const seen = this.#seen
    const done = this.#workDone()
    this.#seen = done
    const isWriting = done.groups !== seen.groups
    if (isWriting || done.reads !== seen.reads) this.#workedMs = nowMs
    if (isWriting) return Math.min(Math.max(PAUSE_MS, REST_SHARE * tookMs), limits.fillRestMsMax)
    return nowMs - this.#workedMs < limits.fillQuietMs ? limits.fillRestMsMax : PAUSE_MS
  }
}
