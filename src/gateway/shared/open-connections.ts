/**
 * The open connections of one listener: who they are, the sweep of their deadlines, and the wait for the last of them. Main
 * thread only. There is a timer exactly while there are connections.
 */
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Clock } from '../../base/clock.ts'
import type { ClientAddresses } from './addresses.ts'
import { isMemoryShort } from './memory-short.ts'

/** Longest time between two sweeps: how late a deadline may be noticed. */
const SWEEP_MS_MAX = 1000

/** A connection as a sweep sees it. */
export interface SweptConnection {
  readonly remoteAddress: string
  /** Takes no further request; answers what is in progress, then closes. */
  beginClose(): void
  /** Closes at once, for no fault of the client. */
  abandon(): void
  /**
   * Closes the connection if a deadline has passed.
   * @param isShort of which memory: what is unread, and requests that come in part, may then stay for less time.
   */
  checkDeadlines(nowMs: number, isShort: { readonly replies: boolean; readonly requests: boolean }): void
}

export interface OpenConnectionsOptions {
  readonly clock: Clock
  /** The sweep comes several times within the shortest of them. */
  readonly timeouts: Readonly<Record<string, number>>
  readonly addresses: ClientAddresses
  readonly replyBudget: ByteBudget
  readonly requestBudget: ByteBudget
  /** What the largest answer and the largest request take: memory is short if one does not fit. */
  readonly largestAnswerBytes: number
  readonly largestRequestBytes: number
}

export class OpenConnections<Connection extends SweptConnection> {
  readonly #options: OpenConnectionsOptions
  readonly #connections = new Set<Connection>()
  #timer: NodeJS.Timeout | null = null
  #onEmpty: (() => void) | null = null

  constructor(options: OpenConnectionsOptions) {
    this.#options = options
  }

  get size(): number {
    return this.#connections.size
  }

  [Symbol.iterator](): IterableIterator<Connection> {
    return this.#connections.values()
  }

  /** @param connection whose address has entered already. */
  add(connection: Connection): void {
    this.#connections.add(connection)
    if (this.#timer !== null) return
    const { timeouts } = this.#options
    const sweepMs = Math.max(1, Math.min(SWEEP_MS_MAX, Math.min(...Object.values(timeouts)) / 4))
    this.#timer = setInterval(() => this.#sweep(), sweepMs)
  }

  /** It is closed: its address leaves with it. */
  remove(connection: Connection): void {
    if (!this.#connections.delete(connection)) return
    this.#options.addresses.leave(connection.remoteAddress)
    if (this.#connections.size > 0) return
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    this.#onEmpty?.()
  }

  /** Resolves when the last is closed. @param onLate called before those that are left after that time are cut off. */
  async ended(deadlineMs: number, onLate: () => void): Promise<void> {
    if (this.#connections.size === 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(() => {
        onLate()
        for (const connection of this.#connections) connection.abandon()
      }, deadlineMs)
      this.#onEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #sweep(): void {
    const { clock, addresses, replyBudget, requestBudget, largestRequestBytes } = this.#options
    const nowMs = clock.monotonicMs()
    const replies = isMemoryShort(replyBudget, this.#options.largestAnswerBytes)
    const forAll = isMemoryShort(requestBudget, largestRequestBytes)
    for (const connection of this.#connections) {
      const requests = forAll || addresses.isShort(connection.remoteAddress)
      connection.checkDeadlines(nowMs, { replies, requests })
    }
  }
}
