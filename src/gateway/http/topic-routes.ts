/** The topic routes other than produce and consume, and the health routes. Main thread. */
import { BrokerError } from '../../model/errors.ts'
import { writeTopicConfig, writeTopicDescription } from '../../wire/json/topic-json.ts'
import type { BodySink } from './engines/engine.ts'
import type { Exchange } from './exchange.ts'
import { withJsonBody } from './json-body.ts'
import { readAddPartitions, readConfigPatch, readCreateTopic, readDeleteRecords } from './topic-form.ts'

const writeCreated = (topic: { name: string; partitions: number }): string =>
  JSON.stringify({ name: topic.name, partitions: topic.partitions })

/** `POST /topics` */
export function createTopic(exchange: Exchange): BodySink | null {
  const { broker } = exchange.services
  return withJsonBody(exchange, value => {
    exchange.answerWith(201, broker.createTopic(exchange.who, readCreateTopic(value)).then(writeCreated))
  })
}

/** `GET /topics` */
export function listTopics(exchange: Exchange): null {
  exchange.sendJson(200, JSON.stringify({ topics: exchange.services.broker.listTopics(exchange.who) }))
  return null
}

/** `GET /topics/:name` */
export function describeTopic(exchange: Exchange): null {
  exchange.answerWith(
    200,
    exchange.services.broker.describeTopic(exchange.who, exchange.name).then(writeTopicDescription)
  )
  return null
}

/** `GET /topics/:name/config` */
export function topicConfig(exchange: Exchange): null {
  exchange.sendJson(200, writeTopicConfig(exchange.services.broker.topicConfig(exchange.who, exchange.name)))
  return null
}

/** `PUT /topics/:name/config` */
export function changeTopicConfig(exchange: Exchange): BodySink | null {
  const { broker } = exchange.services
  return withJsonBody(exchange, value => {
    exchange.answerWith(
      200,
      broker.changeTopicConfig(exchange.who, exchange.name, readConfigPatch(value)).then(writeTopicConfig)
    )
  })
}

/** `POST /topics/:name/partitions` */
export function addPartitions(exchange: Exchange): BodySink | null {
  const { who, name, services } = exchange
  return withJsonBody(exchange, value => {
    const partitions = readAddPartitions(value)
    exchange.answerWith(200, services.broker.addPartitions(who, { name, partitions }).then(writeCreated))
  })
}

/** `DELETE /topics/:name` */
export function deleteTopic(exchange: Exchange): null {
  exchange.answerWith(200, exchange.services.broker.deleteTopic(exchange.who, exchange.name).then(writeCreated))
  return null
}

/** `POST /topics/:name/delete-records` */
export function deleteRecords(exchange: Exchange): BodySink | null {
  const { broker } = exchange.services
  return withJsonBody(exchange, value => {
    const { partition, offset } = readDeleteRecords(value)
    const start = broker.deleteRecords(exchange.who, exchange.name, partition, offset)
    exchange.answerWith(
      200,
      start.then(startOffset => JSON.stringify({ partition, start_offset: startOffset }))
    )
  })
}

/** `GET /healthz`: the process lives; served from the first moment on. What is wrong may name topics: administrators see it. */
export function healthz(exchange: Exchange): null {
  const { broker } = exchange.services
  const answer = { status: 'ok', topics_count: broker.topicCount() }
  const all = broker.troubles()
  const hidden = `${all.length} of them: an administrator's key shows which`
  const troubles = all.length === 0 || exchange.who.isAdmin ? all : [hidden]
  exchange.sendJson(200, JSON.stringify(troubles.length === 0 ? answer : { ...answer, troubles }))
  return null
}

/**
 * `GET /readyz`: 200 once everything is served, 503 with what is missing, and how far a start has come. Where
 * acknowledgements may precede the sync (--flush-every-records above 1) it says so (durability W10).
 */
export function readyz(exchange: Exchange): null {
  const { ready, status, progress, message, durability } = exchange.services.broker.readiness()
  if (!ready) {
    const report = progress === null ? { status, message } : { status, message, progress }
    exchange.refuse(new BrokerError('NOT_READY', { problem: message }), { report })
    return null
  }
  const answer = { status: 'ready', message: 'accepting traffic' }
  exchange.sendJson(200, JSON.stringify(durability === 'synced' ? answer : { ...answer, durability }))
  return null
}
