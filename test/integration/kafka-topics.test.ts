/** Topics and their configuration through the Kafka listener. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const wanted = { numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }

async function create(
  client: KafkaClient,
  topic: Partial<typeof wanted> & { readonly name: string },
  validateOnly = false
) {
  const answer = await client.call(apis.createTopics, 7, {
    topics: [{ ...wanted, ...topic }],
    timeoutMs: 1000,
    validateOnly
  })
  const [told] = answer.topics
  assert.ok(told !== undefined)
  return told
}

test('a topic is made with its partitions and configuration, under an id that it keeps and no other topic gets', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  const configs = [
    { name: 'retention.ms', value: '60000' },
    { name: 'cleanup.policy', value: 'delete,compact' },
    { name: 'message.timestamp.type', value: 'CreateTime' }
  ]
  const made = await create(client, { name: 't', numPartitions: 3, configs: configs as never })
  assert.deepEqual([made.errorCode, made.numPartitions, made.replicationFactor], [0, 3, 1])
  assert.deepEqual((await api.describe('t')).config['cleanup_policy'], 'compact,delete')
  const idOf = async () => (await client.call(apis.metadata, 12, { topics: [{ name: 't' }] })).topics[0]?.topicId
  assert.equal(await idOf(), made.topicId)
  const byId = await client.call(apis.metadata, 12, { topics: [{ name: null, topicId: made.topicId }] })
  assert.equal(byId.topics[0]?.name, 't')
  const gone = await client.call(apis.deleteTopics, 6, {
    topics: [{ name: null, topicId: made.topicId }],
    timeoutMs: 1000
  })
  assert.deepEqual(
    gone.responses.map(({ errorCode, name }) => [errorCode, name]),
    [[0, 't']]
  )
  const [fetched] = await fetchPartitions(client, '', { 0: 0 }, { version: 13, topicId: made.topicId })
  assert.equal(fetched?.errorCode, kafkaErrors.UNKNOWN_TOPIC_ID.code)
  await create(client, { name: 't' })
  assert.notEqual(await idOf(), made.topicId)
})

test('what a topic cannot be is refused, each by its code, and nothing is made', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('here')
  const codeOf = async (topic: object) => (await create(client, { name: 't', ...topic })).errorCode
  assert.equal(await codeOf({ name: 'here' }), kafkaErrors.TOPIC_ALREADY_EXISTS.code)
  assert.equal(await codeOf({ name: 'a b' }), kafkaErrors.INVALID_TOPIC_EXCEPTION.code)
  assert.equal(await codeOf({ numPartitions: 0 }), kafkaErrors.INVALID_PARTITIONS.code)
  assert.equal(await codeOf({ replicationFactor: 3 }), kafkaErrors.INVALID_REPLICATION_FACTOR.code)
  for (const [name, value] of [
    ['no.such.setting', '1'],
    ['retention.ms', 'soon'],
    ['segment.bytes', '1'],
    ['cleanup.policy', 'shred'],
    ['message.timestamp.type', 'SomeTime'],
    ['max.message.bytes', '999999999'],
    ['max.message.bytes', '-1'],
    ['segment.ms', '0'],
    ['__proto__', 'x']
  ]) {
    assert.equal(await codeOf({ configs: [{ name, value }] }), kafkaErrors.INVALID_CONFIG.code, name)
  }
  const tried = await create(
    client,
    { name: 'tried', configs: [{ name: 'retention.ms', value: '60000' }] as never },
    true
  )
  assert.equal(tried.errorCode, 0)
  // As it would be made: the Java client asks for that.
  assert.equal(tried.configs?.find(({ name }) => name === 'retention.ms')?.value, '60000')
  assert.deepEqual(
    (await client.call(apis.metadata, 4, { topics: null })).topics.map(({ name }) => name),
    ['here']
  )
})

test('configuration is shown under its names in Kafka and changed one by one or as a whole', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  await create(client, { name: 't' })
  const show = async (): Promise<Record<string, string | null>> => {
    const resources = [{ resourceType: 2, resourceName: 't', configurationKeys: null }]
    const [told] = (await client.call(apis.describeConfigs, 4, { resources })).results
    assert.equal(told?.errorCode, 0)
    return Object.fromEntries(told.configs.map(({ name, value }) => [name, value]))
  }
  const change = async (...configs: readonly (readonly [string, number, string | null])[]): Promise<number> => {
    const changes = configs.map(([name, configOperation, value]) => ({ name, configOperation, value }))
    const resources = [{ resourceType: 2, resourceName: 't', configs: changes }]
    const answer = await client.call(apis.incrementalAlterConfigs, 1, { resources, validateOnly: false })
    return answer.responses[0]?.errorCode ?? NaN
  }
  const before = await show()
  assert.deepEqual(
    [before['retention.ms'], before['cleanup.policy'], before['min.insync.replicas']],
    ['-1', 'delete', '1']
  )
  assert.equal(await change(['retention.ms', 0, '9007199254740993'], ['cleanup.policy', 2, 'compact']), 0)
  const changed = await show()
  assert.deepEqual([changed['retention.ms'], changed['cleanup.policy']], ['9007199254740993', 'compact,delete'])
  assert.equal(await change(['cleanup.policy', 3, 'delete'], ['retention.ms', 1, null]), 0)
  assert.deepEqual((await show())['cleanup.policy'], 'compact')
  assert.equal(await change(['retention.ms', 0, '5'], ['nonsense', 0, '1']), kafkaErrors.INVALID_CONFIG.code)
  assert.deepEqual((await show())['retention.ms'], '-1')
  const repeated = kafkaErrors.INVALID_REQUEST.code
  assert.equal(await change(['retention.ms', 0, '5'], ['retention.ms', 1, null]), repeated)
  assert.equal(await change(['cleanup.policy', 2, 'delete'], ['cleanup.policy', 3, 'compact']), repeated)
  assert.deepEqual((await show())['cleanup.policy'], 'compact')
  const resources = [{ resourceType: 2, resourceName: 't', configs: [{ name: 'segment.bytes', value: '1048576' }] }]
  const whole = await client.call(apis.alterConfigs, 2, { resources, validateOnly: false })
  assert.equal(whole.responses[0]?.errorCode, 0)
  assert.deepEqual(await show(), { ...before, 'segment.bytes': '1048576' })
})

test('a change of configuration that is only validated is refused as the change itself is, and changes nothing', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('t')
  await produceBatch(client, 't', 0, clientBatch({ records: [{ value: 'v' }] }))
  const { config } = await api.describe('t')
  const codes = async (name: string, value: string, validateOnly: boolean): Promise<(number | undefined)[]> => {
    const place = { resourceType: 2, resourceName: 't' }
    const change = { ...place, configs: [{ name, configOperation: 0, value }] }
    const one = await client.call(apis.incrementalAlterConfigs, 1, { resources: [change], validateOnly })
    const whole = { ...place, configs: [{ name, value }] }
    const all = await client.call(apis.alterConfigs, 2, { resources: [whole], validateOnly })
    return [one.responses[0]?.errorCode, all.responses[0]?.errorCode]
  }
  const refused = kafkaErrors.INVALID_CONFIG.code
  for (const [name, value] of [
    ['segment.bytes', '1'],
    ['max.message.bytes', '2147483647'],
    ['millrace.partitioner', 'murmur2']
  ] as const) {
    assert.deepEqual(await codes(name, value, true), [refused, refused], name)
    assert.deepEqual(await codes(name, value, false), [refused, refused], name)
  }
  assert.deepEqual(await codes('retention.ms', '5', true), [0, 0])
  assert.deepEqual((await api.describe('t')).config, config)
})

test('the broker is described, cannot be changed, and is the only one of its cluster', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  const described = await client.call(apis.describeConfigs, 4, {
    resources: [
      { resourceType: 4, resourceName: '1', configurationKeys: ['num.partitions'] },
      { resourceType: 4, resourceName: '9', configurationKeys: null }
    ]
  })
  assert.deepEqual(
    described.results.map(({ errorCode, configs }) => [errorCode, configs.length]),
    [
      [0, 1],
      [kafkaErrors.INVALID_REQUEST.code, 0]
    ]
  )
  const resources = [{ resourceType: 4, resourceName: '1', configs: [] }]
  const altered = await client.call(apis.incrementalAlterConfigs, 1, { resources, validateOnly: false })
  assert.equal(altered.responses[0]?.errorCode, kafkaErrors.INVALID_REQUEST.code)
  const cluster = await client.call(apis.describeCluster, 1, { includeClusterAuthorizedOperations: false })
  assert.deepEqual([cluster.errorCode, cluster.controllerId, cluster.brokers.length], [0, 1, 1])
  const metadata = await client.call(apis.metadata, 4, { topics: [] })
  assert.deepEqual([metadata.clusterId, metadata.controllerId], [cluster.clusterId, cluster.controllerId])
})

test('a topic that does not exist is not made because somebody asks for it, unless the setting says so', async t => {
  for (const [flags, code] of [
    [{}, kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code],
    [{ '--auto-create-topics': true }, 0]
  ] as const) {
    const broker = await startBroker(t, { flags })
    const client = await connectKafka(t, broker.kafka)
    const ask = (allowAutoTopicCreation: boolean) =>
      client.call(apis.metadata, 4, { topics: [{ name: 'wanted' }], allowAutoTopicCreation })
    assert.equal((await ask(false)).topics[0]?.errorCode, kafkaErrors.UNKNOWN_TOPIC_OR_PARTITION.code)
    assert.equal((await ask(true)).topics[0]?.errorCode, code)
  }
})
