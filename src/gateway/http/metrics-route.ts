/** `GET /metrics`. Main thread. */
import { authorise } from '../../model/access.ts'
import { ChargedAnswer } from './charged-answer.ts'
import type { Exchange } from './exchange.ts'

/** Everything that the caller may read, in Prometheus' text format. */
export function metrics(exchange: Exchange): null {
  authorise(exchange.who, 'metrics')
  const answer = new ChargedAnswer(exchange)
  exchange.services.metrics.scrape(exchange.who).then(
    page => exchange.guard(() => answer.send(page, exchange.services.metrics.contentType)),
    (error: unknown) => exchange.refuse(error)
  )
  return null
}
