/**
 * What the broker knows of an idempotent producer of Kafka's protocol outlives its batches: settled, compacted away, past
 * retention or deleted, and the broker killed after that. The last five come again and get their first offsets, and the next one follows.
 */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { clientBatch, gzip } from '../support/client-batches.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { produceBatch } from '../support/kafka-calls.ts'
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

class Producer {
  readonly #broker: () => SpawnedBroker
  readonly #t: TestContext
  #client: { readonly of: SpawnedBroker; readonly client: KafkaClient } | null = null
  #id = -1n

  constructor(t: TestContext, broker: () => SpawnedBroker) {
    this.#t = t
    this.#broker = broker
  }

  /** Sends the batch of that number, by its sequence. @returns its offset, or the name of the error. */
  async send(number: number): Promise<number | string> {
    const client = await this.#connected()
    if (this.#id < 0n) {
      const asked = { transactionalId: null, transactionTimeoutMs: 0 }
      this.#id = (await client.call(apis.initProducerId, 4, asked)).producerId
    }
    const records = Array.from({ length: RECORDS }, (_, i) => ({ key: `k${i}`, value: `${number}`.padEnd(150, 'x') }))
    const batch = clientBatch({ records, producerId: this.#id, epoch: 0, sequence: number * RECORDS, ...gzip })
    const { errorCode, baseOffset } = await produceBatch(client, 't', 0, batch)
    if (errorCode === 0) return baseOffset
    return Object.entries(kafkaErrors).find(([, { code }]) => code === errorCode)?.[0] ?? String(errorCode)
  }

  async #connected(): Promise<KafkaClient> {
    const broker = this.#broker()
    if (this.#client?.of !== broker) this.#client = { of: broker, client: await connectKafka(this.#t, broker.kafka) }
    return this.#client.client
  }
}

async function startOf(api: HttpApi): Promise<number> {
  return (await api.describe('t')).partitions[0]?.start_offset ?? -1
}

const fates = [
  {
    fate: 'settled',
    config: {},
    befall: () => Promise.resolve(),
    isDone: () => Promise.resolve(true)
  },
  {
    fate: 'compacted away but for the newest of each key',
    config: { cleanup_policy: 'compact', tombstone_retention_ms: 0 },
    befall: async (api: HttpApi) => void assert.equal((await api.post('/admin/run-compaction', '')).status, 204),
    isDone: async (api: HttpApi) => (await api.consumeAll('t', 0)).length < BATCHES * RECORDS
  },
  {
    fate: 'past retention',
    config: { retention_bytes: 0 },
    befall: async (api: HttpApi) => void assert.equal((await api.post('/admin/run-retention', '')).status, 204),
    isDone: async (api: HttpApi) => (await startOf(api)) > 0
  },
  {
    fate: 'deleted',
    config: {},
    befall: async (api: HttpApi) =>
      void parse(await api.post('/topics/t/delete-records', { partition: 0, offset: BATCHES * RECORDS })),
    isDone: async (api: HttpApi) => (await startOf(api)) === BATCHES * RECORDS
  }
]

describe('an idempotent producer whose batches are', () => {
  for (const { fate, config, befall, isDone } of fates) {
    it(`${fate} has them once and goes on, also over kill −9`, async t => {
      let broker = await spawnBroker(t, { flags })
      await new HttpApi(broker.url).createTopic('t', 1, { segment_bytes: SEGMENT_BYTES, ...config })
      const producer = new Producer(t, () => broker)
      for (let i = 0; i < BATCHES; i++) assert.equal(await producer.send(i), i * RECORDS)
      const last = BATCHES - 1
      const look = async (): Promise<void> => {
        for (let i = BATCHES - WINDOW; i < BATCHES; i++) assert.equal(await producer.send(i), i * RECORDS)
        assert.equal(await producer.send(last + 2), 'OUT_OF_ORDER_SEQUENCE_NUMBER')
        assert.deepEqual(await new HttpApi(broker.url).ends('t'), [BATCHES * RECORDS])
      }
      // A restart seals the slot, so that all can be settled; each kill is followed by a look.
      for (const signal of ['SIGKILL', 'SIGTERM', 'SIGKILL'] as const) {
        await broker.kill(signal)
        broker = await spawnBroker(t, { dataDir: broker.dataDir, flags })
        const api = new HttpApi(broker.url)
        await waitFor('it to be settled', async () => (await api.describe('t')).partitions[0]?.segment_count !== 0)
        await befall(api)
        await waitFor(fate, () => isDone(api))
        await look()
      }
      assert.equal(await producer.send(last + 1), BATCHES * RECORDS)
      await broker.kill('SIGKILL')
      broker = await spawnBroker(t, { dataDir: broker.dataDir, flags })
      assert.equal(await producer.send(last + 1), BATCHES * RECORDS)
      assert.equal(await producer.send(last + 2), (BATCHES + 1) * RECORDS)
    })
  }
})
