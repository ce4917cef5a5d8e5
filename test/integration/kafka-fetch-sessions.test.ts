/** Fetch sessions of Kafka's protocol (KIP-227): what is asked once and told when it is news, and how sessions end. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { waitFor } from '../support/broker.ts'
import { fetchBody, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse } from '../support/kafka-client.ts'
import { loginPlain } from '../support/kafka-login.ts'
import { ClientSession, partitionsOf } from '../support/kafka-session.ts'
import { batchOf, sessionStage, write, type SessionStage } from '../support/kafka-session-stage.ts'
import { untilWatching } from '../support/metrics-held.ts'

const { FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH, FETCH_SESSION_TOPIC_ID_ERROR } = kafkaErrors
const { UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, OFFSET_OUT_OF_RANGE } = kafkaErrors

const sessionsOf = ({ broker }: SessionStage) => broker.server.kafka?.probe.fetchSessions
const indexesOf = (told: readonly { readonly partitionIndex: number }[]): number[] =>
  told.map(({ partitionIndex }) => partitionIndex)

test('a session is told of all partitions once, then of those with news, in every layout of a fetch', async t => {
  const s = await sessionStage(t)
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
  const s = await sessionStage(t)
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
  const s = await sessionStage(t)
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
  const s = await sessionStage(t)
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
  const s = await sessionStage(t)
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
  const s = await sessionStage(t)
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
  const s = await sessionStage(t, 40)
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
  const s = await sessionStage(t)
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
  const s = await sessionStage(t, 1)
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
  const s = await sessionStage(t, 1)
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
  const s = await sessionStage(t)
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
