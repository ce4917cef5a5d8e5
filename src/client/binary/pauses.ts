/** Waiting: between attempts, and until somebody wakes us. Any thread with an event loop. */

/** Waits between attempts: `initialMs` bounds the first, each further bound is twice as high, up to `maxMs`. */
export interface Backoff {
  readonly initialMs: number
  readonly maxMs: number
}

/**
 * @param attempt failures so far, from 1. @param unit drawn from [0, 1).
 * @returns anything below the bound ("full jitter"), so that the clients of a broker that comes back do not come at once.
 */
export function backoffMs(attempt: number, { initialMs, maxMs }: Backoff, unit: number): number {
  return unit * Math.min(maxMs, initialMs * 2 ** Math.min(attempt - 1, 30))
}

/** Wakes whoever waits. One that wakes when nobody waits is forgotten: who waits looks first. */
export class Bell {
  readonly #waiting = new Set<() => void>()

  /** Wakes all who wait now. */
  ring(): void {
    if (this.#waiting.size === 0) return
    for (const wake of [...this.#waiting]) wake()
  }

  /** Resolves at the next ring, or after that time. @param ms Infinity: no time. */
  wait(ms: number): Promise<void> {
    return new Promise(resolve => {
      const wake = (): void => {
        clearTimeout(timer)
        this.#waiting.delete(wake)
        resolve()
      }
      const timer = ms === Infinity ? undefined : setTimeout(wake, Math.max(0, ms))
      this.#waiting.add(wake)
    })
  }
}
