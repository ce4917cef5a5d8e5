/**
 * Counts what a load got: requests, records, bytes, latencies, failures. One owner, one thread. Latencies are whole
 * microseconds in a histogram with three significant digits, up to ten minutes.
 */
import { createHistogram } from 'node:perf_hooks'

const HIGHEST_US = 600_000_000

/** Milliseconds; all 0 if nothing was counted. */
export interface Latencies {
  readonly p50Ms: number
  readonly p90Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

export interface LoadFigures {
  readonly seconds: number
  readonly requests: number
  readonly records: number
  /** Keys and values, without any framing. */
  readonly bytes: number
  readonly recordsPerSecond: number
  readonly bytesPerSecond: number
  /** From sending a request to its answer. */
  readonly latency: Latencies
  readonly errors: number
  /** The reason of the first; null: none. */
  readonly firstError: string | null
}

export class LoadMeter {
  readonly #latencies = createHistogram({ lowest: 1, highest: HIGHEST_US, figures: 3 })
  #startedMs = performance.now()
  #requests = 0
  #bytes = 0
  #errors = 0
  #firstError: string | null = null
  #underWay = 0
  records = 0

  get errors(): number {
    return this.#errors
  }

  /** Forgets what was counted but failures: the time of measuring begins. */
  restart(): void {
    this.#latencies.reset()
    this.#startedMs = performance.now()
    this.#requests = 0
    this.#bytes = 0
    this.records = 0
  }

  /** Requests that have no outcome yet. */
  get underWay(): number {
    return this.#underWay
  }

  /** A request leaves; count or fail tells of its outcome. */
  begin(): void {
    this.#underWay++
  }

  /** @param sentMs performance.now() when the request left. */
  count(sentMs: number, records: number, bytes: number): void {
    this.#underWay--
    const tookUs = Math.round((performance.now() - sentMs) * 1000)
    this.#latencies.record(Math.min(HIGHEST_US, Math.max(1, tookUs)))
    this.#requests++
    this.records += records
    this.#bytes += bytes
  }

  fail(error: unknown): void {
    this.#underWay--
    this.#errors++
    this.#firstError ??= error instanceof Error ? error.message : String(error)
  }

  read(): LoadFigures {
    const seconds = Math.max(0.001, (performance.now() - this.#startedMs) / 1000)
    const { records } = this
    const at = (percentile: number): number =>
      this.#requests === 0 ? 0 : Number(this.#latencies.percentile(percentile)) / 1000
    return {
      seconds,
      requests: this.#requests,
      records,
      bytes: this.#bytes,
      recordsPerSecond: records / seconds,
      bytesPerSecond: this.#bytes / seconds,
      latency: {
        p50Ms: at(50),
        p90Ms: at(90),
        p99Ms: at(99),
        maxMs: this.#requests === 0 ? 0 : this.#latencies.max / 1000
      },
      errors: this.#errors,
      firstError: this.#firstError
    }
  }
}
