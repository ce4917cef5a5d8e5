/**
 * Leader epochs over Kafka's protocol: where a start cuts a torn tail the epoch of its partition grows, and all that tells of
 * epochs says the same, or a client that has seen one of them waits for ever for metadata that is as new.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { spawnBroker, waitFor, type SpawnedBroker } from '../support/broker.ts'
import { clientBatch, splitBatches } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchBody, fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const { NONE, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH, FETCH_SESSION_ID_NOT_FOUND } = kafkaErrors
const LATEST = -1
const EARLIEST = -2
const flags = { '--shards': '1', '--bind-kafka': '127.0.0.1:0' }
const batchOf = (value: string): Buffer => clientBatch({ records: [{ value }] })

/** What a client is told of the epochs of t/0, by whatever tells of them. */
async function told(client: KafkaClient) {
  const metadata = await client.call(apis.metadata, 9, { topics: [{ name: 't' }], allowAutoTopicCreation: false })
  const ends = await Promise.all(
    [EARLIEST, LATEST].map(async timestamp => {
      const topics = [{ name: 't', partitions: [{ partitionIndex: 0, currentLeaderEpoch: -1, timestamp }] }]
      const answer = await client.call(apis.listOffsets, 5, { replicaId: -1, isolationLevel: 0, topics })
      return answer.topics[0]?.partitions[0]?.leaderEpoch
    })
  )
  const epochEnds = await Promise.all(
    [0, 1, 2].map(async leaderEpoch => {
      const topics = [{ topic: 't', partitions: [{ partition: 0, currentLeaderEpoch: -1, leaderEpoch }] }]
      const [end] = (await client.call(apis.offsetForLeaderEpoch, 3, { topics })).topics[0]?.partitions ?? []
      return [end?.leaderEpoch, end?.endOffset]
    })
  )
  const [read] = await fetchPartitions(client, 't', { 0: 0 })
  const batches = splitBatches(read?.records ?? Buffer.alloc(0))
  const codes = await Promise.all(
    [-1, 0, 1, 2].map(async currentLeaderEpoch => {
      const [partition] = await fetchPartitions(client, 't', { 0: 0 }, { currentLeaderEpoch })
      const listed = [{ name: 't', partitions: [{ partitionIndex: 0, currentLeaderEpoch, timestamp: LATEST }] }]
      const list = await client.call(apis.listOffsets, 5, { replicaId: -1, isolationLevel: 0, topics: listed })
      const ended = [{ topic: 't', partitions: [{ partition: 0, currentLeaderEpoch, leaderEpoch: 0 }] }]
      const end = await client.call(apis.offsetForLeaderEpoch, 3, { topics: ended })
      const others = [list.topics[0]?.partitions[0]?.errorCode, end.topics[0]?.partitions[0]?.errorCode]
      assert.deepEqual(others, [partition?.errorCode, partition?.errorCode], 'all look at it alike')
      return partition?.errorCode
    })
  )
  return {
    metadata: metadata.topics[0]?.partitions.map(({ leaderEpoch }) => leaderEpoch),
    ends,
    epochEnds,
    batches: batches.map(batch => [Number(batch.readBigInt64BE(0)), batch.readInt32BE(12)]),
    codes
  }
}

const beforeCut = {
  metadata: [0, 0],
  ends: [0, 0],
  epochEnds: [
    [0, 2],
    [-1, -1],
    [-1, -1]
  ],
  batches: [
    [0, 0],
    [1, 0]
  ],
  codes: [NONE.code, NONE.code, UNKNOWN_LEADER_EPOCH.code, UNKNOWN_LEADER_EPOCH.code]
}

const afterCut = {
  metadata: [1, 0],
  ends: [0, 1],
  epochEnds: [
    [0, 2],
    [1, 3],
    [-1, -1]
  ],
  batches: [
    [0, 0],
    [1, 0],
    [2, 1]
  ],
  codes: [NONE.code, FENCED_LEADER_EPOCH.code, NONE.code, UNKNOWN_LEADER_EPOCH.code]
}

