/** Partitions that a topic does not have, below 0 and beyond its last, in every API of the Kafka listener that names some. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka } from '../support/kafka-client.ts'

test('a partition that a topic does not have is unknown to every API, and nothing is noted of it', async t => {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', 2)
  const client = await connectKafka(t, broker.kafka)
  const batch = clientBatch({ records: [{ value: 'v' }] })
  const group = { groupId: 'g', generationIdOrMemberEpoch: -1, memberId: '' }
  for (const partitionIndex of [-1, -(2 ** 31), 2, 2 ** 31 - 1]) {
    const place = { partitionIndex, committedOffset: 5, committedMetadata: null }
    const commit = { ...group, topics: [{ name: 't', partitions: [place] }] }
    const committed = await client.call(apis.offsetCommit, 7, commit)
    const listed = await client.call(apis.listOffsets, 5, {
      replicaId: -1,
      isolationLevel: 0,
      topics: [{ name: 't', partitions: [{ partitionIndex, currentLeaderEpoch: -1, timestamp: -1 }] }]
    })
    const deleted = await client.call(apis.deleteRecords, 1, {
      topics: [{ name: 't', partitions: [{ partitionIndex, offset: 0 }] }],
      timeoutMs: 1000
    })
    const ended = await client.call(apis.offsetForLeaderEpoch, 3, {
      replicaId: -2,
      topics: [{ topic: 't', partitions: [{ partition: partitionIndex, currentLeaderEpoch: -1, leaderEpoch: 0 }] }]
    })
    const codes = [
      (await produceBatch(client, 't', partitionIndex, batch)).errorCode,
      (await fetchPartitions(client, 't', { [partitionIndex]: 0 }))[0]?.errorCode,
      committed.topics[0]?.partitions[0]?.errorCode,
      listed.topics[0]?.partitions[0]?.errorCode,
      deleted.topics[0]?.partitions[0]?.errorCode,
      ended.topics[0]?.partitions[0]?.errorCode
    ]
    assert.deepEqual(
      codes,
      codes.map(() => kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code),
      `partition ${partitionIndex}`
    )
  }
  const all = await client.call(apis.offsetFetch, 5, { groupId: 'g', topics: null })
  assert.deepEqual([all.errorCode, all.topics.length], [0, 0])
  assert.equal(broker.server.kafka?.probe.refused.bug, 0)
})
