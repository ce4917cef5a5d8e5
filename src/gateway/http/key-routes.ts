/** The routes of API keys. Main thread. */
import { writeCreatedKey, writeKeys } from '../../wire/json/keys-json.ts'
import type { BodySink } from './engines/engine.ts'
import type { Exchange } from './exchange.ts'
import { withJsonBody } from './json-body.ts'
import { readCreateKey } from './key-form.ts'

/** `POST /admin/keys`: 201, with the secret. */
export function createKey(exchange: Exchange): BodySink | null {
  const { keys } = exchange.services.broker
  return withJsonBody(exchange, value => {
    const created = keys.create(exchange.who, readCreateKey(value))
    exchange.answerWith(
      201,
      created.then(({ key, secret }) => writeCreatedKey(key, secret))
    )
  })
}

/** `GET /admin/keys` */
export function listKeys(exchange: Exchange): null {
  exchange.sendJson(200, writeKeys(exchange.services.broker.keys.list(exchange.who)))
  return null
}

/** `DELETE /admin/keys/:key_id`: 204 without a body, also for a key that is revoked already. */
export function revokeKey(exchange: Exchange): null {
  exchange.answerEmpty(exchange.services.broker.keys.revoke(exchange.who, exchange.name))
  return null
}
