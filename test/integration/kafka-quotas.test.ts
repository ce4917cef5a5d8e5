/**
 * Quotas of keys over Kafka's protocol: what is asked for is done, into debt, and the debt is waited out by the broker, so
 * that no client and no number of connections gets around it.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startGuarded, type GuardedBroker, type KeyAnswer } from '../support/access.ts'
import { waitFor } from '../support/broker.ts'
import { clientBatch, splitBatches, zstd } from '../support/client-batches.ts'
import { HttpApi, parse } from '../support/http-api.ts'
import { fetchBody, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { ClientSession, partitionsOf } from '../support/kafka-session.ts'
import { untilWatching } from '../support/metrics-held.ts'

const RATE = 1_000_000
const LARGE = 300_000
/** A fetch of LARGE bytes leaves a debt of nine seconds. */
const DEEP_RATE = 30_000
/** It leaves one of a fifth of a second. */
const SHALLOW_RATE = 250_000

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

/** Writes as an admin, who has no quota. */
async function fill({ admin, broker }: Stage, t: TestContext, count: number): Promise<void> {
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, admin.id, admin.secret), 0)
  for (let i = 0; i < count; i++) assert.equal((await produce(client, large)).errorCode, 0)
}

test('a produce over its quota is taken, and what follows on its connection waits until the debt is paid', async t => {
  const s = await stage(t, { produce_bytes_per_sec: 50_000 })
  const client = await s.connect()
  // From before it was asked: how late its answer is seen on a busy machine makes no difference.
  const startMs = performance.now()
  const over = await produce(client, batchOf(60_000))
  assert.equal(over.errorCode, 0)
  assert.ok(over.throttleMs > 0 && over.throttleMs <= 201, String(over.throttleMs))
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

const fetchLarge = (by: KafkaClient, offset: number) =>
  by.call(apis.fetch, 11, fetchBody('t', { 0: offset }, { maxBytes: LARGE, maxWaitMs: 60_000 }))

test('a fetch over its quota brings what it can once, and then nothing on any other connection', async t => {
  const s = await stage(t, { consume_bytes_per_sec: DEEP_RATE })
  await fill(s, t, 2)
  const first = await s.connect()
  const second = await s.connect()
  const third = new ClientSession(await s.connect(), 't')
  const over = await fetchLarge(first, 0)
  assert.equal(partitionsOf(over)[0]?.records?.length, large.length)
  assert.ok(over.throttleTimeMs > 0, 'it has to wait')
  // All logins are done, and both ask at once: the debt is there however slow the machine is, and nobody waits for its end.
  const [other, session] = await Promise.all([fetchLarge(second, 0), third.call({ offsets: { 0: 0 } })])
  assert.deepEqual([other.errorCode, other.responses.length], [0, 0])
  assert.ok(other.throttleTimeMs > 0)
  assert.deepEqual([session.sessionId, session.responses.length], [0, 0], 'nor is a session opened')
  assert.ok(session.throttleTimeMs > 0)
})

test('what follows a fetch over its quota waits until the debt is paid, and is done then', async t => {
  const s = await stage(t, { consume_bytes_per_sec: SHALLOW_RATE })
  await fill(s, t, 2)
  const client = await s.connect()
  const startMs = performance.now()
  const over = await fetchLarge(client, 0)
  assert.equal(partitionsOf(over)[0]?.records?.length, large.length)
  assert.ok(over.throttleTimeMs > 0, 'it has to wait')
  const next = await fetchLarge(client, 1)
  assert.ok(performance.now() - startMs >= over.throttleTimeMs - 5, 'muted for so long')
  assert.equal(partitionsOf(next)[0]?.records?.length, large.length)
})

test('a key that fetches over many connections at once gets no more than over one', async t => {
  const s = await stage(t, { consume_bytes_per_sec: RATE })
  await fill(s, t, 1)
  const clients = await Promise.all(Array.from({ length: 12 }, () => s.connect()))
  const startMs = performance.now()
  for (const client of clients) client.send(apis.fetch, 11, fetchBody('t', { 0: 0 }, { maxBytes: LARGE }))
  let bytes = 0
  for (const client of clients) {
    const response = await client.next()
    assert.ok(response !== null)
    for (const { records } of partitionsOf(decodeResponse(apis.fetch, 11, response))) bytes += records?.length ?? 0
  }
  const seconds = (performance.now() - startMs) / 1000
  assert.ok(bytes >= RATE, 'what the quota gives at once has come')
  assert.ok(bytes <= RATE * (1 + seconds) + large.length, `${bytes} bytes in ${seconds} s`)
})

/** What the broker counts as consumed of the topic: records and bytes. */
async function consumed({ admin }: Stage): Promise<number[]> {
  const page = (await admin.api.get('/metrics')).text
  return ['records', 'bytes'].map(what => {
    const found = new RegExp(`^es_topic_${what}_consumed_total\\{topic="t"\\} (\\d+)$`, 'm').exec(page)
    return Number(found?.[1] ?? NaN)
  })
}

test('a fetch that waits for more is charged and counted for what it sends, not for what it has read before', async t => {
  const part = batchOf(9000)
  // All of it is less than the quota gives at once; with what was read and dropped on the way it would be more.
  const s = await stage(t, { consume_bytes_per_sec: DEEP_RATE })
  const writer = await connectKafka(t, s.broker.kafka)
  assert.equal(await loginPlain(writer, s.admin.id, s.admin.secret), 0)
  const client = await s.connect()
  assert.equal((await produce(writer, part)).errorCode, 0)
  const body = fetchBody('t', { 0: 0 }, { maxWaitMs: 60_000, minBytes: 3 * part.length })
  const sent = client.send(apis.fetch, 11, body)
  await untilWatching(s.admin, 1)
  assert.deepEqual(await consumed(s), [0, 0], 'it has read, and sent nothing')
  for (let i = 0; i < 2; i++) assert.equal((await produce(writer, part)).errorCode, 0)
  const response = await client.next()
  assert.ok(response?.correlationId === sent)
  const answer = decodeResponse(apis.fetch, 11, response)
  assert.equal(partitionsOf(answer)[0]?.records?.length, 3 * part.length)
  assert.equal(answer.throttleTimeMs, 0)
  assert.deepEqual(await consumed(s), [3, 3 * part.length])
})

test('what does not fit into an answer, or its client could not read, is not counted as consumed', async t => {
  const s = await stage(t, {})
  const admin = await connectKafka(t, s.broker.kafka)
  assert.equal(await loginPlain(admin, s.admin.id, s.admin.secret), 0)
  const request = { topics: [{ name: 't', count: 8, assignments: null }], timeoutMs: 1000, validateOnly: false }
  assert.equal((await admin.call(apis.createPartitions, 2, request)).results[0]?.errorCode, 0)
  const one = batchOf(5000)
  const packed = clientBatch({ records: [{ value: 'z' }, { value: 'z' }], ...zstd })
  const write = async (index: number, batch: Buffer) =>
    assert.equal((await produceBatch(admin, 't', index, batch)).errorCode, 0)
  for (let partition = 0; partition < 8; partition++) await write(partition, one)
  for (const batch of [packed, one]) await write(0, batch)
  const offsets = Object.fromEntries(Array.from({ length: 8 }, (_, partition) => [partition, 0]))
  let records = 0
  let bytes = 0
  const fetchAll = async (version: number, asked: object): Promise<number> => {
    const answer = await admin.call(apis.fetch, version, fetchBody('t', offsets, asked))
    const batches = partitionsOf(answer).flatMap(({ records }) => splitBatches(records ?? Buffer.alloc(0)))
    for (const batch of batches) {
      records += batch.readInt32BE(57)
      bytes += batch.length
    }
    assert.deepEqual(await consumed(s), [records, bytes])
    return batches.length
  }
  assert.equal(await fetchAll(9, {}), 8, 'old clients get what stands before the first batch of zstd')
  assert.equal(await fetchAll(11, {}), 10)
  const few = await fetchAll(11, { maxBytes: one.length + 10 })
  assert.ok(few > 0 && few < 8, `${few} batches`)
})

test('a session outlives a throttled fetch', async t => {
  const s = await stage(t, { consume_bytes_per_sec: SHALLOW_RATE })
  await fill(s, t, 2)
  const session = new ClientSession(await s.connect(), 't')
  const first = await session.fetch({ offsets: { 0: 0 }, maxBytes: LARGE })
  assert.equal(first[0]?.records?.length, large.length)
  const told = await waitFor('the next batch', async () => {
    const [partition] = await session.fetch({ offsets: { 0: 1 }, maxBytes: LARGE })
    return partition?.records?.length ? partition : undefined
  })
  assert.equal(told.highWatermark, 2)
})
