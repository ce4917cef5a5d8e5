/** A broker with a topic, a client that has fetch sessions, and one that writes. For tests. */
import type { TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { startBroker, type TestBroker } from './broker.ts'
import { clientBatch } from './client-batches.ts'
import { HttpApi } from './http-api.ts'
import { produceBatch } from './kafka-calls.ts'
import { connectKafka, type KafkaClient } from './kafka-client.ts'

export interface SessionStage {
  readonly t: TestContext
  readonly broker: TestBroker
  readonly api: HttpApi
  readonly client: KafkaClient
  readonly writer: KafkaClient
  readonly topicId: string
}

/** The topic is `t`. */
export async function sessionStage(t: TestContext, partitions = 3): Promise<SessionStage> {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', partitions)
  const writer = await connectKafka(t, broker.kafka)
  return { t, broker, api, client: await connectKafka(t, broker.kafka), writer, topicId: await idOf(writer) }
}

async function idOf(client: KafkaClient): Promise<string> {
  return (await client.call(apis.metadata, 12, { topics: [{ name: 't' }] })).topics[0]?.topicId ?? ''
}

/** A batch of one record. */
export function batchOf(value: string): Buffer {
  return clientBatch({ records: [{ key: 'k', value }] })
}

/** Writes one to that partition of the topic. */
export function write(client: KafkaClient, partition: number, value = 'v') {
  return produceBatch(client, 't', partition, batchOf(value))
}
