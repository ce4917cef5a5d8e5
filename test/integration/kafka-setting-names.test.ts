/** What refusals over the Kafka listener call the settings of a topic: by the names that its client knows. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker } from '../support/broker.ts'
import { clientBatch } from '../support/client-batches.ts'
import { HttpApi } from '../support/http-api.ts'
import { produceBatch } from '../support/kafka-calls.ts'
import { connectKafka } from '../support/kafka-client.ts'

const batch = clientBatch({ records: [{ key: 'k', value: 'v' }] })
/** Of every setting that can be changed a value that no topic may have. */
const wrong: readonly (readonly [string, string])[] = [
  ['cleanup.policy', 'shred'],
  ['delete.retention.ms', '-1'],
  ['max.message.bytes', '2147483647'],
  ['message.timestamp.type', 'SomeTime'],
  ['millrace.partitioner', 'crc32'],
  ['retention.bytes', '-2'],
  ['retention.ms', '-2'],
  ['segment.bytes', '1'],
  ['segment.ms', '0']
]

test('a refusal over Kafka calls what is wrong with a topic by its name in Kafka, never by that in HTTP', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('here')
  assert.equal((await produceBatch(client, 'here', 0, batch)).errorCode, 0)
  const resources = [{ resourceType: 2, resourceName: 'here', configurationKeys: null }]
  const [shown] = (await client.call(apis.describeConfigs, 4, { resources })).results
  const changeable = shown?.configs.filter(({ readOnly }) => !readOnly).map(({ name }) => name)
  assert.deepEqual(
    wrong.map(([name]) => name),
    changeable,
    'every setting is tried'
  )

  const topic = { name: 'new', numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }
  const made = async (asked: object) => {
    const request = { topics: [{ ...topic, ...asked }], timeoutMs: 1000, validateOnly: false }
    return (await client.call(apis.createTopics, 7, request)).topics[0]
  }
  const changed = async (name: string, value: string) => {
    const configs = [{ name, configOperation: 0, value }]
    const request = { resources: [{ resourceType: 2, resourceName: 'here', configs }], validateOnly: false }
    return (await client.call(apis.incrementalAlterConfigs, 1, request)).responses[0]
  }
  for (const [name, value] of wrong) {
    for (const told of [await made({ configs: [{ name, value }] }), await changed(name, value)]) {
      assert.equal(told?.errorCode, kafkaErrors.INVALID_CONFIG.code, name)
      assert.match(told.errorMessage ?? '', new RegExp(`^${name.replaceAll('.', '\\.')}(:| is) [^_]+$`))
    }
  }
  const moved = await changed('millrace.partitioner', 'murmur2')
  assert.match(moved?.errorMessage ?? '', /^millrace\.partitioner: of topic 'here' stays fnv1a/)

  const none = await made({ numPartitions: 0 })
  assert.equal(none?.errorCode, kafkaErrors.INVALID_PARTITIONS.code)
  assert.match(none.errorMessage ?? '', /^num_partitions is 0: allowed is 1 to /)
  const grown = async (count: number) => {
    const request = { topics: [{ name: 'here', count, assignments: null }], timeoutMs: 1000, validateOnly: false }
    return (await client.call(apis.createPartitions, 2, request)).results[0]
  }
  for (const [count, text] of [
    [1, /^count: topic 'here' has 1 partition\(s\)/],
    [0, /^count is 0: allowed is 1 to /]
  ] as const) {
    const told = await grown(count)
    assert.equal(told?.errorCode, kafkaErrors.INVALID_PARTITIONS.code)
    assert.match(told.errorMessage ?? '', text)
  }

  assert.equal((await changed('max.message.bytes', String(batch.length - 1)))?.errorCode, 0)
  const late = await produceBatch(client, 'here', 0, batch, 8)
  assert.equal(late.errorCode, kafkaErrors.MESSAGE_TOO_LARGE.code)
  assert.match(late.errorMessage ?? '', /\(max\.message\.bytes of topic 'here'\)/)
  assert.match(
    (await api.post('/topics/here/produce', { records: [{ value: 'x'.repeat(99) }] })).text,
    /max_message_bytes/
  )
})
