/**
 * Times, sizes and segments as a topic has them: set over HTTP or Kafka, meant by all protocols. And the settings that
 * tools of Kafka name when they make topics.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { clientBatch, gzip, splitBatches, withCrc } from '../support/client-batches.ts'
import { HttpApi, type ErrorBody } from '../support/http-api.ts'
import { openClient, readAll } from '../support/es01-session.ts'
import { fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'

const LOG_APPEND_TIME = 1 << 3
const TOPIC = 2

async function create(client: KafkaClient, name: string, settings: Readonly<Record<string, string>>) {
  const configs = Object.entries(settings).map(([key, value]) => ({ name: key, value }))
  const topics = [{ name, numPartitions: 1, replicationFactor: 1, assignments: [], configs }]
  const [told] = (await client.call(apis.createTopics, 7, { topics, timeoutMs: 1000, validateOnly: false })).topics
  assert.ok(told !== undefined)
  return told
}

/** The first record at or after a time. */
async function offsetAt(client: KafkaClient, topic: string, timestamp: number): Promise<unknown> {
  const topics = [{ name: topic, partitions: [{ partitionIndex: 0, timestamp }] }]
  const told = (await client.call(apis.listOffsets, 7, { replicaId: -1, isolationLevel: 0, topics })).topics[0]
  return [told?.partitions[0]?.offset, told?.partitions[0]?.timestamp]
}

test('records of a topic with LogAppendTime have the time of their append, whatever their producer says and whoever reads', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('t', 1, { message_timestamp_type: 'LogAppendTime' })
  const producedMs = 1000
  const records = [
    { key: 'a', value: '1', timestampDelta: 5 },
    { key: 'b', value: '2' }
  ]
  const sent = clientBatch({ records, baseTimestamp: producedMs, ...gzip })
  const appended = await produceBatch(client, 't', 0, sent)
  const timeMs = Number(appended.logAppendTimeMs)
  assert.ok(timeMs > producedMs, `${timeMs} is of the broker's clock`)
  const [fetched] = await fetchPartitions(client, 't', { 0: 0 })
  const [batch] = splitBatches(fetched?.records ?? Buffer.alloc(0))
  assert.ok(batch !== undefined)
  assert.equal(batch.readInt16BE(21), sent.readInt16BE(21) | LOG_APPEND_TIME)
  assert.deepEqual([batch.readBigInt64BE(27), batch.readBigInt64BE(35)], [BigInt(producedMs), BigInt(timeMs)])
  assert.deepEqual(withCrc(Buffer.from(batch)), batch)
  const read = await api.consumeAll('t', 0)
  assert.deepEqual(
    read.map(({ timestamp_ms }) => timestamp_ms),
    [timeMs, timeMs]
  )
  const binary = await openClient(t, broker.es01)
  const seen = await readAll(binary, 't', 0)
  assert.deepEqual(
    seen.map(({ timestampMs }) => Number(timestampMs)),
    [timeMs, timeMs]
  )
  assert.deepEqual(await offsetAt(client, 't', 1), [0, timeMs])
  assert.deepEqual(await offsetAt(client, 't', timeMs), [0, timeMs])
  assert.deepEqual(await offsetAt(client, 't', timeMs + 1), [-1, -1])
})

