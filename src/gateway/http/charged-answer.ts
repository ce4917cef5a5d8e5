/**
 * An answer that a route has whole, and that may be long. Main thread. What it takes is reserved of the reply memory
 * while it is on its way, as for a read: who asks and does not take it cannot make the broker hold any number of them.
 */
import { BrokerError } from '../../model/errors.ts'
import type { ReplyWatcher } from './engine.ts'
import type { Exchange } from './exchange.ts'

export class ChargedAnswer implements ReplyWatcher {
  readonly #exchange: Exchange
  #reservedBytes = 0

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    exchange.reply.watcher = this
  }

  /** Answers 200 with these pieces. @throws BrokerError KEY_REVOKED, OVERLOADED */
  send(pieces: readonly Buffer[], contentType: string): void {
    const { reply, services, who } = this.#exchange
    if (reply.isClosed) return
    if (who.isRevoked) throw new BrokerError('KEY_REVOKED')
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    if (!services.replyBudget.tryReserve(bytes)) {
      throw new BrokerError('OVERLOADED', { what: 'the memory for answers', limit: '--reply-memory-bytes' })
    }
    this.#reservedBytes = bytes
    reply.begin({ status: 200, contentType }, bytes)
    for (const piece of pieces) reply.chunk(piece, 0, piece.length)
  }

  onReplyClosed(): void {
    const bytes = this.#reservedBytes
    this.#reservedBytes = 0
    if (bytes > 0) this.#exchange.services.replyBudget.release(bytes)
  }
}
