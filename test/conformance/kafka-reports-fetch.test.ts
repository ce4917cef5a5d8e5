/** Fetches that other brokers were reported to answer wrongly, late, or never: kafka-reports-rows.ts says whose they are. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { ZERO_UUID } from '../../src/wire/kafka/schema.ts'
import { placed } from '../support/client-batches.ts'
import { fetchBody, fetchPartitions, produceBatch, produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse } from '../support/kafka-client.ts'
import { ClientSession } from '../support/kafka-session.ts'
import { untilWatching } from '../support/metrics-held.ts'
import { batchOf, kafkaStage, TOPIC, topicIdOf } from './kafka-stage.ts'

/** Longer than a test may take: what is answered did not wait for it. */
const LONG_MS = 600_000
/** The last version that is not flexible: all lengths have their full size. */
const LAST_PLAIN = 11

/** Reads a fetch answer of one partition by the text of the protocol alone. @returns its records. */
function readPlainFetch(version: number, bytes: Buffer): Buffer {
  let at = 4
  const take = (size: number): number => (at += size) - size
  const int32 = (): number => bytes.readInt32BE(take(4))
  const int64 = (): bigint => bytes.readBigInt64BE(take(8))
  assert.equal(int32(), 0, 'throttle time')
  if (version >= 7) assert.deepEqual([bytes.readInt16BE(take(2)), int32()], [0, 0], 'error and session')
  assert.equal(int32(), 1, 'topics')
  const nameBytes = bytes.readInt16BE(take(2))
  assert.equal(bytes.toString('utf8', take(nameBytes), at), TOPIC)
  assert.equal(int32(), 1, 'partitions')
  assert.deepEqual([int32(), bytes.readInt16BE(take(2))], [0, 0], 'partition and error')
  assert.deepEqual([int64(), int64()], [1n, 1n], 'high watermark and last stable offset')
  if (version >= 5) assert.equal(int64(), 0n, 'log start')
  assert.ok([-1, 0].includes(int32()), 'aborted transactions: null or none')
  if (version >= 11) assert.equal(int32(), -1, 'replica to prefer')
  const recordsBytes = int32()
  const records = bytes.subarray(at, at + recordsBytes)
  assert.equal(at + recordsBytes, bytes.length, 'the answer ends with its records')
  return records
}

test('nisshi#62: a fetch answer is laid out as its version says, to the last byte', async t => {
  const { client } = await kafkaStage(t)
  const batch = batchOf('v')
  await produceBatch(client, TOPIC, 0, batch)
  for (let version = apis.fetch.versions.first; version <= LAST_PLAIN; version++) {
    for (const isolationLevel of [0, 1]) {
      client.send(apis.fetch, version, fetchBody(TOPIC, { 0: 0 }, { isolationLevel }))
      const answer = await client.next()
      assert.ok(answer !== null)
      assert.ok(readPlainFetch(version, answer.bytes).equals(placed(batch, 0)), `version ${version}`)
    }
  }
})

test('nisshi#668: a fetch is answered at once where there is enough, and after its wait where there is nothing', async t => {
  const { client } = await kafkaStage(t, { partitions: 2 })
  await produceBatch(client, TOPIC, 0, batchOf('v'))
  const topicId = await topicIdOf(client)
  for (let version = apis.fetch.versions.first; version <= apis.fetch.versions.last; version++) {
    const byId = version >= 13 ? { topicId } : {}
    // Without a session as librdkafka asks, and to open one as franz-go does.
    for (const sessionEpoch of version >= 7 ? [-1, 0] : [-1]) {
      const asked = { version, sessionEpoch, ...byId }
      const told = await fetchPartitions(client, TOPIC, { 0: 0, 1: 0 }, { ...asked, maxWaitMs: LONG_MS })
      assert.ok(told.some(({ records }) => (records?.length ?? 0) > 0))
      for (const end of await fetchPartitions(client, TOPIC, { 0: 1, 1: 0 }, { ...asked, maxWaitMs: 1 }))
        assert.deepEqual([end.errorCode, end.records?.length], [0, 0], `version ${version}`)
    }
  }
})

test('redpanda#1115: max_wait is honoured on incremental fetches', async t => {
  const stage = await kafkaStage(t)
  const { client, broker } = stage
  const session = new ClientSession(client, TOPIC)
  await session.fetch({ offsets: { 0: 0 } })
  assert.notEqual(session.id, 0)
  assert.deepEqual(await session.fetch({ maxWaitMs: 1 }), [], 'it ends')
  session.send({ maxWaitMs: LONG_MS })
  await untilWatching(stage, 1)
  let isAnswered = false
  const answered = client.next().then(answer => {
    isAnswered = true
    return answer
  })
  const other = await connectKafka(t, broker.kafka)
  for (let i = 0; i < 50; i++) await other.call(apis.metadata, 12, { topics: null })
  assert.equal(isAnswered, false, 'it waits: who asks again and again keeps a processor busy')
  await produceBatch(other, TOPIC, 0, batchOf('v'))
  const answer = await answered
  assert.ok(answer !== null)
  const { responses } = decodeResponse(apis.fetch, session.version, answer)
  assert.ok((responses[0]?.partitions[0]?.records?.length ?? 0) > 0)
})

