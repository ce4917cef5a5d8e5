/** How long offsets of Kafka's clients stay, and the codes by which Kafka's tools know what keeps a group or an offset. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { encodeEmbedded, subscription } from '../../src/wire/kafka/consumer-protocol.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const { NONE, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND, GROUP_SUBSCRIBED_TO_TOPIC } = kafkaErrors
const { UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_MEMBER_ID } = kafkaErrors

async function stage(t: TestContext) {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  for (const topic of ['orders', 'billing']) await api.createTopic(topic, 2)
  return { broker, api, client: await connectKafka(t, broker.kafka) }
}

/** Commits offset 5 with a note, in partition 0 of topics, as no member. @returns the codes. */
async function commit(client: KafkaClient, groupId: string, topics: readonly string[]): Promise<number[]> {
  const partitions = [{ partitionIndex: 0, committedOffset: 5, committedLeaderEpoch: 0, committedMetadata: 'noted' }]
  const answer = await client.call(apis.offsetCommit, 8, {
    ...{ groupId, topics: topics.map(name => ({ name, partitions })) }
  })
  return answer.topics.flatMap(topic => topic.partitions.map(({ errorCode }) => errorCode))
}

/** All that a group has committed. */
async function offsetsOf(client: KafkaClient, groupId: string) {
  const { topics } = await client.call(apis.offsetFetch, 7, { groupId, topics: null, groups: [] })
  const told = topics.map(({ name, partitions }) => {
    return [name, partitions.map(({ committedOffset, metadata }) => `${committedOffset} ${metadata}`)] as const
  })
  return Object.fromEntries(told)
}

/** Joins a group without others. @returns its id. */
async function join(client: KafkaClient, groupId: string, protocolType: string, topics: string[]): Promise<string> {
  const protocols = [{ name: 'range', metadata: encodeEmbedded(subscription, 0, { topics }) }]
  const timeouts = { sessionTimeoutMs: 30_000, rebalanceTimeoutMs: 30_000 }
  const { errorCode, memberId } = await client.call(apis.joinGroup, 3, {
    ...{ groupId, memberId: '', protocolType, protocols, ...timeouts }
  })
  assert.equal(errorCode, NONE.code)
  return memberId
}

async function leave(client: KafkaClient, groupId: string, memberId: string): Promise<void> {
  assert.equal((await client.call(apis.leaveGroup, 1, { groupId, memberId, members: [] })).errorCode, NONE.code)
}

/** @returns the code of the group, and those of partition 0 of each topic. */
async function deleteOffsets(client: KafkaClient, groupId: string, topics: readonly string[]) {
  const answer = await client.call(apis.offsetDelete, 0, {
    ...{ groupId, topics: topics.map(name => ({ name, partitions: [{ partitionIndex: 0 }] })) }
  })
  return [answer.errorCode, ...answer.topics.map(({ partitions }) => partitions[0]?.errorCode)]
}

async function deleteGroups(client: KafkaClient, groupsNames: string[]): Promise<number[]> {
  const { results } = await client.call(apis.deleteGroups, 2, { groupsNames })
  return results.map(({ errorCode }) => errorCode)
}

test('offsets go with their topic, and a topic that is made anew has none of the one before, also after a restart', async t => {
  const { api, broker, client } = await stage(t)
  assert.deepEqual(await commit(client, 'g', ['orders', 'billing']), [NONE.code, NONE.code])
  const kept = { billing: ['5 noted'] }
  assert.equal((await api.call('DELETE', '/topics/orders')).status, 200)
  assert.deepEqual(await offsetsOf(client, 'g'), kept)
  assert.deepEqual(await commit(client, 'g', ['orders']), [UNKNOWN_TOPIC_OR_PARTITION.code])
  await api.createTopic('orders', 2)
  assert.deepEqual(await offsetsOf(client, 'g'), kept)
  await broker.stop()
  const again = await startBroker(t, { dataDir: broker.dataDir })
  assert.deepEqual(await offsetsOf(await connectKafka(t, again.kafka), 'g'), kept)
})

