/**
 * Counts of observations by size, as Prometheus shows them: fixed bounds, and the sum. Any thread; one writer.
 * The numbers lie in an array of the caller's, which may be shared memory: then other threads read them a moment old.
 *
 *   memory   count ≤ bound 0 · … · count ≤ last bound · count above it · sum      (each count of its bucket alone)
 */
import { assert } from './assert.ts'

/** What a histogram has counted. */
export interface HistogramFigures {
  /** Upper bounds, rising; the last bucket has none. */
  readonly bounds: readonly number[]
  /** Observations of each bucket alone: one more than there are bounds. */
  readonly counts: readonly number[]
  readonly sum: number
}

/** Slots that a histogram with so many bounds takes. */
export function histogramSlots(boundCount: number): number {
  return boundCount + 2
}

export class Histogram {
  readonly bounds: readonly number[]
  readonly #memory: Float64Array<ArrayBufferLike>

  /** @param memory histogramSlots(bounds.length) numbers; left out: of its own. */
  constructor(
    bounds: readonly number[],
    memory: Float64Array<ArrayBufferLike> = new Float64Array(histogramSlots(bounds.length))
  ) {
    assert(memory.length === histogramSlots(bounds.length), 'a histogram fills its memory')
    this.bounds = bounds
    this.#memory = memory
  }

  /** @cost a walk over the bounds, no allocation. */
  observe(value: number): void {
    const { bounds } = this
    const memory = this.#memory
    let bucket = 0
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++
    memory[bucket] = (memory[bucket] as number) + 1
    memory[bounds.length + 1] = (memory[bounds.length + 1] as number) + value
  }

  read(): HistogramFigures {
    const { bounds } = this
    const numbers = [...this.#memory]
    return { bounds, counts: numbers.slice(0, -1), sum: numbers[bounds.length + 1] ?? 0 }
  }
}
