/**
 * Latencies in an HDR histogram: whole microseconds, three significant digits, up to ten minutes.
 * One owner per recorder, on the thread that measures. Values above the range count as the largest one, never get lost.
 */
import { build } from 'hdr-histogram-js'

/** Percentiles in milliseconds. All are 0 when nothing was recorded. */
export interface LatencySummary {
  readonly count: number
  readonly meanMs: number
  readonly p50Ms: number
  readonly p90Ms: number
  readonly p99Ms: number
  readonly p999Ms: number
  readonly maxMs: number
}

/** The percentiles that tables and charts show, in order. */
export const percentileFields = ['p50Ms', 'p90Ms', 'p99Ms', 'p999Ms', 'maxMs'] as const
export const percentileNames: Readonly<Record<(typeof percentileFields)[number], string>> = {
  p50Ms: 'p50',
  p90Ms: 'p90',
  p99Ms: 'p99',
  p999Ms: 'p99.9',
  maxMs: 'max'
}

/** Ten minutes: longer than any timeout of a run. */
const HIGHEST_US = 600_000_000

/** Records latencies of one window. */
export class LatencyRecorder {
  readonly #histogram = build({
    bitBucketSize: 32,
    autoResize: false,
    lowestDiscernibleValue: 1,
    highestTrackableValue: HIGHEST_US,
    numberOfSignificantValueDigits: 3,
    useWebAssembly: false
  })

  /** Records one latency in milliseconds; below one microsecond it counts as one. */
  record(ms: number): void {
    this.#histogram.recordValue(Math.min(HIGHEST_US, Math.max(1, Math.round(ms * 1000))))
  }

  reset(): void {
    this.#histogram.reset()
  }

  summarise(): LatencySummary {
    const histogram = this.#histogram
    const at = (percentile: number): number =>
      histogram.totalCount === 0 ? 0 : histogram.getValueAtPercentile(percentile) / 1000
    return {
      count: histogram.totalCount,
      meanMs: histogram.totalCount === 0 ? 0 : histogram.mean / 1000,
      p50Ms: at(50),
      p90Ms: at(90),
      p99Ms: at(99),
      p999Ms: at(99.9),
      maxMs: histogram.totalCount === 0 ? 0 : histogram.maxValue / 1000
    }
  }
}
