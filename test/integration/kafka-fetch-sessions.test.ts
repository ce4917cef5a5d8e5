/** Fetch sessions of Kafka's protocol (KIP-227): what is asked once and told when it is news, and how sessions end. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch, splitBatches } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { ClientSession, partitionsOf } from '../support/kafka-session.ts'
import { chosenSeed, diceOf, replayLine } from '../support/log-random.ts'
import { untilWatching } from '../support/metrics-held.ts'

const { FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR } = kafkaErrors
const { UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_OUT_OF_RANGE } = kafkaErrors

interface Stage {
  readonly t: TestContext
  readonly broker: TestBroker
  readonly api: HttpApi
  readonly client: KafkaClient
  readonly writer: KafkaClient
  readonly topicId: string
}

async function stage(t: TestContext, partitions = 3): Promise<Stage> {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', partitions)
  const writer = await connectKafka(t, broker.kafka)
  return { t, broker, api, client: await connectKafka(t, broker.kafka), writer, topicId: await idOf(writer) }
}

async function idOf(client: KafkaClient): Promise<string> {
  return (await client.call(apis.metadata, 12, { topics: [{ name: 't' }] })).topics[0]?.topicId ?? ''
}

const batchOf = (value: string): Buffer => clientBatch({ records: [{ key: 'k', value }] })
const write = (client: KafkaClient, partition: number, value = 'v') =>
  produceBatch(client, 't', partition, batchOf(value))
const sessionsOf = ({ broker }: Stage) => broker.server.kafka?.probe.fetchSessions
const indexesOf = (told: readonly { readonly partitionIndex: number }[]): number[] =>
  told.map(({ partitionIndex }) => partitionIndex)

test('a session is told of all partitions once, then of those with news, in every layout of a fetch', async t => {
  const s = await stage(t)
  for (const [i, version] of [7, 11, 12, 13, 17].entries()) {
    await t.test(`version ${version}`, async t => {
      const client = await connectKafka(t, s.broker.kafka)
      const session = new ClientSession(client, 't', version, s.topicId)
      assert.deepEqual(indexesOf(await session.fetch({ offsets: { 0: i, 1: i, 2: i } })), [0, 1, 2])
      assert.ok(session.id > 0)
      assert.deepEqual(await session.fetch(), [])
      await write(s.writer, 1)
      const [told, ...others] = await session.fetch()
      assert.deepEqual([told?.partitionIndex, told?.highWatermark, others.length], [1, i + 1, 0])
      assert.ok((told?.records?.length ?? 0) > 0)
      // It has not said that it has those records, so they come again.
      assert.deepEqual(indexesOf(await session.fetch()), [1])
      assert.deepEqual(await session.fetch({ offsets: { 1: i + 1 } }), [])
      const page = await s.api.get('/metrics')
      assert.match(page.text, /\nmillrace_kafka_fetch_sessions 1\n/)
      assert.match(page.text, /\nmillrace_kafka_fetch_session_partitions 3\n/)
      assert.equal((await session.call({ epoch: -1 })).errorCode, 0)
      await write(s.writer, 0)
      await write(s.writer, 2)
    })
  }
})

test('clients that want no session get none, however often they fetch', async t => {
  const s = await stage(t)
  // Session 0 and epoch −1 is what librdkafka and Sarama say; brokers that opened one each time drowned (sarama#1644).
  for (let i = 0; i < 50; i++) {
    const answer = await s.client.call(apis.fetch, 11, fetchBody('t', { 0: 0, 1: 0, 2: 0 }))
    assert.deepEqual([answer.sessionId, partitionsOf(answer).length], [0, 3])
  }
  const old = await s.client.call(apis.fetch, 6, fetchBody('t', { 0: 0 }, { sessionEpoch: -1 }))
  assert.equal(partitionsOf(old).length, 1)
  assert.deepEqual(sessionsOf(s), { sessions: 0, partitions: 0, evicted: 0 })
  await untilWatching(s, 0)
})

test('a wrong epoch, an unknown session and topics named the other way are refused, each by its code', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't', 12, s.topicId)
  await session.fetch({ offsets: { 0: 0 } })
  for (const epoch of [2, 7, -2])
    assert.equal((await session.call({ epoch })).errorCode, INVALID_FETCH_SESSION_EPOCH.code)
  const unknown = await session.call({ sessionId: session.id === 1 ? 2 : session.id - 1 })
  assert.deepEqual([unknown.errorCode, unknown.sessionId], [FETCH_SESSION_ID_NOT_FOUND.code, 0])
  assert.equal((await session.call({ version: 13 })).errorCode, FETCH_SESSION_TOPIC_ID_ERROR.code)
  // Nothing of that has moved it.
  assert.deepEqual(await session.fetch(), [])
  const byId = new ClientSession(s.client, 't', 13, s.topicId)
  await byId.fetch({ offsets: { 0: 0 } })
  assert.equal((await byId.call({ version: 12 })).errorCode, FETCH_SESSION_TOPIC_ID_ERROR.code)
})

test('a session ends by epoch −1, by opening another, and when its last partition is forgotten', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  const open = async (): Promise<void> => {
    session.epoch = 0
    await session.fetch({ offsets: { 0: 0, 1: 0 } })
  }
  await open()
  const formerId = session.id
  await open()
  assert.notEqual(session.id, formerId)
  assert.equal((await session.call({ sessionId: formerId })).errorCode, FETCH_SESSION_ID_NOT_FOUND.code)
  // Elsewhere a fetch that closes its session with max_wait 0 hung.
  const closing = await session.call({ epoch: -1, minBytes: 1_000_000 })
  assert.deepEqual([closing.errorCode, closing.sessionId, closing.responses.length], [0, 0, 0])
  assert.equal((await session.call()).errorCode, FETCH_SESSION_ID_NOT_FOUND.code)
  await open()
  const emptied = await session.call({ forgotten: [0, 1], maxWaitMs: 60_000 })
  assert.deepEqual([emptied.errorCode, emptied.sessionId, emptied.responses.length], [0, 0, 0])
  assert.deepEqual(sessionsOf(s), { sessions: 0, partitions: 0, evicted: 0 })
  await untilWatching(s, 0)
})

test('forgotten partitions are told no more, and one that is forgotten and asked for at once is new', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  await session.fetch({ offsets: { 0: 0, 1: 0, 2: 0 } })
  await write(s.writer, 0)
  await write(s.writer, 1)
  assert.deepEqual(indexesOf(await session.fetch({ forgotten: [0] })), [1])
  assert.deepEqual(await session.fetch({ offsets: { 1: 1 } }), [])
  assert.deepEqual(indexesOf(await session.fetch({ forgotten: [1], offsets: { 1: 1, 0: 1 } })), [0, 1])
  assert.deepEqual(sessionsOf(s)?.partitions, 3)
})

test('a fetch in a session waits for min_bytes over all its partitions, and no longer than it says', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  await session.fetch({ offsets: { 0: 0, 1: 0, 2: 0 } })
  const batch = batchOf('x'.repeat(100))
  // Elsewhere max_wait was forgotten in sessions, and clients asked in circles (redpanda#1115).
  const reads = () => s.broker.server.kafka?.probe.apis.get('Fetch')?.requests
  session.send({ maxWaitMs: 60_000, minBytes: 2 * batch.length })
  let isAnswered = false
  const answered = s.client.next().then(response => {
    isAnswered = true
    return response
  })
  await produceBatch(s.writer, 't', 2, batch)
  await s.writer.call(apis.fetch, 11, fetchBody('t', { 2: 0 }))
  assert.deepEqual([isAnswered, reads()], [false, 3])
  await produceBatch(s.writer, 't', 0, batch)
  const response = await answered
  assert.ok(response !== null)
  const told = partitionsOf(decodeResponse(apis.fetch, 12, response))
  assert.deepEqual(indexesOf(told).sort(), [0, 2])
  for (const { records } of told) assert.equal(records?.length, batch.length)
  // With the time over it says what there is.
  const rest = await session.fetch({ offsets: { 0: 1 }, minBytes: 1_000_000, maxWaitMs: 50 })
  assert.deepEqual([indexesOf(rest), rest[0]?.records?.length], [[2], batch.length])
  assert.deepEqual(await session.fetch({ offsets: { 2: 1 }, minBytes: 1_000_000, maxWaitMs: 50 }), [])
  assert.deepEqual(await session.fetch({ minBytes: 1_000_000, maxWaitMs: 0 }), [])
})

test('where a partition begins is news, without a record', async t => {
  const s = await stage(t, 40)
  for (const partition of [0, 39]) await write(s.writer, partition)
  const session = new ClientSession(s.client, 't')
  const all = Object.fromEntries(Array.from({ length: 40 }, (_, i) => [i, 0]))
  await session.fetch({ offsets: all })
  assert.deepEqual(await session.fetch({ offsets: { 0: 1, 39: 1 } }), [])
  const topics = [{ name: 't', partitions: [39].map(partitionIndex => ({ partitionIndex, offset: 1 })) }]
  await s.writer.call(apis.deleteRecords, 1, { topics, timeoutMs: 1000 })
  // Some of those that are quiet are looked at with each fetch.
  const told = await waitFor('the news', async () => (await session.fetch())[0])
  assert.deepEqual([told.partitionIndex, told.logStartOffset, told.records?.length], [39, 1, 0])
  assert.deepEqual(await session.fetch(), [])
})

test('an error of a partition is told with each fetch, at once, until it is gone', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  const first = await session.fetch({ offsets: { 0: 9, 1: 0, 7: 0 }, maxWaitMs: 60_000 })
  const codes = [OFFSET_OUT_OF_RANGE.code, 0, UNKNOWN_TOPIC_OR_PARTITION.code]
  assert.deepEqual(
    first.map(told => told.errorCode),
    codes
  )
  for (let i = 0; i < 3; i++) {
    const told = await session.fetch({ maxWaitMs: 60_000 })
    assert.deepEqual(told.map(({ partitionIndex, errorCode }) => [partitionIndex, errorCode]).sort(), [
      [0, codes[0]],
      [7, codes[2]]
    ])
  }
  const [told] = await session.fetch({ offsets: { 0: 0 }, forgotten: [7] })
  assert.deepEqual([told?.partitionIndex, told?.errorCode, told?.highWatermark], [0, 0, 0])
  assert.deepEqual(await session.fetch(), [])
})

test('by its name a session follows a topic that is made anew, by its id it does not', async t => {
  const s = await stage(t, 1)
  const byName = new ClientSession(s.client, 't', 12)
  const byId = new ClientSession(await connectKafka(t, s.broker.kafka), 't', 13, s.topicId)
  for (const session of [byName, byId]) await session.fetch({ offsets: { 0: 0 } })
  byName.send({ maxWaitMs: 60_000 })
  await s.api.call('DELETE', '/topics/t')
  const woken = await s.client.next()
  assert.ok(woken !== null)
  const [gone] = partitionsOf(decodeResponse(apis.fetch, 12, woken))
  assert.equal(gone?.errorCode, UNKNOWN_TOPIC_OR_PARTITION.code)
  assert.equal((await byId.fetch({ maxWaitMs: 60_000 }))[0]?.errorCode, UNKNOWN_TOPIC_ID.code)
  await s.api.createTopic('t')
  await write(s.writer, 0)
  assert.equal((await byId.fetch())[0]?.errorCode, UNKNOWN_TOPIC_ID.code)
  const [again] = await byName.fetch()
  assert.deepEqual([again?.errorCode, again?.highWatermark], [0, 1])
})

test('requests of a session may follow each other without waiting for answers', async t => {
  const s = await stage(t, 1)
  const session = new ClientSession(s.client, 't')
  await session.fetch({ offsets: { 0: 0 } })
  session.send({ maxWaitMs: 60_000 })
  session.send({ offsets: { 0: 1 } })
  session.send({})
  await write(s.writer, 0)
  const counts: number[] = []
  for (let i = 0; i < 3; i++) {
    const response = await s.client.next()
    assert.ok(response !== null)
    const answer = decodeResponse(apis.fetch, 12, response)
    assert.equal(answer.errorCode, 0)
    counts.push(partitionsOf(answer).length)
  }
  assert.deepEqual(counts, [1, 0, 0])
})

test('a session goes on over another connection, and costs nothing while nobody is connected', async t => {
  const s = await stage(t)
  const session = new ClientSession(s.client, 't')
  await session.fetch({ offsets: { 0: 0, 1: 0, 2: 0 } })
  await untilWatching(s, 3)
  s.client.socket.destroy()
  await untilWatching(s, 0)
  await write(s.writer, 2)
  session.client = await connectKafka(t, s.broker.kafka)
  assert.deepEqual(indexesOf(await session.fetch()), [2])
  // One that still waits elsewhere is not disturbed.
  session.send({ offsets: { 2: 1 }, maxWaitMs: 60_000 })
  await untilWatching(s, 3)
  const other = new ClientSession(await connectKafka(t, s.broker.kafka), 't')
  const early = await other.call({ sessionId: session.id, epoch: session.epoch })
  assert.equal(early.errorCode, INVALID_FETCH_SESSION_EPOCH.code)
  // Opening anew in its place ends it.
  other.id = session.id
  assert.equal((await other.fetch({ offsets: { 0: 0 } })).length, 1)
  assert.notEqual(await session.client.next(), null)
  assert.equal(sessionsOf(s)?.sessions, 1)
})

test('the session of a key is unknown to another, which can neither use nor end it', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t')
  const other = await makeTestKey(admin.api, 'read:t')
  const [mine, theirs] = [await connectKafka(t, broker.kafka), await connectKafka(t, broker.kafka)]
  assert.equal(await loginPlain(mine, admin.id, admin.secret), 0)
  assert.equal(await loginPlain(theirs, other.id, other.secret), 0)
  const session = new ClientSession(mine, 't')
  await session.fetch({ offsets: { 0: 0 } })
  const stolen = new ClientSession(theirs, 't')
  stolen.id = session.id
  assert.equal((await stolen.call({ epoch: 1 })).errorCode, FETCH_SESSION_ID_NOT_FOUND.code)
  assert.equal((await stolen.call({ epoch: -1 })).errorCode, 0)
  assert.deepEqual(await session.fetch(), [])
})

test('no partition of a session waits for ever behind the others', async t => {
  const s = await stage(t, 5)
  for (let partition = 0; partition < 5; partition++)
    for (let i = 0; i < 4; i++) await write(s.writer, partition, 'x'.repeat(1000))
  const session = new ClientSession(s.client, 't')
  const sizes = { maxBytes: 1, partitionMaxBytes: 1 }
  const places: Record<number, number> = { 0: 0, 1: 0, 2: 0, 3: 0, 4: 0 }
  let offsets: Record<number, number> = { ...places }
  for (let i = 0; i < 20; i++) {
    const told = (await session.fetch({ offsets, ...sizes })).filter(({ records }) => records?.length)
    assert.equal(told.length, 1)
    const { partitionIndex = -1, records } = told[0] ?? {}
    places[partitionIndex] = (places[partitionIndex] ?? 0) + splitBatches(records ?? Buffer.alloc(0)).length
    offsets = { [partitionIndex]: places[partitionIndex] }
    const values = Object.values(places)
    assert.ok(Math.max(...values) - Math.min(...values) <= 1, JSON.stringify(places))
  }
})

test('whatever is written, forgotten and asked for, a session brings every record once and in order', async t => {
  const seed = chosenSeed()
  t.diagnostic(replayLine(seed, 'test/integration/kafka-fetch-sessions.test.ts'))
  const dice = diceOf(seed)
  const s = await stage(t, 6)
  const session = new ClientSession(s.client, 't', dice.pick([9, 12, 13, 16]), s.topicId)
  const ends = Array(6).fill(0) as number[]
  /** Of the partitions that the session has; where the client reads on. */
  const places = new Map<number, number>([[0, 0]])
  const kept = Array(6).fill(0) as number[]
  let changed = new Map(places)
  let forgotten: number[] = []
  for (let round = 0; round < 150; round++) {
    for (let i = dice.below(3); i > 0; i--) {
      const partition = dice.below(6)
      await write(s.writer, partition, 'x'.repeat(dice.below(3000)))
      ends[partition] = (ends[partition] ?? 0) + 1
    }
    const told = await session.fetch({
      offsets: Object.fromEntries(changed),
      forgotten,
      maxWaitMs: dice.pick([0, 0, 5]),
      minBytes: dice.pick([1, 1, 5000]),
      maxBytes: dice.pick([1, 4000, 1_000_000]),
      partitionMaxBytes: dice.pick([1, 2000, 100_000])
    })
    changed = new Map()
    forgotten = []
    for (const { partitionIndex, errorCode, records, highWatermark } of told) {
      const place = places.get(partitionIndex)
      assert.deepEqual([errorCode, highWatermark], [0, ends[partitionIndex]])
      assert.ok(place !== undefined, `${partitionIndex} was forgotten`)
      const batches = splitBatches(records ?? Buffer.alloc(0))
      for (const [i, batch] of batches.entries()) assert.equal(Number(batch.readBigInt64BE(0)), place + i)
      places.set(partitionIndex, place + batches.length)
      kept[partitionIndex] = place + batches.length
      if (batches.length > 0 && dice.chance(0.9)) changed.set(partitionIndex, place + batches.length)
      else if (batches.length > 0) places.set(partitionIndex, place)
    }
    const partition = dice.below(6)
    if (dice.chance(0.3) && !places.has(partition)) {
      places.set(partition, kept[partition] ?? 0)
      changed.set(partition, kept[partition] ?? 0)
    } else if (dice.chance(0.1) && places.size > 1 && places.has(partition)) {
      kept[partition] = places.get(partition) ?? 0
      places.delete(partition)
      changed.delete(partition)
      forgotten.push(partition)
    }
  }
  for (const [partition, place] of places) changed.set(partition, place)
  for (let i = 0; i < 100 && [...places].some(([partition, place]) => place < (ends[partition] ?? 0)); i++) {
    for (const { partitionIndex, records } of await session.fetch({
      offsets: Object.fromEntries(changed),
      forgotten
    })) {
      const place = (places.get(partitionIndex) ?? 0) + splitBatches(records ?? Buffer.alloc(0)).length
      places.set(partitionIndex, place)
      changed.set(partitionIndex, place)
    }
    forgotten = []
  }
  for (const [partition, place] of places) assert.equal(place, ends[partition])
})

