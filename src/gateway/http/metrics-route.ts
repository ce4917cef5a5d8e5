/** `GET /metrics`. Main thread. What the page takes is reserved while it is on its way, as for a read. */
import { authorise } from '../../model/access.ts'
import { BrokerError } from '../../model/errors.ts'
import type { ReplyWatcher } from './engine.ts'
import type { Exchange } from './exchange.ts'

class MetricsExchange implements ReplyWatcher {
  readonly #exchange: Exchange
  #reservedBytes = 0

  constructor(exchange: Exchange) {
    this.#exchange = exchange
    exchange.reply.watcher = this
  }

  send(page: readonly Buffer[]): void {
    const { reply, services, who } = this.#exchange
    if (reply.isClosed) return
    if (who.isRevoked) throw new BrokerError('KEY_REVOKED')
    const bytes = page.reduce((sum, piece) => sum + piece.length, 0)
    if (!services.replyBudget.tryReserve(bytes)) {
      throw new BrokerError('OVERLOADED', { what: 'the memory for answers', limit: '--reply-memory-bytes' })
    }
    this.#reservedBytes = bytes
    reply.begin({ status: 200, contentType: services.metrics.contentType }, bytes)
    for (const piece of page) reply.chunk(piece, 0, piece.length)
  }

  onReplyClosed(): void {
    const bytes = this.#reservedBytes
    this.#reservedBytes = 0
    if (bytes > 0) this.#exchange.services.replyBudget.release(bytes)
  }
}

/** Everything that the caller may read, in Prometheus' text format. */
export function metrics(exchange: Exchange): null {
  authorise(exchange.who, 'metrics')
  const answer = new MetricsExchange(exchange)
  exchange.services.metrics.scrape(exchange.who).then(
    page => exchange.guard(() => answer.send(page)),
    (error: unknown) => exchange.refuse(error)
  )
  return null
}
