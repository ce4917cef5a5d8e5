/**
 * Requests that wait for room in a ring or for reply bytes, first come, first served. Main thread.
 * While anyone waits, newcomers wait behind them: so requests of one connection stay in order, and nobody starves.
 */

import { assert } from '../../base/assert.ts'

/** taken: it is on its way, or nobody wants it any more. */
export type Attempt = 'taken' | 'rings-full' | 'bytes-full'

export interface Waiter {
  /** Tries again. Must not throw. */
  attempt(): Attempt
}

/** A bound of the requests that wait in one line: connections are cheap, an endless line is not. */
export const WAITING_MAX = 10_000

export class WaitLine {
  readonly #waiting: Waiter[] = []
  readonly #whenRoom: (callback: () => void) => void
  readonly #whenReleased: (callback: () => void) => void
  readonly #onTaken: () => void
  /** A wake-up is asked for. Invariant: armed exactly while someone waits, but for the time of a drain. */
  #isArmed = false
  #isDraining = false
  readonly #wake = (): void => {
    this.#isArmed = false
    this.#drain()
  }

  /** @param onTaken runs after waiters got through: there is something to publish. */
  constructor(options: {
    whenRoom: (callback: () => void) => void
    whenReleased: (callback: () => void) => void
    onTaken: () => void
  }) {
    this.#whenRoom = options.whenRoom
    this.#whenReleased = options.whenReleased
    this.#onTaken = options.onTaken
  }

  get length(): number {
    return this.#waiting.length
  }

  /** Tries at once if nobody waits; else, or if there is no room, stands in line. @returns false if the line is too long. */
  enter(waiter: Waiter): boolean {
    if (this.#waiting.length > 0) return this.wait(waiter, 'rings-full')
    const attempt = waiter.attempt()
    return attempt === 'taken' || this.wait(waiter, attempt)
  }

  /** Stands in line. @param reason what its attempt missed; of no account behind others. @returns false if the line is too long. */
  wait(waiter: Waiter, reason: 'rings-full' | 'bytes-full'): boolean {
    if (this.#waiting.length >= WAITING_MAX) return false
    this.#waiting.push(waiter)
    this.#arm(reason)
    return true
  }

  #arm(attempt: 'rings-full' | 'bytes-full'): void {
    if (this.#isArmed) return
    this.#isArmed = true
    if (attempt === 'rings-full') this.#whenRoom(this.#wake)
    else this.#whenReleased(this.#wake)
  }

  #drain(): void {
    assert(!this.#isDraining, 'a line of waiting requests is drained inside its own drain')
    this.#isDraining = true
    let hasTaken = false
    for (let waiter = this.#waiting[0]; waiter !== undefined; waiter = this.#waiting[0]) {
      const attempt = waiter.attempt()
      if (attempt !== 'taken') {
        this.#arm(attempt)
        break
      }
      hasTaken = true
      this.#waiting.shift()
    }
    this.#isDraining = false
    if (hasTaken) this.#onTaken()
  }
}
