/**
 * What a request of the Kafka listener names many times is answered once: an answer's entry may be thousands of times larger
 * than the name that asks for it.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const PARTITIONS = 3

async function stage(t: TestContext): Promise<KafkaClient> {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', PARTITIONS)
  return connectKafka(t, broker.kafka)
}

function times<Entry>(count: number, entry: Entry): Entry[] {
  return Array.from({ length: count }, () => entry)
}

test('Metadata tells of a topic once, whether it is named or meant by its id, and of an id that is none', async t => {
  const client = await stage(t)
  const byName = await client.call(apis.metadata, 12, {
    topics: times(1000, { name: 't' })
  })
  const told = byName.topics.map(({ name, partitions }) => [name, partitions.length])
  assert.deepEqual(told, [['t', PARTITIONS]])
  const topicId = byName.topics[0]?.topicId ?? ''
  const none = Buffer.alloc(16, 7).toString('base64url')
  const topics = [topicId, none].flatMap(id => times(1000, { name: null, topicId: id }))
  const mixed = await client.call(apis.metadata, 12, {
    topics: [...topics, { name: 't' }, { name: 'none' }]
  })
  assert.deepEqual(mixed.topics.map(({ name, errorCode }) => `${name} ${errorCode}`).sort(), [
    `none ${kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code}`,
    `null ${kafkaErrors.UNKNOWN_TOPIC_ID.code}`,
    't 0'
  ])
})

test('DescribeGroups and FindCoordinator tell of a group once', async t => {
  const client = await stage(t)
  const names = [...times(1000, 'g'), 'h', 'g']
  const described = await client.call(apis.describeGroups, 5, {
    groups: names
  })
  assert.deepEqual(
    described.groups.map(({ groupId }) => groupId),
    ['g', 'h']
  )
  const found = await client.call(apis.findCoordinator, 4, {
    keyType: 0,
    coordinatorKeys: names
  })
  assert.deepEqual(
    found.coordinators.map(({ key }) => key),
    ['g', 'h']
  )
})

test('DescribeConfigs tells of a resource once, what is first asked of it', async t => {
  const client = await stage(t)
  const topic = { resourceType: 2, resourceName: 't' }
  const { results } = await client.call(apis.describeConfigs, 4, {
    resources: [
      { ...topic, configurationKeys: ['retention.ms'] },
      ...times(1000, { ...topic, configurationKeys: null }),
      ...times(1000, {
        resourceType: 4,
        resourceName: '1',
        configurationKeys: ['num.partitions']
      })
    ]
  })
  assert.deepEqual(
    results.map(({ resourceName, configs }) => [resourceName, configs.map(({ name }) => name)]),
    [
      ['t', ['retention.ms']],
      ['1', ['num.partitions']]
    ]
  )
})

test('ListOffsets and OffsetForLeaderEpoch tell of a topic once, with all that was asked of it', async t => {
  const client = await stage(t)
  const asked = [0, 1, 1, 2].map(partitionIndex => ({
    name: 't',
    partitions: [{ partitionIndex, currentLeaderEpoch: -1, timestamp: -1 }]
  }))
  const listed = await client.call(apis.listOffsets, 7, {
    replicaId: -1,
    isolationLevel: 0,
    topics: asked
  })
  const [offsets, ...more] = listed.topics
  assert.equal(more.length, 0)
  assert.deepEqual(offsets?.partitions.map(told => [told.partitionIndex, told.errorCode]).sort(), [
    [0, 0],
    [1, kafkaErrors.INVALID_REQUEST.code],
    [2, 0]
  ])
  const ended = await client.call(apis.offsetForLeaderEpoch, 3, {
    replicaId: -2,
    topics: [0, 1].map(partition => ({
      topic: 't',
      partitions: [{ partition, currentLeaderEpoch: -1, leaderEpoch: 0 }]
    }))
  })
  assert.deepEqual(
    ended.topics.map(({ topic, partitions }) => [topic, partitions.map(told => [told.partition, told.endOffset])]),
    [
      [
        't',
        [
          [0, 0],
          [1, 0]
        ]
      ]
    ]
  )
})
