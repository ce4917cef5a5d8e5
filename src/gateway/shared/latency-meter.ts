/** How long requests of one kind take, from a clock into a histogram. Main thread. */
import type { Clock } from '../../base/clock.ts'
import { Histogram } from '../../base/histogram.ts'

/** Upper bounds of the buckets, seconds: a request that waits for one sync takes some milliseconds. */
const LATENCY_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** @returns an empty histogram of latencies, in seconds. */
export function latencyHistogram(): Histogram {
  return new Histogram(LATENCY_SECONDS)
}

export class LatencyMeter {
  readonly #clock: Clock
  readonly #histogram: Histogram

  constructor(clock: Clock, histogram: Histogram) {
    this.#clock = clock
    this.#histogram = histogram
  }

  /** @returns what end() is to be given. */
  begin(): number {
    return this.#clock.monotonicMs()
  }

  /** Counts a request that began then. */
  end(startMs: number): void {
    this.#histogram.observe((this.#clock.monotonicMs() - startMs) / 1000)
  }
}
