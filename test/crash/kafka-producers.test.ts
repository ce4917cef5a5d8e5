/**
 * What the broker knows of an idempotent producer of Kafka's protocol outlives its batches: settled, compacted away, past
 * retention or deleted, and the broker killed after that. The last five come again and get their first offsets, and the next one follows.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { clientBatch, gzip } from '../support/client-batches.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { newProducer, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const flags = {
  '--shards': '1',
  '--settle-idle': '10ms',
  '--settle-age': '10ms',
  '--segment-delete-grace': '10ms'
}
const BATCHES = 12
const RECORDS = 3
/** Most that clients have in flight, and so what may come again. */
const WINDOW = 5
const SEGMENT_BYTES = 1000

/** One connection, taken anew after a restart, for all of the producers. */
class Connection {
  readonly #broker: () => SpawnedBroker
  readonly #t: TestContext
  #last: { readonly of: SpawnedBroker; readonly client: KafkaClient } | null = null

  constructor(t: TestContext, broker: () => SpawnedBroker) {
    this.#t = t
    this.#broker = broker
  }

  async client(): Promise<KafkaClient> {
    const broker = this.#broker()
    if (this.#last?.of !== broker) this.#last = { of: broker, client: await connectKafka(this.#t, broker.kafka) }
    return this.#last.client
  }
}

class Producer {
  readonly #connection: Connection
  readonly #topic: string
  #id = -1n

  constructor(connection: Connection, topic: string) {
    this.#connection = connection
    this.#topic = topic
  }

  /** Sends the batch of that number, by its sequence. @returns its offset, or the name of the error. */
  async send(number: number): Promise<number | string> {
    const client = await this.#connection.client()
    if (this.#id < 0n) this.#id = await newProducer(client)
    const records = Array.from({ length: RECORDS }, (_, i) => ({ key: `k${i}`, value: `${number}`.padEnd(150, 'x') }))
    const batch = clientBatch({ records, producerId: this.#id, epoch: 0, sequence: number * RECORDS, ...gzip })
    const { errorCode, baseOffset } = await produceBatch(client, this.#topic, 0, batch)
    if (errorCode === 0) return baseOffset
    return Object.entries(kafkaErrors).find(([, { code }]) => code === errorCode)?.[0] ?? String(errorCode)
  }
}

async function startOf(api: HttpApi, topic: string): Promise<number> {
  return (await api.describe(topic)).partitions[0]?.start_offset ?? -1
}

interface Fate {
  readonly fate: string
  readonly topic: string
  readonly config: Readonly<Record<string, unknown>>
  /** What is called for all topics at once stands beside the table. */
  befall?(api: HttpApi): Promise<unknown>
  isDone(api: HttpApi): Promise<boolean>
}

const fates: readonly Fate[] = [
  { fate: 'settled', topic: 'kept', config: {}, isDone: () => Promise.resolve(true) },
  {
    fate: 'compacted away but for the newest of each key',
    topic: 'compacted',
    config: { cleanup_policy: 'compact', tombstone_retention_ms: 0 },
    isDone: async api => (await api.consumeAll('compacted', 0)).length < BATCHES * RECORDS
  },
  {
    fate: 'past retention',
    topic: 'aged',
    config: { retention_bytes: 0 },
    isDone: async api => (await startOf(api, 'aged')) > 0
  },
  {
    fate: 'deleted',
    topic: 'deleted',
    config: {},
    befall: async api =>
      parse(await api.post('/topics/deleted/delete-records', { partition: 0, offset: BATCHES * RECORDS })),
    isDone: async api => (await startOf(api, 'deleted')) === BATCHES * RECORDS
  }
]

/** On return, what is to become of the batches of each topic has become of them. */
async function befallAll(api: HttpApi): Promise<void> {
  for (const { topic } of fates)
    await waitFor('it to be settled', async () => (await api.describe(topic)).partitions[0]?.segment_count !== 0)
  for (const run of ['run-compaction', 'run-retention']) assert.equal((await api.post(`/admin/${run}`, '')).status, 204)
  for (const { fate, befall, isDone } of fates) {
    await befall?.(api)
    await waitFor(fate, () => isDone(api))
  }
}

test(`an idempotent producer whose batches are ${fates.map(({ fate }) => fate).join(', ')} has them once and goes on, also over kill −9`, async t => {
  let broker = await spawnBroker(t, { flags })
  const connection = new Connection(t, () => broker)
  const last = BATCHES - 1
  const producers: Producer[] = []
  for (const { topic, config } of fates) {
    await new HttpApi(broker.url).createTopic(topic, 1, { segment_bytes: SEGMENT_BYTES, ...config })
    const producer = new Producer(connection, topic)
    for (let i = 0; i < BATCHES; i++) assert.equal(await producer.send(i), i * RECORDS)
    producers.push(producer)
  }
  // A restart seals the slot, so that all can be settled; each kill is followed by a look.
  for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
    await broker.kill(signal)
    broker = await spawnBroker(t, { dataDir: broker.dataDir, flags })
    const api = new HttpApi(broker.url)
    await befallAll(api)
    for (const [i, producer] of producers.entries()) {
      const { fate, topic } = fates[i] as Fate
      for (let n = BATCHES - WINDOW; n < BATCHES; n++) assert.equal(await producer.send(n), n * RECORDS, fate)
      assert.equal(await producer.send(last + 2), 'OUT_OF_ORDER_SEQUENCE_NUMBER', fate)
      assert.deepEqual(await api.ends(topic), [BATCHES * RECORDS], fate)
    }
  }
  for (const producer of producers) assert.equal(await producer.send(last + 1), BATCHES * RECORDS)
  await broker.kill('SIGKILL')
  broker = await spawnBroker(t, { dataDir: broker.dataDir, flags })
  for (const producer of producers) {
    assert.equal(await producer.send(last + 1), BATCHES * RECORDS)
    assert.equal(await producer.send(last + 2), (BATCHES + 1) * RECORDS)
  }
})
