/** The routes of operators. Main thread. Open to everybody while there are no keys. */
import { writeProducers } from '../../wire/json/producers-json.ts'
import type { Exchange } from './exchange.ts'

/** `GET /admin/producers` */
export function listProducers(exchange: Exchange): null {
  exchange.answerWith(200, exchange.services.broker.listProducers().then(writeProducers))
  return null
}

/** `DELETE /admin/producers/:id`: 204 without a body. */
export function forgetProducer(exchange: Exchange): null {
  exchange.services.broker.forgetProducer(exchange.name).then(
    () => exchange.guard(() => exchange.sendEmpty(204)),
    (error: unknown) => exchange.refuse(error)
  )
  return null
}
