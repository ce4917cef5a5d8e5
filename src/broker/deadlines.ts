/**
 * One timer for each thing that has a deadline. Main thread. A timer may come a little early: whoever is called looks at the
 * clock, and sets the deadline again if it is not over.
 */
import type { Clock } from '../base/clock.ts'

/** The longest that a timer of Node can be set for. */
const TIMER_MS_MAX = 2 ** 31 - 1

export class Deadlines {
  readonly #timers = new Map<number, { readonly deadlineMs: number; readonly timer: NodeJS.Timeout }>()
  readonly #clock: Clock
  readonly #onDue: (id: number) => void

  /** @param onDue is called without its deadline being set any more. */
  constructor(clock: Clock, onDue: (id: number) => void) {
    this.#clock = clock
    this.#onDue = onDue
  }

  /** @param deadlineMs monotonic; null: none. */
  set(id: number, deadlineMs: number | null): void {
    const known = this.#timers.get(id)
    if (known?.deadlineMs === deadlineMs) return
    clearTimeout(known?.timer)
    this.#timers.delete(id)
    if (deadlineMs === null) return
    const delayMs = Math.ceil(Math.max(0, deadlineMs - this.#clock.monotonicMs()))
    const timer = setTimeout(
      () => {
        this.#timers.delete(id)
        this.#onDue(id)
      },
      Math.min(delayMs, TIMER_MS_MAX)
    )
    timer.unref()
    this.#timers.set(id, { deadlineMs, timer })
  }

  /** Nothing is called any more. */
  stop(): void {
    for (const { timer } of this.#timers.values()) clearTimeout(timer)
    this.#timers.clear()
  }
}
