/** A broker with a topic, and a client of the Kafka protocol that says what a test tells it to. */
import type { TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { startBroker, type TestBroker } from '../support/broker.ts'
import { clientBatch, type ClientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

export const TOPIC = 't'

export interface KafkaStage {
  readonly broker: TestBroker
  readonly api: HttpApi
  readonly client: KafkaClient
}

export async function kafkaStage(
  t: TestContext,
  { partitions = 1, flags = {} }: { partitions?: number; flags?: Readonly<Record<string, string | boolean>> } = {}
): Promise<KafkaStage> {
  const broker = await startBroker(t, { flags })
  const api = new HttpApi(broker.url)
  await api.createTopic(TOPIC, partitions)
  return { broker, api, client: await connectKafka(t, broker.kafka) }
}

/** A batch of one record. */
export function batchOf(value: string, rest: Omit<ClientBatch, 'records'> = {}): Buffer {
  return clientBatch({ records: [{ key: 'k', value }], ...rest })
}

export async function topicIdOf(client: KafkaClient): Promise<string> {
  const { topics } = await client.call(apis.metadata, 12, { topics: [{ name: TOPIC }] })
  return topics[0]?.topicId ?? ''
}

/** What is advertised: by key of the API its first and last version. */
export async function advertisedBy(client: KafkaClient): Promise<ReadonlyMap<number, readonly [number, number]>> {
  const { apiKeys } = await client.call(apis.apiVersions, 0, {})
  return new Map(apiKeys.map(({ apiKey, minVersion, maxVersion }) => [apiKey, [minVersion, maxVersion]]))
}
