/**
 * The order of a turn, for the connections of one listener: bytes arrive → requests are submitted → broker.turn() publishes
 * them and delivers replies → the connections that got replies write once each. Main thread only. Nothing here waits.
 */
import type { Broker } from '../../model/requests.ts'

/** What takes its turns. */
export interface TurnTaker {
  /** Replies were delivered: writes them, and goes on with what had to wait for them. */
  afterDelivery(): void
  /** Something that this connection waited for is there again. */
  resume(): void
}

export class ConnectionTurns<Connection extends TurnTaker> {
  readonly #broker: Pick<Broker, 'turn' | 'onDelivered'>
  #dirty: Connection[] = []
  #woken = new Set<Connection>()
  #hasFlushDue = false
  readonly #flushDue = () => {
    this.#hasFlushDue = false
    this.flush()
  }

  constructor(broker: Pick<Broker, 'turn' | 'onDelivered'>) {
    this.#broker = broker
    broker.onDelivered(() => this.flush())
  }

  /** Calls connection.resume() soon, outside whatever runs now. */
  wake(connection: Connection): void {
    // Not at once: the caller may be the broker amid its delivery, or another connection amid its frames.
    if (this.#woken.size === 0) setImmediate(() => this.#resumeWoken())
    this.#woken.add(connection)
  }

  /** Calls connection.afterDelivery() after this delivery of replies, or this arrival of bytes. */
  markDirty(connection: Connection): void {
    if (this.#dirty[this.#dirty.length - 1] !== connection) this.#dirty.push(connection)
    if (this.#hasFlushDue) return
    // The broker's delivery, or the end of this arrival, flushes sooner; an answer outside of both must not be left lying.
    this.#hasFlushDue = true
    setImmediate(this.#flushDue)
  }

  /** The connection has used what arrived: publishes it and writes what is answered already. */
  afterInput(connection: Connection): void {
    this.markDirty(connection)
    this.#broker.turn()
    this.flush()
  }

  /** Writes what is marked. */
  flush(): void {
    // Writing may deliver and mark again; what is marked meanwhile belongs to this pass too.
    for (let i = 0; i < this.#dirty.length; i++) this.#dirty[i]?.afterDelivery()
    this.#dirty.length = 0
  }

  #resumeWoken(): void {
    const woken = this.#woken
    this.#woken = new Set()
    for (const connection of woken) connection.resume()
  }
}
