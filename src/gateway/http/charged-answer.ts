/**
 * An answer that may be long, whole or in pieces. Main thread. What it takes is reserved of the reply memory while it is
 * on its way, as for a read: who asks and does not take it cannot make the broker hold any number of them. Nothing more of
 * it goes to a key that is revoked.
 */
import { BrokerError } from '../../model/errors.ts'
import type { ReplyWatcher } from './engines/engine.ts'
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
    if (this.#exchange.reply.isClosed) return
    const bytes = pieces.reduce((sum, piece) => sum + piece.length, 0)
    this.begin(contentType, bytes, bytes)
    for (const piece of pieces) this.pass(piece)
  }

  /**
   * Begins an answer of that many bytes, which pass() brings.
   * @param chargedBytes what of it is reserved; 0: it leaves at once. @throws BrokerError KEY_REVOKED, OVERLOADED
   */
  begin(contentType: string, totalBytes: number, chargedBytes: number): void {
    const { reply, services } = this.#exchange
    this.#checkKey()
    if (chargedBytes > 0 && !services.replyBudget.tryReserve(chargedBytes)) {
      throw new BrokerError('OVERLOADED', { what: 'the memory for answers', limit: '--reply-memory-bytes' })
    }
    this.#reservedBytes = chargedBytes
    reply.begin({ status: 200, contentType }, totalBytes)
  }

  /** Sends the next bytes of it. @throws BrokerError KEY_REVOKED */
  pass(bytes: Buffer): void {
    this.#checkKey()
    this.#exchange.reply.chunk(bytes, 0, bytes.length)
  }

  #checkKey(): void {
    if (this.#exchange.who.isRevoked) throw new BrokerError('KEY_REVOKED')
  }

  onReplyClosed(): void {
    const bytes = this.#reservedBytes
    this.#reservedBytes = 0
    if (bytes > 0) this.#exchange.services.replyBudget.release(bytes)
  }
}
