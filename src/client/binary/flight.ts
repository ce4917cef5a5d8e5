/**
 * Requests of one pipelined client in flight: bounded, so that what waits gathers into larger batches here instead of
 * standing in the buffers of sockets. Any thread with an event loop.
 */
import type { Es01Client } from '../es01/client.ts'
import type { Session } from './session.ts'

/** As many as the broker works on for one connection; more would only wait there. */
const REQUESTS_MAX = 32

export class Flight {
  readonly #session: Session
  #count = 0
  readonly #waiting: (() => void)[] = []

  constructor(session: Session) {
    this.#session = session
  }

  /**
   * Has a request sent on the open connection, when there is one and there is room.
   * @param send called at once, in the order of the calls; the connection is open then.
   * @returns what it gives. Rejects as Session.connected does, or as `send` does.
   */
  async run<Result>(deadlineMs: number, send: (connection: Es01Client) => Promise<Result>): Promise<Result> {
    const connection = await this.#board(deadlineMs)
    try {
      return await this.#session.exchange(connection, send)
    } finally {
      this.#leave()
    }
  }

  /** Waits between attempts, until the client is closed at most. */
  pause(ms: number): Promise<void> {
    return this.#session.pause(ms)
  }

  /** Takes a place. A place is passed on to who waits, never offered to all: the order of waiting holds. */
  async #board(deadlineMs: number): Promise<Es01Client> {
    for (;;) {
      const connection = await this.#session.connected(deadlineMs)
      if (this.#count < REQUESTS_MAX) {
        this.#count++
        return connection
      }
      await new Promise<void>(resolve => this.#waiting.push(resolve))
      if (connection.isOpen) return connection
      this.#leave()
    }
  }

  #leave(): void {
    const next = this.#waiting.shift()
    if (next === undefined) this.#count--
    else next()
  }
}