test('a group that its members have left keeps its offsets, over a restart too, until it is deleted', async t => {
  const { broker, client } = await stage(t)
  await commit(client, 'g', ['orders'])
  await leave(client, 'g', await join(client, 'g', 'consumer', ['orders']))
  await broker.stop()
  const again = await connectKafka(t, (await startBroker(t, { dataDir: broker.dataDir })).kafka)
  assert.deepEqual(await offsetsOf(again, 'g'), { orders: ['5 noted'] })
  const { groups } = await again.call(apis.describeGroups, 5, { groups: ['g', 'none'] })
  assert.deepEqual(
    groups.map(({ errorCode, groupState }) => [errorCode, groupState]),
    [
      [NONE.code, 'Empty'],
      [NONE.code, 'Dead']
    ]
  )
  assert.deepEqual(await deleteGroups(again, ['g', 'g']), [NONE.code, GROUP_ID_NOT_FOUND.code])
  assert.deepEqual(await offsetsOf(again, 'g'), {})
  await commit(again, 'g', ['billing'])
  assert.deepEqual(await offsetsOf(again, 'g'), { billing: ['5 noted'] }, 'one of its name begins anew')
})

test('a group with members is not deleted nor moved from outside, whichever protocol they speak', async t => {
  const { api, client } = await stage(t)
  const memberId = await join(client, 'kafka', 'consumer', ['orders'])
  await api.post('/groups/http/join', { topics: ['orders'], member_id: 'm' })
  const names = ['kafka', 'http', 'none']
  assert.deepEqual(await deleteGroups(client, names), [
    NON_EMPTY_GROUP.code,
    NON_EMPTY_GROUP.code,
    GROUP_ID_NOT_FOUND.code
  ])
  for (const name of ['kafka', 'http'])
    assert.deepEqual(await commit(client, name, ['orders']), [UNKNOWN_MEMBER_ID.code])
  await leave(client, 'kafka', memberId)
  await api.post('/groups/http/leave', { member_id: 'm' })
  for (const name of ['kafka', 'http']) assert.deepEqual(await commit(client, name, ['orders']), [NONE.code])
  assert.deepEqual(await deleteGroups(client, names), [NONE.code, NONE.code, GROUP_ID_NOT_FOUND.code])
})

test('an offset is deleted where no member reads its topic: others are refused, each for itself', async t => {
  const { api, client } = await stage(t)
  assert.deepEqual(await deleteOffsets(client, 'g', ['orders']), [GROUP_ID_NOT_FOUND.code])
  await commit(client, 'g', ['orders', 'billing'])
  const memberId = await join(client, 'g', 'consumer', ['orders'])
  assert.deepEqual(await deleteOffsets(client, 'g', ['orders', 'billing', 'missing']), [
    ...[NONE.code, GROUP_SUBSCRIBED_TO_TOPIC.code, NONE.code, UNKNOWN_TOPIC_OR_PARTITION.code]
  ])
  assert.deepEqual(await offsetsOf(client, 'g'), { orders: ['5 noted'] })
  await leave(client, 'g', memberId)

  await api.post('/groups/g/join', { topics: ['orders'], member_id: 'm' })
  assert.deepEqual(await deleteOffsets(client, 'g', ['orders']), [NONE.code, GROUP_SUBSCRIBED_TO_TOPIC.code])
  await api.post('/groups/g/leave', { member_id: 'm' })
  // What such members read nobody here can tell.
  const connect = await join(client, 'g', 'connect', [])
  assert.deepEqual(await deleteOffsets(client, 'g', ['orders']), [NON_EMPTY_GROUP.code])
  await leave(client, 'g', connect)
  assert.deepEqual(await deleteOffsets(client, 'g', ['orders']), [NONE.code, NONE.code])
  assert.deepEqual(await offsetsOf(client, 'g'), {})
})