for (const shards of [1, 3]) {
  const where = `${shards} shard(s)`
  test(`what HTTP and ES01 write to a topic with LogAppendTime says so to Kafka, after a start and a compaction too: ${where}`, async t => {
    const flags = { '--shards': shards }
    const first = await startBroker(t, { flags })
    const api = new HttpApi(first.url)
    await api.createTopic('t', 3, {
      message_timestamp_type: 'LogAppendTime',
      cleanup_policy: 'compact',
      segment_bytes: 1000
    })
    const partitions = [0, 1, 2]
    const pad = 'x'.repeat(400)
    const all = (key: string, value: string) => partitions.map(partition => ({ partition, key, value: value + pad }))
    await api.produce('t', all('k', 'old'))
    const binary = await openClient(t, first.es01)
    for (const value of ['new', 'newer', 'newest']) {
      const records = all('k', value).map(record => ({
        partition: record.partition,
        key: Buffer.from(record.key),
        value: Buffer.from(record.value),
        headers: [{ name: 'h', value: Buffer.from('v') }]
      }))
      await binary.produce('t', records)
    }
    await api.produce('t', all('other', 'last'))
    const seen = async (broker: TestBroker, partition: number): Promise<[number, number][]> => {
      const client = await connectKafka(t, broker.kafka)
      const [fetched] = await fetchPartitions(client, 't', { [partition]: 0 })
      const batches = splitBatches(fetched?.records ?? Buffer.alloc(0))
      const read = await new HttpApi(broker.url).consumeAll('t', partition)
      const timeOf = new Map(read.map(({ offset, timestamp_ms }) => [offset, timestamp_ms]))
      return batches.map(batch => {
        assert.deepEqual(withCrc(Buffer.from(batch)), batch)
        assert.equal(batch.readInt16BE(21), LOG_APPEND_TIME)
        const timeMs = Number(batch.readBigInt64BE(35))
        const offset = Number(batch.readBigInt64BE(0)) + batch.readInt32BE(23)
        assert.equal(timeOf.get(offset), timeMs)
        return [offset, timeMs]
      })
    }
    const before = await Promise.all(partitions.map(async partition => seen(first, partition)))
    assert.deepEqual(
      before.map(batches => batches.map(([offset]) => offset)),
      partitions.map(() => [0, 1, 2, 3, 4])
    )
    await first.stop()
    const second = await startBroker(t, { dataDir: first.dataDir, flags })
    assert.deepEqual(await Promise.all(partitions.map(async partition => seen(second, partition))), before)
    assert.equal((await new HttpApi(second.url).post('/admin/run-compaction', '')).status, 204)
    const after = await Promise.all(partitions.map(async partition => seen(second, partition)))
    for (const [partition, batches] of after.entries()) {
      const kept = before[partition]?.filter(([offset]) => offset >= 3)
      assert.deepEqual(batches, kept)
    }
  })
}

test('the type of times counts from the next batch on, back and forth', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('t')
  const setType = async (value: string): Promise<void> => {
    const answer = await api.call('PUT', '/topics/t/config', JSON.stringify({ message_timestamp_type: value }))
    assert.equal(answer.status, 200)
    assert.equal(answer.text.includes('message_timestamp_type'), value === 'LogAppendTime')
  }
  const append = async () =>
    Number((await produceBatch(client, 't', 0, clientBatch({ records: [{ value: 'v' }] }))).logAppendTimeMs)
  assert.equal(await append(), -1)
  await setType('LogAppendTime')
  assert.ok((await append()) > 0)
  await setType('CreateTime')
  assert.equal(await append(), -1)
  const refused = await api.call('PUT', '/topics/t/config', JSON.stringify({ message_timestamp_type: 'log' }))
  assert.equal(refused.status, 400)
})

test('what is larger than its topic takes is refused with the limit and its name, and nothing of the request is written', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  const batch = clientBatch({ records: [{ value: 'x'.repeat(1000) }] })
  assert.equal((await create(client, 't', { 'max.message.bytes': String(batch.length) })).errorCode, 0)
  assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
  const larger = clientBatch({ records: [{ value: 'x'.repeat(1001) }] })
  const produced = await produceBatch(client, 't', 0, larger, 8)
  assert.equal(produced.errorCode, kafkaErrors.MESSAGE_TOO_LARGE.code)
  const text = `${larger.length} bytes: over the limit of ${batch.length} (max.message.bytes of topic 't')`
  assert.ok(produced.errorMessage?.includes(text), produced.errorMessage ?? '')
  const value = 'x'.repeat(batch.length + 1)
  const answer = await api.post('/topics/t/produce', { records: [{ value: 'small' }, { value }] })
  const { code, written, error } = JSON.parse(answer.text) as ErrorBody
  assert.deepEqual([answer.status, code, written], [400, 'RECORD_TOO_LARGE', 'no'])
  assert.match(
    error,
    /record 1 has \d+ bytes of key and value: over the limit of \d+ \(max_message_bytes of topic 't'\)/
  )
  const binary = await openClient(t, broker.es01)
  await assert.rejects(binary.produce('t', [{ partition: 0, value: Buffer.from(value) }]), {
    message: /max_message_bytes of topic 't'/
  })
  assert.equal((await api.describe('t')).partitions[0]?.end_offset, 1)
  await api.produce('t', [{ value: value.slice(1) }])
})