/** A broker that tears the third group, which is the third produce. */
async function tearing(t: TestContext, dataDir: string, how: string): Promise<SpawnedBroker> {
  const env = { MILLRACE_FAULTS: `0/group.write:3=${how}` }
  const broker = await spawnBroker(t, { dataDir, flags, env })
  await new HttpApi(broker.url).createTopic('t', 2)
  return broker
}

test('a shard that starts anew tells of the epoch that it began: sessions end, and clients ask again', async t => {
  const dataDir = temporaryDirectory(t)
  const broker = await tearing(t, dataDir, 'short-EIO')
  const client = await connectKafka(t, broker.kafka)
  for (const value of ['a', 'b']) await produceBatch(client, 't', 0, batchOf(value))
  assert.deepEqual(await told(client), beforeCut)
  const opened = await client.call(
    apis.fetch,
    11,
    fetchBody('t', { 0: 2, 1: 0 }, { sessionEpoch: 0, currentLeaderEpoch: 0 })
  )
  assert.notEqual(opened.sessionId, 0)

  assert.notEqual((await produceBatch(client, 't', 0, batchOf('torn'))).errorCode, NONE.code)
  await broker.waitForLog(({ cutGroups }) => cutGroups === 1)
  await waitFor('the shard', async () => (await fetch(`${broker.url}/readyz`)).status === 200)
  const next = await client.call(apis.fetch, 11, fetchBody('t', {}, { sessionId: opened.sessionId, sessionEpoch: 1 }))
  assert.equal(next.errorCode, FETCH_SESSION_ID_NOT_FOUND.code)
  assert.equal((await produceBatch(client, 't', 0, batchOf('c'))).errorCode, NONE.code)
  assert.deepEqual(await told(client), afterCut)
  // The other way: no end of what sessions are for.
  const body = fetchBody('t', { 0: 3 }, { sessionEpoch: 0, currentLeaderEpoch: 1 })
  const again = await client.call(apis.fetch, 11, body)
  const later = await client.call(apis.fetch, 11, fetchBody('t', {}, { sessionId: again.sessionId, sessionEpoch: 1 }))
  assert.equal(later.errorCode, NONE.code)

  await broker.kill('SIGKILL')
  const restarted = await spawnBroker(t, { dataDir, flags })
  assert.deepEqual(await told(await connectKafka(t, restarted.kafka)), afterCut)
  await restarted.kill('SIGKILL')
  // Settled, and on another shard.
  const moved = await spawnBroker(t, { dataDir, flags: { ...flags, '--shards': '3' } })
  assert.deepEqual(await told(await connectKafka(t, moved.kafka)), afterCut)
})

test('a topic of the same name that is made anew has no epoch but the first', async t => {
  const dataDir = temporaryDirectory(t)
  const torn = await tearing(t, dataDir, 'short-kill')
  const writer = await connectKafka(t, torn.kafka)
  for (const value of ['a', 'b']) await produceBatch(writer, 't', 0, batchOf(value))
  await assert.rejects(produceBatch(writer, 't', 0, batchOf('torn')))
  await waitFor('the kill', () => torn.child.signalCode !== null)
  const broker = await spawnBroker(t, { dataDir, flags })
  const client = await connectKafka(t, broker.kafka)
  assert.equal((await produceBatch(client, 't', 0, batchOf('c'))).errorCode, NONE.code)
  assert.deepEqual(await told(client), afterCut)
  const api = new HttpApi(broker.url)
  assert.equal((await api.call('DELETE', '/topics/t')).status, 200)
  await api.createTopic('t', 2)
  for (const value of ['a', 'b']) await produceBatch(client, 't', 0, batchOf(value))
  assert.deepEqual(await told(client), beforeCut)
})
