/**
 * Requests of one pipelined client in flight: bounded, so that what waits gathers into larger batches here instead of
 * standing in the buffers of sockets. Any thread with an event loop.
 *
 * Invariant: places are given in the order of the calls, and kept while a connection is made anew.
 */
import { limits } from '../../model/limits.ts'
import { clientError } from './client-error.ts'
import type { Send, Session } from './session.ts'

export class Flight {
  readonly #session: Session
  #count = 0
  /** Who waits for a place, in order. */
  readonly #waiting = new Set<() => void>()

  constructor(session: Session) {
    this.#session = session
  }

  /**
   * Has a request sent on the open connection, when there is one and there is room.
   * @param deadlineMs of all of it, on the clock of performance.now().
   * @param send called at once, in the order of the calls; the connection is open then.
   * @returns what it gives. Rejects as Session.connected does, with a timeout, or as `send` does.
   */
  async run<Result>(deadlineMs: number, send: Send<Result>): Promise<Result> {
    // As many as the broker works on for one connection; more would only wait there.
    if (this.#count < limits.connectionRequestsMax) this.#count++
    else await this.#place(deadlineMs)
    try {
      const connection = await this.#session.connected(deadlineMs)
      return await this.#session.exchange(connection, deadlineMs, send)
    } finally {
      this.#leave()
    }
  }

  /** Waits between attempts, until the client is closed at most. */
  pause(ms: number): Promise<void> {
    return this.#session.pause(ms)
  }

  /** Resolves with a place that another request had. */
  #place(deadlineMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = (): void => {
        clearTimeout(timer)
        resolve()
      }
      const giveUp = (): void => {
        this.#waiting.delete(take)
        const reason = `${limits.connectionRequestsMax} other requests were in flight all the time`
        reject(clientError('timeout', 'no', reason, { retryable: true }))
      }
      const timer = setTimeout(giveUp, Math.max(1, deadlineMs - performance.now()))
      this.#waiting.add(take)
    })
  }

  /** A place is passed on to who waits, never offered to all: the order of waiting holds. */
  #leave(): void {
    const [next] = this.#waiting
    if (next === undefined) {
      this.#count--
      return
    }
    this.#waiting.delete(next)
    next()
  }
}
