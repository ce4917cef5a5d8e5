/**
 * What one measured window saw: records, bytes, requests, latencies, records per slice of 100 ms, and the longest time
 * in which no answer came.
 * Answers outside the window count for nothing. One owner, main thread of the generator. Never allocates per answer.
 */
import { LatencyRecorder } from './latency.ts'
import type { LatencySummary } from './latency.ts'

/** Width of a slice of the throughput chart. */
export const SLICE_MS = 100
/** Slices kept: ten minutes. */
const SLICES_MAX = 6000

/** The sums of a closed window. `bytes` are keys and values, without any framing. */
export interface WindowSums {
  readonly seconds: number
  readonly requests: number
  readonly records: number
  readonly bytes: number
  readonly latency: LatencySummary
  /** Records per second in each whole slice. */
  readonly slices: readonly number[]
  /** The longest time without an answer, also before the first and after the last one of the window. */
  readonly longestGapMs: number
}

export class Meter {
  readonly #latency = new LatencyRecorder()
  readonly #slices = new Float64Array(SLICES_MAX)
  #openedMs = -1
  #closedMs = -1
  #requests = 0
  #records = 0
  #bytes = 0
  #lastAnswerMs = 0
  #longestGapMs = 0
  /** Bytes answered since the meter was made, in the window or not: what has filled the log. */
  totalBytes = 0

  open(nowMs: number): void {
    this.#latency.reset()
    this.#slices.fill(0)
    this.#openedMs = nowMs
    this.#closedMs = -1
    this.#requests = 0
    this.#records = 0
    this.#bytes = 0
    this.#lastAnswerMs = nowMs
    this.#longestGapMs = 0
  }

  close(nowMs: number): void {
    this.#noteGap(nowMs)
    this.#closedMs = nowMs
  }

  get isOpen(): boolean {
    return this.#openedMs >= 0 && this.#closedMs < 0
  }

  get windowMs(): number {
    return (this.#closedMs < 0 ? performance.now() : this.#closedMs) - this.#openedMs
  }

  /** Counts one answer. @param sinceMs when the request was sent, or was due in an open loop. */
  count(nowMs: number, sinceMs: number, records: number, bytes: number): void {
    this.totalBytes += bytes
    if (!this.isOpen) return
    this.#noteGap(nowMs)
    this.#latency.record(nowMs - sinceMs)
    this.#requests++
    this.#records += records
    this.#bytes += bytes
    const slice = Math.floor((nowMs - this.#openedMs) / SLICE_MS)
    if (slice >= 0 && slice < SLICES_MAX) this.#slices[slice] = (this.#slices[slice] ?? 0) + records
  }

  #noteGap(nowMs: number): void {
    this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastAnswerMs)
    this.#lastAnswerMs = nowMs
  }

  sums(): WindowSums {
    const windowMs = this.windowMs
    const wholeSlices = Math.min(SLICES_MAX, Math.floor(windowMs / SLICE_MS))
    return {
      seconds: windowMs / 1000,
      requests: this.#requests,
      records: this.#records,
      bytes: this.#bytes,
      latency: this.#latency.summarise(),
      slices: Array.from(this.#slices.subarray(0, wholeSlices), records => (records * 1000) / SLICE_MS),
      longestGapMs: this.#longestGapMs
    }
  }
}
