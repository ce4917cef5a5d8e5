/**
 * A connection that is made when it is needed, and made again after it was lost. One owner; any thread with an event loop.
 *
 * Invariants
 * - At most one connection is open, and at most one is being made, however many wait for it.
 * - Nobody waits beyond the own deadline, and nothing is tried while nobody waits.
 */
import { connectEs01, Es01Error, type Es01Client } from '../es01/client.ts'
import { clientError, clientErrorOf, closedError, type ClientError } from './client-error.ts'
import type { Connecting } from './options.ts'
import { backoffMs, Bell } from './pauses.ts'

/** Sends one request. @param timeoutMs that its answer may take. */
export type Send<Result> = (connection: Es01Client, timeoutMs: number) => Promise<Result>

interface Waiter {
  readonly resolve: (connection: Es01Client) => void
  readonly reject: (error: ClientError) => void
  readonly timer: NodeJS.Timeout
}

export class Session {
  readonly options: Connecting
  #connection: Es01Client | null = null
  readonly #waiters = new Set<Waiter>()
  #isConnecting = false
  #isClosed = false
  #isDestroyed = false
  /** Ends the connecting that is under way. */
  readonly #ending = new AbortController()
  /** Attempts and connections that failed since the last request that was answered. */
  #failures = 0
  #lastFailure = ''
  /** Rung at the end. */
  readonly #bell = new Bell()

  constructor(options: Connecting) {
    this.options = options
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /**
   * The open connection, or the next one.
   * @param deadlineMs on the clock of performance.now().
   * @returns rejects with ClientError: connection (none in time), refused or untrusted (no use trying), closed.
   */
  connected(deadlineMs: number): Promise<Es01Client> {
    if (this.#isClosed) return Promise.reject(closedError())
    if (this.#connection?.isOpen === true) return Promise.resolve(this.#connection)
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        this.#waiters.delete(waiter)
        const { host, port } = this.options
        const reason = this.#lastFailure === '' ? '' : `: ${this.#lastFailure}`
        const facts = { retryable: true }
        reject(clientError('connection', 'no', `no connection to ${host}:${port} in time${reason}`, facts))
      }
      const waiter = { resolve, reject, timer: setTimeout(giveUp, Math.max(1, deadlineMs - performance.now())) }
      this.#waiters.add(waiter)
      if (!this.#isConnecting) this.#connect().catch((error: unknown) => this.#fail(clientErrorOf(error)))
    })
  }

  /** Waits, until the session is closed at most. */
  async pause(ms: number): Promise<void> {
    if (!this.#isClosed && ms > 0) await this.#bell.wait(ms)
  }

  /**
   * Sends over that connection, which is open, and waits until the deadline, at most the time of a request. A connection on
   * which nothing came in all that time is given up: of a peer that is gone without a word the system tells after many
   * minutes only.
   * @returns what `send` gives, or rejects as that does; with kind closed what destroy() ended.
   */
  async exchange<Result>(connection: Es01Client, deadlineMs: number, send: Send<Result>): Promise<Result> {
    const timeoutMs = Math.max(1, Math.min(this.options.requestTimeoutMs, deadlineMs - performance.now()))
    try {
      const result = await send(connection, timeoutMs)
      this.#failures = 0
      return result
    } catch (error) {
      if (!(error instanceof Es01Error)) throw error
      // An answer too: the next loss is not one of a row.
      if (error.kind === 'refused') this.#failures = 0
      if (error.kind === 'timeout' && connection.isSilent) connection.destroy()
      if (error.kind === 'connection' && this.#isDestroyed) throw closedError(error.written, error)
      throw error
    }
  }

  /** Resolves when the requests in flight are answered and the connection is closed: in the time of a request at most. */
  async close(): Promise<void> {
    this.#end()
    const connection = this.#connection
    if (connection === null) return
    // A broker that is stopped, or gone without a word, does not close its side.
    const timer = setTimeout(() => connection.destroy(), this.options.requestTimeoutMs)
    await connection.close()
    clearTimeout(timer)
  }

  /** Closes at once: requests in flight reject. */
  destroy(): void {
    this.#isDestroyed = true
    this.#end()
    this.#connection?.destroy()
  }

  #end(): void {
    this.#isClosed = true
    this.#fail(closedError())
    this.#bell.ring()
    this.#ending.abort()
  }

  /** Tries until somebody is connected or nobody waits. */
  async #connect(): Promise<void> {
    this.#isConnecting = true
    try {
      while (this.#waiters.size > 0) {
        if (this.#failures > 0) {
          await this.pause(backoffMs(this.#failures, this.options.reconnect, Math.random()))
          if (this.#waiters.size === 0) return
        }
        this.#failures++
        const connection = await this.#tryOnce()
        if (connection !== null) return this.#take(connection)
      }
    } finally {
      this.#isConnecting = false
    }
  }

  /** @returns null: it failed, and may not the next time. */
  async #tryOnce(): Promise<Es01Client | null> {
    const { host, port, token, gzip, tls, connectTimeoutMs, requestTimeoutMs } = this.options
    const options = { host, port, token, gzip, connectTimeoutMs, requestTimeoutMs, signal: this.#ending.signal }
    try {
      return await connectEs01(tls === null ? options : { ...options, tls })
    } catch (error) {
      const failure = clientErrorOf(error)
      this.#lastFailure = failure.message
      if (!failure.retryable) this.#fail(failure)
      return null
    }
  }

  #take(connection: Es01Client): void {
    if (this.#isClosed) return connection.destroy()
    this.#connection = connection
    for (const waiter of this.#waiters) {
      clearTimeout(waiter.timer)
      waiter.resolve(connection)
    }
    this.#waiters.clear()
  }

  #fail(error: ClientError): void {
    for (const waiter of this.#waiters) {
      clearTimeout(waiter.timer)
      waiter.reject(error)
    }
    this.#waiters.clear()
  }
}
