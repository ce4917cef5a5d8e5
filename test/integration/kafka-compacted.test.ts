/** What Kafka clients write to compacted topics: records without a key are refused, and nothing else is looked into. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { limits } from '../../src/model/limits.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { clientBatch, gzip, withCrc, zstd, type ClientRecord } from '../support/client-batches.ts'
import { assertRefused, HttpApi } from '../support/http-api.ts'
import { newProducer, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { kafkaJs } from '../support/kafkajs.ts'

interface Stage {
  readonly api: HttpApi
  readonly client: KafkaClient
  readonly kafka: string
}

async function stage(t: TestContext, policy = 'compact'): Promise<Stage> {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 2, { cleanup_policy: policy })
  return { api, client: await connectKafka(t, broker.kafka), kafka: broker.kafka }
}

const { code: invalid } = kafkaErrors.INVALID_RECORD
const keyed = (value: string | Buffer = 'v'): ClientRecord => ({ key: 'k', value })
const keyless: ClientRecord = { key: null, value: 'v' }
/** So much is looked into by another thread. */
const large = Buffer.alloc(2 * limits.inflatedAtOnceBytesMax, 'x')

for (const policy of ['compact', 'compact,delete']) {
  test(`a record without a key is refused by its index, and nothing of its batch is written: ${policy}`, async t => {
    const { api, client } = await stage(t, policy)
    for (const compressed of [{}, gzip, zstd]) {
      for (const value of ['small', large]) {
        const batch = clientBatch({ records: [keyed(value), keyed(), keyless, keyless], ...compressed })
        const told = await produceBatch(client, 't', 0, batch, 8)
        assert.deepEqual([told.errorCode, told.baseOffset], [invalid, -1])
        const [record] = told.recordErrors
        assert.equal(record?.batchIndex, 2)
        assert.match(told.errorMessage ?? '', /^record 2 of the batch has no key, and topic 't' is compacted/)
        assert.equal((await produceBatch(client, 't', 0, batch, 7)).errorCode, invalid, 'versions that have no words')
      }
    }
    assert.deepEqual(await api.ends('t'), [0, 0])
    assert.equal(
      (await produceBatch(client, 't', 0, clientBatch({ records: [{ key: '', value: null }] }))).errorCode,
      0
    )
    assert.deepEqual(await api.ends('t'), [1, 0])
  })
}

test('each batch of a request is refused or written for itself', async t => {
  const { api, client } = await stage(t)
  const batches = [clientBatch({ records: [keyless] }), clientBatch({ records: [keyed(large)], ...gzip })]
  const partitionData = batches.map((records, index) => ({ index, records }))
  const answer = await client.call(apis.produce, 9, {
    acks: -1,
    timeoutMs: 1000,
    topicData: [{ name: 't', partitionData }]
  })
  const codes = answer.responses[0]?.partitionResponses.map(({ errorCode }) => errorCode)
  assert.deepEqual(codes, [invalid, 0])
  assert.deepEqual(await api.ends('t'), [0, 1])
})

test("batches of Kafka's own client are looked into, whatever compressed them", async t => {
  const { api, client } = await stage(t)
  for (const codec of ['none', 'gzip', 'snappy', 'lz4', 'zstd']) {
    const batch = readFileSync(new URL(`../fixtures/client-batches/${codec}.batch`, import.meta.url))
    // They name a producer, which this broker does not know: without one.
    const plain = Buffer.from(batch)
    plain.fill(0xff, 43, 57)
    const told = await produceBatch(client, 't', 0, withCrc(plain), 9)
    assert.deepEqual([told.errorCode, told.recordErrors.length], [invalid, 1], codec)
  }
  assert.deepEqual(await api.ends('t'), [0, 0])
})

test('a batch whose records cannot be decoded is refused, one that was damaged on its way is to be sent again', async t => {
  const { api, client } = await stage(t)
  for (const body of [Buffer.from('nothing'), large]) {
    for (const codec of [0, 1, 2, 3, 4]) {
      const told = await produceBatch(client, 't', 0, clientBatch({ body, codec, count: 1 }), 8)
      assert.equal(told.errorCode, invalid, `codec ${codec}`)
      assert.match(told.errorMessage ?? '', /its records cannot be decoded/)
    }
  }
  const damaged = clientBatch({ records: [keyless] })
  damaged[17] = (damaged[17] as number) ^ 1
  assert.equal((await produceBatch(client, 't', 0, damaged)).errorCode, kafkaErrors.CORRUPT_MESSAGE.code)
  assert.deepEqual(await api.ends('t'), [0, 0])
})

test('a batch that would inflate beyond the limit is refused, and the broker goes on', async t => {
  const { api, client } = await stage(t)
  const records = [keyed(Buffer.alloc(limits.inflatedBatchBytesMax))]
  const told = await produceBatch(client, 't', 0, clientBatch({ records, ...zstd }), 8)
  assert.equal(told.errorCode, invalid)
  assert.equal((await produceBatch(client, 't', 0, clientBatch({ records: [keyed()] }))).errorCode, 0)
  assert.deepEqual(await api.ends('t'), [1, 0])
})

test('batches that are looked into elsewhere keep their order, also those of an idempotent producer', async t => {
  const { api, client } = await stage(t)
  const producerId = await newProducer(client)
  const values = Array.from({ length: 30 }, (_, i) => (i % 3 === 0 ? `${i}:${large.toString()}` : `${i}:`))
  const sent = values.map((value, sequence) =>
    produceBatch(client, 't', 0, clientBatch({ records: [keyed(value)], producerId, epoch: 0, sequence, ...gzip }))
  )
  const told = await Promise.all(sent)
  assert.deepEqual(
    told.map(({ errorCode, baseOffset }) => [errorCode, baseOffset]),
    values.map((_, i) => [0, i])
  )
  assert.deepEqual(
    (await api.consumeAll('t', 0)).map(({ value }) => value.split(':')[0]),
    values.map((_, i) => `${i}`)
  )
})

test('a topic that is not compacted takes any records, and keeps what it has when it comes to be', async t => {
  const { api, client } = await stage(t, 'delete')
  const undecodable = clientBatch({ body: Buffer.from('nothing'), codec: 1, count: 1 })
  const before = [clientBatch({ records: [keyless] }), undecodable, clientBatch({ records: [keyless, keyed(large)] })]
  for (const batch of before) assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
  await api.call('PUT', '/topics/t/config', '{"cleanup_policy":"compact"}')
  for (const batch of before) assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, invalid)
  assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
  assert.deepEqual(await api.ends('t'), [4, 0])
  assert.equal((await api.consumeAll('t', 0)).length, 3)
})

test('KafkaJS is told that its record is not valid, and does not try again', async t => {
  const { kafka } = await stage(t)
  const producer = kafkaJs(kafka).producer()
  await producer.connect()
  t.after(() => producer.disconnect())
  const send = (key: string | null) => producer.send({ topic: 't', messages: [{ key, value: 'v', partition: 0 }] })
  await assert.rejects(send(null), /record/i)
  await send('k')
})

test('over HTTP a compacted topic takes records without a key, as ever', async t => {
  const { api } = await stage(t)
  await api.produce('t', [{ value: 'v', partition: 0 }])
  assert.deepEqual(await api.ends('t'), [1, 0])
  assertRefused(
    await api.post('/topics/t/produce', { records: [{ value: 'v', partition: 9 }] }),
    400,
    'PARTITION_RANGE'
  )
})
