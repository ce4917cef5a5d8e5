/**
 * Quotas of keys over Kafka's protocol: what is asked for is done, into debt, and the debt is waited out by the broker, so
 * that no client and no number of connections gets around it.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startGuarded, type GuardedBroker, type KeyAnswer } from '../support/access.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { produceBody } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'

const RATE = 1_000_000
const LARGE = 300_000

interface Stage extends GuardedBroker {
  readonly secret: string
  /** A further connection of the key with the quota. */
  connect(): Promise<KafkaClient>
}

async function stage(
  t: TestContext,
  quotas: { produce_bytes_per_sec?: number; consume_bytes_per_sec?: number }
): Promise<Stage> {
  const guarded = await startGuarded(t)
  await guarded.admin.api.createTopic('t')
  const request = { name: 'limited', acls: [{ action: 'write', topic_prefix: 't' }], ...quotas }
  const { key, secret } = parse<{ key: KeyAnswer; secret: string }>(
    await guarded.admin.api.post('/admin/keys', request)
  )
  const connect = async () => {
    const client = await connectKafka(t, guarded.broker.kafka)
    assert.equal(await loginPlain(client, key.key_id, secret), 0)
    return client
  }
  return { ...guarded, secret, connect }
}

const batchOf = (bytes: number): Buffer => clientBatch({ records: [{ value: 'x'.repeat(bytes - 100) }] })
const large = batchOf(LARGE)

async function produce(client: KafkaClient, records: Buffer) {
  const answer = await client.call(apis.produce, 7, produceBody('t', 0, records))
  const told = answer.responses[0]?.partitionResponses[0]
  return { errorCode: told?.errorCode, throttleMs: answer.throttleTimeMs }
}

test('a produce over its quota is taken, and what follows on its connection waits until the debt is paid', async t => {
  const s = await stage(t, { produce_bytes_per_sec: 20_000 })
  const client = await s.connect()
  const over = await produce(client, batchOf(24_000))
  const startMs = performance.now()
  assert.equal(over.errorCode, 0)
  assert.ok(over.throttleMs > 0 && over.throttleMs <= 250, String(over.throttleMs))
  // It does not heed what it was told, as clients before KIP-219 do not.
  await client.call(apis.metadata, 4, { topics: [] })
  assert.ok(performance.now() - startMs >= over.throttleMs - 5, 'muted for so long')
  assert.equal((await produce(client, batchOf(2000))).errorCode, 0)
  assert.deepEqual(await s.admin.api.ends('t'), [2])
})

test('a key that produces over many connections at once gets no more than over one', async t => {
  const s = await stage(t, { produce_bytes_per_sec: RATE })
  const clients = await Promise.all(Array.from({ length: 9 }, () => s.connect()))
  const startMs = performance.now()
  const answers = await Promise.all(clients.map(client => produce(client, large)))
  const seconds = (performance.now() - startMs) / 1000
  assert.deepEqual(
    answers.map(({ errorCode }) => errorCode),
    Array(9).fill(0)
  )
  // The bucket holds a second's worth, and the last of them may leave a debt of its own size.
  assert.ok(8 * LARGE <= RATE * (1 + seconds), `9 batches of ${LARGE} bytes in ${seconds} s`)
})

test('a batch that would leave a debt of more than ten seconds is refused, and says so', async t => {
  const s = await stage(t, { produce_bytes_per_sec: 2000 })
  const client = await s.connect()
  const refused = await produce(client, batchOf(23_000))
  assert.equal(refused.errorCode, kafkaErrors.THROTTLING_QUOTA_EXCEEDED.code)
  assert.ok(refused.throttleMs > 0, 'it does not come again at once')
  assert.deepEqual(await s.admin.api.ends('t'), [0])
  // One request of many batches leaves no deeper debt than one large batch.
  const other = await s.connect()
  const partitionData = Array.from({ length: 4 }, () => ({ index: 0, records: batchOf(9000) }))
  const topicData = [{ name: 't', partitionData }]
  const answer = await other.call(apis.produce, 7, { acks: -1, timeoutMs: 1000, topicData })
  const codes = answer.responses[0]?.partitionResponses.map(({ errorCode }) => errorCode)
  assert.deepEqual(codes, [0, 0, 89, 89])
  // And HTTP refuses at once while it lasts: there nothing is ever taken into debt.
  const http = await new HttpApi(s.broker.url, s.secret).post('/topics/t/produce', { records: [{ value: 'v' }] })
  assert.equal(http.status, 429)
})
