/**
 * How late the event loop of this thread was in the last minute. Main thread. Two monitors, each begun anew every minute,
 * half a minute apart: what is told covers at least the last half minute, and forgets a stall after a minute.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks'

/** The monitor's own timer: a stall shorter than this may go unseen, and one that is longer looks this much shorter at most. */
const RESOLUTION_MS = 10
const HALF_MS = 30_000
type Monitor = ReturnType<typeof monitorEventLoopDelay>

export const quantiles = [0.5, 0.99, 1] as const

export class LoopDelay {
  readonly #monitors = [0, 1].map(() => monitorEventLoopDelay({ resolution: RESOLUTION_MS }))
  /** The monitor that has run for longer. */
  #older = 0
  readonly #timer: NodeJS.Timeout

  constructor() {
    for (const monitor of this.#monitors) monitor.enable()
    this.#timer = setInterval(() => this.#turnOver(), HALF_MS)
    this.#timer.unref()
  }

  /** Seconds that the loop was late, by quantile; empty while nothing was measured. */
  read(): { readonly quantile: number; readonly seconds: number }[] {
    const monitor = this.#monitors[this.#older]
    if (monitor === undefined || monitor.count === 0) return []
    return quantiles.map(quantile => ({ quantile, seconds: lateSeconds(monitor, quantile) }))
  }

  stop(): void {
    clearInterval(this.#timer)
    for (const monitor of this.#monitors) monitor.disable()
  }

  #turnOver(): void {
    this.#monitors[this.#older]?.reset()
    this.#older = 1 - this.#older
  }
}

/** The monitor measures from one firing of its timer to the next: what is beyond its period was delay. */
function lateSeconds(monitor: Monitor, quantile: number): number {
  const ns = quantile === 1 ? monitor.max : monitor.percentile(quantile * 100)
  return Math.max(0, ns / 1e9 - RESOLUTION_MS / 1000)
}