test('redpanda PR 18852: no fetch has aborted transactions, whatever its isolation', async t => {
  const { client } = await kafkaStage(t)
  await produceBatch(client, TOPIC, 0, batchOf('v'))
  const topicId = await topicIdOf(client)
  for (let version = apis.fetch.versions.first; version <= apis.fetch.versions.last; version++) {
    for (const isolationLevel of [0, 1]) {
      const asked = { version, isolationLevel, ...(version >= 13 && { topicId }) }
      const [told] = await fetchPartitions(client, TOPIC, { 0: 0 }, asked)
      assert.deepEqual(told?.abortedTransactions ?? [], [], `version ${version}, isolation ${isolationLevel}`)
    }
  }
})

test('kop#397: read_committed reads all there is, without a coordinator of transactions', async t => {
  const { client } = await kafkaStage(t)
  const batch = batchOf('v')
  await produceBatch(client, TOPIC, 0, batch)
  const [told] = await fetchPartitions(client, TOPIC, { 0: 0 }, { isolationLevel: 1 })
  assert.deepEqual([told?.errorCode, told?.highWatermark, told?.lastStableOffset], [0, 1, 1])
  assert.ok(told?.records?.equals(placed(batch, 0)) === true)
  const body = {
    replicaId: -1,
    isolationLevel: 1,
    topics: [{ name: TOPIC, partitions: [{ partitionIndex: 0, timestamp: -1 }] }]
  }
  const ends = await client.call(apis.listOffsets, 5, body)
  assert.equal(ends.topics[0]?.partitions[0]?.offset, 1)
})

test('automq#709: a batch of a transaction is refused, so none can be read that was aborted', async t => {
  const { api, client } = await kafkaStage(t)
  const TRANSACTIONAL = 0x10
  const CONTROL = 0x20
  for (const attributes of [TRANSACTIONAL, CONTROL, TRANSACTIONAL | CONTROL]) {
    const { errorCode } = await produceBatch(client, TOPIC, 0, batchOf('v', { attributes, producerId: 5 }))
    assert.ok(errorCode > 0, `attributes ${attributes}`)
  }
  const { responses } = await client.call(apis.produce, 9, {
    ...produceBody(TOPIC, 0, batchOf('v')),
    transactionalId: 'x'
  })
  assert.ok((responses[0]?.partitionResponses[0]?.errorCode ?? 0) > 0)
  assert.deepEqual(await api.ends(TOPIC), [0])
})

test('librdkafka#4995: a fetch by name and one by id bring the same', async t => {
  const { client } = await kafkaStage(t)
  await produceBatch(client, TOPIC, 0, batchOf('v'))
  const topicId = await topicIdOf(client)
  const [byName] = await fetchPartitions(client, TOPIC, { 0: 0 }, { version: 12 })
  const [byId] = await fetchPartitions(client, TOPIC, { 0: 0 }, { version: 13, topicId })
  assert.deepEqual(byId, byName)
})

test('inkless PR 265: fetches of versions without topic ids work by name alone', async t => {
  const { client } = await kafkaStage(t)
  await produceBatch(client, TOPIC, 0, batchOf('v'))
  const { UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID } = kafkaErrors
  for (let version = apis.fetch.versions.first; version <= apis.fetch.versions.last; version++) {
    const isByName = version < 13
    const answer = await client.call(apis.fetch, version, {
      ...fetchBody(isByName ? TOPIC : '', { 0: 0 }, isByName ? {} : { topicId: ZERO_UUID })
    })
    const [topic] = answer.responses
    const [partition] = topic?.partitions ?? []
    if (isByName) assert.deepEqual([topic?.topic, partition?.errorCode, partition?.records?.length], [TOPIC, 0, 70])
    else assert.equal(partition?.errorCode ?? answer.errorCode, UNKNOWN_TOPIC_ID.code, `version ${version}`)
    if (!isByName) continue
    const [missing] = await fetchPartitions(client, 'missing', { 0: 0 }, { version })
    assert.equal(missing?.errorCode, UNKNOWN_TOPIC_OR_PARTITION.code, 'a code that clients of the version know')
  }
})
