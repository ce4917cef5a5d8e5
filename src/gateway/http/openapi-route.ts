/** `GET /openapi.json`: what the API is, for everybody; it is the same for all of them, and says nothing of what is kept. Main thread. */
import { ChargedAnswer } from './charged-answer.ts'
import type { Exchange } from './exchange.ts'
import { JSON_TYPE } from './accept.ts'

/** The description of the API. */
export function openApi(exchange: Exchange): null {
  new ChargedAnswer(exchange).send([exchange.services.apiDescription()], JSON_TYPE)
  return null
}