test('no topic takes more than its broker, and back at what the broker takes a topic follows it', async t => {
  const broker = await startBroker(t, { flags: { '--max-record-bytes': 1000 } })
  const api = new HttpApi(broker.url)
  await api.createTopic('t', 1, { max_message_bytes: 10 })
  const change = (value: number) => api.call('PUT', '/topics/t/config', JSON.stringify({ max_message_bytes: value }))
  const limit = 1000 + 1024 * 1024
  const over = await change(limit + 1)
  assert.equal(over.status, 400)
  assert.match(over.text, new RegExp(`max_message_bytes is ${limit + 1}: allowed is 1 to ${limit}`))
  assert.equal((await change(0)).status, 400)
  assert.equal((await change(limit)).status, 200)
  assert.equal((await change(-1)).status, 200)
  assert.doesNotMatch((await api.get('/topics/t/config')).text, /max_message_bytes/)
})

test('a segment ends at the age that its topic says, so that retention has it though nobody writes', async t => {
  const broker = await startBroker(t, { flags: { '--retention-check-interval': '10ms' } })
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  assert.equal((await create(client, 'short', { 'segment.ms': '1', 'retention.ms': '1' })).errorCode, 0)
  await api.createTopic('long', 1, { retention_ms: 1 })
  assert.equal((await api.describe('short')).config['segment_ms'], 1)
  for (const topic of ['long', 'short']) await api.produce(topic, [{ value: 'v' }])
  await waitFor(
    'the record to have had its time',
    async () => (await api.describe('short')).partitions[0]?.start_offset === 1
  )
  assert.equal((await api.describe('long')).partitions[0]?.start_offset, 0)
})

/** What tools write into the topics that they make, by what they say of it. */
const ofTools: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Kafka Connect': { 'cleanup.policy': 'compact', 'min.insync.replicas': '1' },
  'a changelog of Kafka Streams': { 'cleanup.policy': 'compact', 'message.timestamp.type': 'CreateTime' },
  'a windowed changelog': {
    'cleanup.policy': 'compact,delete',
    'retention.ms': '172800000',
    'message.timestamp.type': 'CreateTime'
  },
  'a repartition topic': {
    'cleanup.policy': 'delete',
    'segment.bytes': '52428800',
    'retention.ms': '-1',
    'message.timestamp.type': 'CreateTime'
  },
  'Schema Registry': { 'cleanup.policy': 'compact' },
  'kafka-ui': {
    'cleanup.policy': 'delete',
    'retention.ms': '604800000',
    'retention.bytes': '-1',
    'max.message.bytes': '1048588',
    'min.insync.replicas': '1'
  },
  'what is so anyway': {
    preallocate: 'false',
    'unclean.leader.election.enable': 'false',
    'compression.type': 'producer',
    'flush.messages': '1',
    'min.cleanable.dirty.ratio': '0.50'
  }
}

test('a topic is made as its maker wants it', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  for (const [tool, settings] of Object.entries(ofTools)) {
    await t.test(tool, async () => {
      const told = await create(client, tool.replaceAll(' ', '-'), settings)
      assert.deepEqual([told.errorCode, told.errorMessage], [0, null])
      const shown = Object.fromEntries((told.configs ?? []).map(({ name, value }) => [name, value]))
      for (const [name, value] of Object.entries(settings))
        assert.ok(shown[name] === value || Number(shown[name]) === Number(value), `${name} is ${shown[name]}`)
    })
  }
})

test('every setting that is shown can be set to what is shown, and those that are fixed to nothing else, with a reason', async t => {
  const broker = await startBroker(t)
  const client = await connectKafka(t, broker.kafka)
  await create(client, 't', {})
  const resources = [{ resourceType: TOPIC, resourceName: 't', configurationKeys: null }]
  const [told] = (await client.call(apis.describeConfigs, 4, { resources, includeDocumentation: true })).results
  assert.ok(told !== undefined && told.configs.length > 30)
  const change = async (name: string, value: string | null) => {
    const changes = { resourceType: TOPIC, resourceName: 't', configs: [{ name, configOperation: 0, value }] }
    return (await client.call(apis.incrementalAlterConfigs, 1, { resources: [changes], validateOnly: true }))
      .responses[0]
  }
  for (const { name, value, readOnly, documentation } of told.configs) {
    assert.ok((documentation ?? '').length > 10, name)
    assert.equal((await change(name, value))?.errorCode, 0, name)
    if (!readOnly) continue
    const refused = await change(name, '17')
    assert.equal(refused?.errorCode, kafkaErrors.INVALID_CONFIG.code, name)
    assert.ok(refused?.errorMessage?.includes(documentation ?? '?'), refused?.errorMessage ?? '')
  }
})