test('partitions that have more than a fetch may bring come forward alike', async t => {
  const [count, batches] = [6, 24]
  const s = await stage(t, count)
  const size = batchOf('v'.repeat(1000)).length
  for (let partition = 0; partition < count; partition++)
    for (let i = 0; i < batches; i++) await write(s.writer, partition, 'v'.repeat(1000))
  // Twelve batches and a half in all: each time a rest is left that is a batch of one more.
  const maxBytes = Math.floor(12.5 * size)
  for (const batchesOfPartition of [4.5, 20])
    await readEvenly(s, { count, batches }, { maxBytes, partitionMaxBytes: Math.floor(batchesOfPartition * size) })
})

/** Reads all partitions to their ends in a session of its own, and sees that none falls behind the others. */
async function readEvenly(
  s: Stage,
  { count, batches }: { readonly count: number; readonly batches: number },
  sizes: { readonly maxBytes: number; readonly partitionMaxBytes: number }
): Promise<void> {
  const session = new ClientSession(await connectKafka(s.t, s.broker.kafka), 't')
  const offsets: Record<number, number> = Object.fromEntries(Array.from({ length: count }, (_, i) => [i, 0]))
  let news = offsets
  for (let fetches = 1; Object.values(offsets).some(offset => offset < batches); fetches++) {
    assert.ok(fetches <= count * batches, 'each fetch brings something')
    const told = await session.fetch({ ...sizes, offsets: news })
    news = {}
    for (const { partitionIndex, records } of told) {
      const found = records === null ? 0 : splitBatches(records).length
      if (found > 0) news[partitionIndex] = offsets[partitionIndex] = (offsets[partitionIndex] ?? 0) + found
    }
    const places = Object.values(offsets)
    // What one fetch brings: who got least is first next time.
    assert.ok(Math.max(...places) - Math.min(...places) <= 13, `after ${fetches} fetches: ${places.join(', ')}`)
  }
}
