/** Requests that are sent without waiting for answers: each finds what those before it on its connection have done. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import type { Api } from '../../src/wire/kafka/message.ts'
import type { FieldTable, ReadOf, WriteOf } from '../../src/wire/kafka/schema.ts'
import { startBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { produceBody } from '../support/kafka-calls.ts'
import { connectKafka, decodeResponse, type KafkaClient } from '../support/kafka-client.ts'

const timeoutMs = 1000
const batch = clientBatch({ records: [{ key: 'k', value: 'v' }] })

/** Sends a request. @returns what takes its answer, which is called in the order of the requests. */
function send<Request extends FieldTable, Response extends FieldTable>(
  client: KafkaClient,
  api: Api<Request, Response>,
  version: number,
  body: WriteOf<Request>
): () => Promise<ReadOf<Response>> {
  client.send(api, version, body)
  return async () => {
    const response = await client.next()
    assert.ok(response !== null, `${api.name} was answered by a close`)
    return decodeResponse(api, version, response)
  }
}

async function stage(t: TestContext): Promise<KafkaClient> {
  const broker = await startBroker(t)
  await new HttpApi(broker.url).createTopic('t', 2)
  return connectKafka(t, broker.kafka)
}

/** All that is sent meanwhile comes to the broker at once. */
function together<Sent>(client: KafkaClient, sendAll: () => Sent): Sent {
  client.socket.cork()
  const sent = sendAll()
  client.socket.uncork()
  return sent
}

test('a topic that is made, grown, changed and deleted is so for what is sent behind that', async t => {
  const client = await stage(t)
  const topics = [{ name: 'n', numPartitions: 2, replicationFactor: 1, assignments: [], configs: [] }]
  const configs = [{ name: 'retention.ms', configOperation: 0, value: '12345' }]
  const named = { topics: [{ name: 'n' }] }
  const resource = { resourceType: 2, resourceName: 'n' }
  const [created, produced, grown, told, altered, described, deleted, gone] = together(
    client,
    () =>
      [
        send(client, apis.createTopics, 5, { topics, timeoutMs }),
        send(client, apis.produce, 7, produceBody('n', 1, batch)),
        send(client, apis.createPartitions, 2, {
          topics: [{ name: 'n', count: 5, assignments: null }],
          timeoutMs,
          validateOnly: false
        }),
        send(client, apis.metadata, 9, named),
        send(client, apis.incrementalAlterConfigs, 1, { resources: [{ ...resource, configs }], validateOnly: false }),
        send(client, apis.describeConfigs, 4, {
          resources: [{ ...resource, configurationKeys: ['retention.ms'] }]
        }),
        send(client, apis.deleteTopics, 5, { topicNames: ['n'], timeoutMs }),
        send(client, apis.metadata, 9, named)
      ] as const
  )
  assert.equal((await created()).topics[0]?.errorCode, 0)
  assert.equal((await produced()).responses[0]?.partitionResponses[0]?.errorCode, 0)
  assert.equal((await grown()).results[0]?.errorCode, 0)
  assert.equal((await told()).topics[0]?.partitions.length, 5)
  assert.equal((await altered()).responses[0]?.errorCode, 0)
  assert.equal((await described()).results[0]?.configs[0]?.value, '12345')
  assert.equal((await deleted()).responses[0]?.errorCode, 0)
  assert.equal((await gone()).topics[0]?.errorCode, 3)
})

test('a topic that is made because its metadata are asked for is there for what is sent behind that', async t => {
  const broker = await startBroker(t, { flags: { '--auto-create-topics': 'true' } })
  const client = await connectKafka(t, broker.kafka)
  const [told, produced] = together(
    client,
    () =>
      [
        send(client, apis.metadata, 9, { topics: [{ name: 'n' }], allowAutoTopicCreation: true }),
        send(client, apis.produce, 7, produceBody('n', 0, batch))
      ] as const
  )
  assert.equal((await told()).topics[0]?.errorCode, 0)
  assert.equal((await produced()).responses[0]?.partitionResponses[0]?.errorCode, 0)
})

test('an offset that is committed for a group that was not there is fetched by what is sent behind that', async t => {
  const client = await stage(t)
  const partitions = [{ partitionIndex: 0, committedOffset: 5, committedMetadata: '' }]
  const unknown = { generationIdOrMemberEpoch: -1, memberId: '' }
  const asked = { groupId: 'g', topics: [{ name: 't', partitionIndexes: [0] }] }
  const [committed, fetched, listed, deleted, none] = together(
    client,
    () =>
      [
        send(client, apis.offsetCommit, 7, { groupId: 'g', ...unknown, topics: [{ name: 't', partitions }] }),
        send(client, apis.offsetFetch, 7, asked),
        send(client, apis.listGroups, 3, {}),
        send(client, apis.deleteGroups, 2, { groupsNames: ['g'] }),
        send(client, apis.offsetFetch, 7, asked)
      ] as const
  )
  assert.equal((await committed()).topics[0]?.partitions[0]?.errorCode, 0)
  assert.equal((await fetched()).topics[0]?.partitions[0]?.committedOffset, 5)
  assert.deepEqual(
    (await listed()).groups.map(({ groupId }) => groupId),
    ['g']
  )
  assert.equal((await deleted()).results[0]?.errorCode, 0)
  assert.equal((await none()).topics[0]?.partitions[0]?.committedOffset, -1)
})

test('records that are written and deleted are so for what is sent behind that', async t => {
  const client = await stage(t)
  const ends = (timestamp: number) => ({
    replicaId: -1,
    topics: [{ name: 't', partitions: [{ partitionIndex: 0, timestamp }] }]
  })
  const all = { topics: [{ name: 't', partitions: [{ partitionIndex: 0, offset: -1 }] }], timeoutMs }
  for (let i = 1; i <= 20; i++) {
    const [produced, latest, deleted, earliest] = together(
      client,
      () =>
        [
          send(client, apis.produce, 7, produceBody('t', 0, batch)),
          send(client, apis.listOffsets, 5, ends(-1)),
          send(client, apis.deleteRecords, 2, all),
          send(client, apis.listOffsets, 5, ends(-2))
        ] as const
    )
    assert.equal((await produced()).responses[0]?.partitionResponses[0]?.errorCode, 0)
    assert.equal((await latest()).topics[0]?.partitions[0]?.offset, i)
    assert.equal((await deleted()).topics[0]?.partitions[0]?.lowWatermark, i)
    assert.equal((await earliest()).topics[0]?.partitions[0]?.offset, i)
  }
})
