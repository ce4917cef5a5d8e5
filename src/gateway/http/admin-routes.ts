/** The routes of operators. Main thread. */
import { writeProducers } from '../../wire/json/producers-json.ts'
import type { Exchange } from './exchange.ts'
import { readPathPartition } from './query.ts'

/** `GET /admin/producers` */
export function listProducers(exchange: Exchange): null {
  exchange.answerWith(200, exchange.services.broker.listProducers(exchange.who).then(writeProducers))
  return null
}

/** `DELETE /admin/producers/:id`: 204 without a body. */
export function forgetProducer(exchange: Exchange): null {
  exchange.answerEmpty(exchange.services.broker.forgetProducer(exchange.who, exchange.name))
  return null
}

/** `POST /admin/run-retention`: 204 once what has had its time cannot be read any more. */
export function runRetention(exchange: Exchange): null {
  exchange.answerEmpty(exchange.services.broker.runRetention(exchange.who))
  return null
}

/** `POST /admin/run-compaction`: 204 after the pass. */
export function runCompaction(exchange: Exchange): null {
  exchange.answerEmpty(exchange.services.broker.runCompaction(exchange.who))
  return null
}

/** `GET /admin/tiered/:topic/:partition` */
export function tieredSegments(exchange: Exchange): null {
  const [topic = '', partition = ''] = exchange.names
  const found = exchange.services.broker.coldSegments(exchange.who, topic, readPathPartition(partition))
  exchange.answerWith(
    200,
    found.then(segments => JSON.stringify({ segments }))
  )
  return null
}

/** `GET /raft`: who has which copies. */
export function replication(exchange: Exchange): null {
  exchange.sendJson(200, JSON.stringify(exchange.services.broker.replication(exchange.who)))
  return null
}
