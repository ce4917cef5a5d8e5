/** The partitioner of topics: who gets which, where it is shown, when it changes, and that everybody who writes obeys it. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test, type TestContext } from 'node:test'
import { pack } from 'msgpackr/pack'
import { PipelinedClient } from '../../src/client/binary/index.ts'
import { fnv1a64Modulo, murmur2Modulo } from '../../src/base/hash.ts'
import { limits } from '../../src/model/limits.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { runMillrace, startBroker, type TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { clientBatch } from '../support/client-batches.ts'
import { openClient } from '../support/es01-session.ts'
import { assertRefused, HttpApi, parse, type Result } from '../support/http-api.ts'
import { produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { KafkaJava, kafkaJavaSkip } from '../support/kafka-java.ts'
import { newRandom } from '../unit/ring/random.ts'

const PARTITIONS = 12

/** What Kafka's own producer did (test/fixtures/kafka-partitions). */
const golden = readFileSync(new URL('../fixtures/kafka-partitions/keys.txt', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n')
  .map(line => {
    const [hex = '', partition] = line.split(' ')
    return { key: Buffer.from(hex, 'hex'), partition: Number(partition) }
  })

async function createOverKafka(client: KafkaClient, name: string, configs: object[] = []): Promise<number> {
  const topic = { name, numPartitions: PARTITIONS, replicationFactor: 1, assignments: [], configs: configs as never }
  const answer = await client.call(apis.createTopics, 7, { topics: [topic], timeoutMs: 1000, validateOnly: false })
  return answer.topics[0]?.errorCode ?? NaN
}

async function shownOverKafka(client: KafkaClient, name: string): Promise<string | null | undefined> {
  const resources = [{ resourceType: 2, resourceName: name, configurationKeys: ['millrace.partitioner'] }]
  return (await client.call(apis.describeConfigs, 4, { resources })).results[0]?.configs[0]?.value
}

/** Sets it, or with null takes it back to what a topic has that says nothing. */
async function changeOverKafka(client: KafkaClient, name: string, value: string | null) {
  const configs = [{ name: 'millrace.partitioner', configOperation: value === null ? 1 : 0, value }]
  const resources = [{ resourceType: 2, resourceName: name, configs }]
  const answer = await client.call(apis.incrementalAlterConfigs, 1, { resources, validateOnly: false })
  return answer.responses[0]
}

/** A plain topic has the fields of the seed in its configuration, no more: no partitioner is fnv1a. */
async function shownOverHttp(api: HttpApi, name: string): Promise<unknown> {
  const { partitioner } = (await api.describe(name)).config
  assert.notEqual(partitioner, 'fnv1a')
  return partitioner ?? 'fnv1a'
}

/** By base64, so that keys may be any bytes. @param padding of each value. */
async function produceOverHttp(api: HttpApi, topic: string, keys: readonly Buffer[], padding = 0): Promise<number[]> {
  const records = keys.map(key => ({ key: key.toString('base64'), value: 'A'.repeat(4 * padding) }))
  return partitionsOf(parse(await api.post(`/topics/${topic}/produce`, { encoding: 'base64', records })))
}

function partitionsOf({ results }: { readonly results: readonly Pick<Result, 'partition'>[] }): number[] {
  return results.map(({ partition }) => partition)
}

test("Kafka's partition of a key is found as its Java producer finds it", () => {
  assert.ok(golden.length > 300)
  for (const { key, partition } of golden)
    assert.equal(murmur2Modulo(key, 0, key.length, PARTITIONS), partition, key.toString('hex'))
})

test('a topic has the hash of the protocol that made it, unless its creator names one, and everybody shows which', async t => {
  const broker = await startBroker(t, { flags: { '--auto-create-topics': 'true' } })
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('http')
  await api.createTopic('http-named', 1, { partitioner: 'murmur2' })
  assert.equal(await createOverKafka(client, 'kafka'), 0)
  assert.equal(await createOverKafka(client, 'kafka-named', [{ name: 'millrace.partitioner', value: 'fnv1a' }]), 0)
  await client.call(apis.metadata, 12, { topics: [{ name: 'asked-for' }], allowAutoTopicCreation: true })
  const env = { MILLRACE_BROKER: broker.url }
  const run = (command: string) => runMillrace(command.split(' '), { env })
  assert.equal((await run('topic create cli-named --partitioner murmur2')).code, 0)
  const expected = {
    http: 'fnv1a',
    'http-named': 'murmur2',
    kafka: 'murmur2',
    'kafka-named': 'fnv1a',
    'asked-for': 'murmur2',
    'cli-named': 'murmur2'
  }
  for (const [name, partitioner] of Object.entries(expected)) {
    assert.equal(await shownOverHttp(api, name), partitioner, name)
    assert.equal(await shownOverKafka(client, name), partitioner, name)
    const { stdout } = await run(`topic describe ${name}`)
    assert.equal(/^config .* partitioner=(\w+)(?: |$)/m.exec(stdout)?.[1], partitioner, name)
  }
  await broker.stop()
  const again = await startBroker(t, { dataDir: broker.dataDir })
  for (const [name, partitioner] of Object.entries(expected))
    assert.equal(await shownOverHttp(new HttpApi(again.url), name), partitioner, name)
})

test('a hash that is not known is refused over every protocol, with what is', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  for (const partitioner of ['murmur3', '', 7, true]) {
    const refused = await api.post('/topics', { name: 't', config: { partitioner } })
    assertRefused(refused, 400, 'FIELD_INVALID', ['config.partitioner', 'fnv1a', 'murmur2'])
  }
  const configs = [{ name: 'millrace.partitioner', value: 'crc32' }]
  assert.equal(await createOverKafka(client, 't', configs), kafkaErrors.INVALID_CONFIG.code)
  await api.createTopic('t')
  assertRefused(await api.call('PUT', '/topics/t/config', '{"partitioner":"x"}'), 400, 'FIELD_INVALID', ['partitioner'])
  assert.equal((await changeOverKafka(client, 't', 'x'))?.errorCode, kafkaErrors.INVALID_CONFIG.code)
})

test('the hash of a topic changes until its first record, and never again, also when that record is gone', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const client = await connectKafka(t, broker.kafka)
  await api.createTopic('t', PARTITIONS)
  const change = (partitioner: string) => api.call('PUT', '/topics/t/config', JSON.stringify({ partitioner }))
  assert.match((await change('murmur2')).text, /,"partitioner":"murmur2"\}$/)
  assert.equal((await changeOverKafka(client, 't', 'fnv1a'))?.errorCode, 0)
  assert.equal((await changeOverKafka(client, 't', null))?.errorCode, 0)
  assert.equal(await shownOverHttp(api, 't'), 'murmur2')
  await api.produce('t', [{ value: 'v', partition: 3 }])
  const reasons = ['partitioner', "'t' stays murmur2", 'partition 3 ends at offset 1', 'nothing was changed']
  assertRefused(await change('fnv1a'), 400, 'FIELD_INVALID', reasons)
  const told = await changeOverKafka(client, 't', 'fnv1a')
  assert.equal(told?.errorCode, kafkaErrors.INVALID_CONFIG.code)
  assert.match(told?.errorMessage ?? '', /stays murmur2/)
  await api.post('/topics/t/delete-records', { partition: 3, offset: 1 })
  assertRefused(await change('fnv1a'), 400, 'FIELD_INVALID', reasons)
  assert.equal((await change('murmur2')).status, 200)
  // Kafka's way to set all of a configuration leaves it as it is.
  const configs = [{ name: 'retention.ms', value: '60000' }]
  const resources = [{ resourceType: 2, resourceName: 't', configs }]
  await api.createTopic('plain')
  await api.produce('plain', [{ value: 'v' }])
  for (const resourceName of ['t', 'plain']) {
    const whole = [{ ...resources[0], resourceName }] as typeof resources
    const answer = await client.call(apis.alterConfigs, 2, { resources: whole, validateOnly: false })
    assert.equal(answer.responses[0]?.errorCode, 0)
  }
  assert.deepEqual([await shownOverHttp(api, 't'), await shownOverHttp(api, 'plain')], ['murmur2', 'fnv1a'])
})

test('a hash that changes under the eyes of producers leaves no key in two partitions', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  const seen = new Set<boolean>()
  for (let round = 0; round < 10; round++) {
    const topic = `t${round}`
    await api.createTopic(topic, PARTITIONS)
    const keys = Array.from({ length: 40 }, (_, i) => Buffer.from(`key-${i % 8}`))
    const change = () => api.call('PUT', `/topics/${topic}/config`, '{"partitioner":"murmur2"}')
    // In the first round it is there before the first record, in the second after the last one: both outcomes are seen.
    const early = round === 0 ? await change() : null
    const changing = round === 1 ? null : (early ?? change())
    const placed = await Promise.all(keys.map(key => produceOverHttp(api, topic, [key])))
    const isChanged = (await (changing ?? change())).status === 200
    seen.add(isChanged)
    const hash = isChanged ? murmur2Modulo : fnv1a64Modulo
    assert.equal(await shownOverHttp(api, topic), isChanged ? 'murmur2' : 'fnv1a')
    for (const [i, key] of keys.entries())
      assert.equal(placed[i]?.[0], hash(key, 0, key.length, PARTITIONS), `round ${round}, changed: ${isChanged}`)
  }
  assert.equal(seen.size, 2)
})

/** Everybody who writes by key and leaves the partition to the broker or to our own client. */
function writersOf(t: TestContext, broker: TestBroker): readonly (readonly [string, Writer])[] {
  const api = new HttpApi(broker.url)
  const post = async (topic: string, body: string | Buffer, type = 'application/json'): Promise<number[]> =>
    partitionsOf(parse(await api.call('POST', `/topics/${topic}/produce`, body, { 'content-type': type })))
  const bare = (keys: readonly Buffer[]) => keys.map(key => ({ key, value: '' }))
  const padding = Math.ceil(limits.offloadedBodyBytesMin / 3 / 100)
  return [
    ['HTTP, base64', (topic, keys) => produceOverHttp(api, topic, keys)],
    ['HTTP, a large body', (topic, keys) => produceOverHttp(api, topic, keys, padding)],
    [
      'HTTP, text',
      (topic, keys) => post(topic, JSON.stringify({ records: keys.map(key => ({ key: `${key}`, value: '' })) }))
    ],
    ['HTTP, escaped text', (topic, keys) => post(topic, `{"records":[${keys.map(escapedRecord).join(',')}]}`)],
    ['HTTP, MessagePack', (topic, keys) => post(topic, pack({ records: bare(keys) }), 'application/msgpack')],
    [
      'ES01',
      async (topic, keys) => {
        const client = await openClient(t, broker.es01)
        return partitionsOf({ results: await client.produce(topic, bare(keys)) })
      }
    ],
    [
      'the idempotent client',
      async (topic, keys) => {
        const client = new PipelinedClient({ ...broker.es01, lingerMs: 0 })
        atEnd(t, () => client.destroy())
        return partitionsOf({ results: await Promise.all(bare(keys).map(record => client.send(topic, record))) })
      }
    ]
  ]
}

type Writer = (topic: string, keys: readonly Buffer[]) => Promise<number[]>

function escapedRecord(key: Buffer): string {
  const text = key.toString()
  const units = Array.from({ length: text.length }, (_, i) => text.charCodeAt(i).toString(16).padStart(4, '0'))
  return `{"key":"${units.map(unit => `\\u${unit}`).join('')}","value":""}`
}

test('everybody who writes by key puts it where the topic says, and a record without one in turn', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('ours', PARTITIONS)
  await api.createTopic('kafkas', PARTITIONS, { partitioner: 'murmur2' })
  // Those that are texts can be sent by everybody.
  const cases = golden.filter(({ key }) => Buffer.from(key.toString()).equals(key))
  assert.ok(cases.length > 100)
  const keys = cases.map(({ key }) => key)
  const expected = {
    ours: keys.map(key => fnv1a64Modulo(key, 0, key.length, PARTITIONS)),
    kafkas: cases.map(({ partition }) => partition)
  }
  for (const [writer, write] of writersOf(t, broker)) {
    for (const [topic, partitions] of Object.entries(expected))
      assert.deepEqual(await write(topic, keys), partitions, `${writer} to ${topic}`)
  }
  const keyless = await api.produce(
    'kafkas',
    Array.from({ length: 3 }, () => ({ value: 'v' }))
  )
  assert.deepEqual(
    keyless.map(({ partition }) => partition),
    [0, 1, 2]
  )
  assert.deepEqual(
    await produceOverHttp(
      api,
      'kafkas',
      golden.map(({ key }) => key)
    ),
    golden.map(({ partition }) => partition)
  )
})

test('a batch of a Kafka client stays in the partition that its client chose, whatever the topic says', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('t', PARTITIONS)
  const client = await connectKafka(t, broker.kafka)
  const told = await produceBatch(client, 't', 5, clientBatch({ records: [{ key: 'user-1', value: 'v' }] }))
  assert.deepEqual([told.errorCode, (await api.ends('t'))[5]], [0, 1])
})

test(
  "Kafka's Java producer and HTTP pick the same partition for 1,000 random keys",
  { skip: kafkaJavaSkip },
  async t => {
    const java = await KafkaJava.open()
    t.after(() => java.close())
    const broker = await startBroker(t)
    const api = new HttpApi(broker.url)
    await api.createTopic('t', PARTITIONS, { partitioner: 'murmur2' })
    const random = newRandom('test/integration/partitioner.test.ts')
    const randomKeys = Array.from({ length: 1000 }, (_, i) => random.bytes(random.below(i % 100 === 0 ? 20_000 : 60)))
    const keys = [...golden.map(({ key }) => key), ...randomKeys]
    const theirs = await java.place(broker.kafka, 't', keys)
    assert.deepEqual(
      theirs.slice(0, golden.length),
      golden.map(({ partition }) => partition)
    )
    assert.deepEqual(await produceOverHttp(api, 't', keys), theirs, random.replay)
    // What it sent is where it said.
    const counts = Array.from({ length: PARTITIONS }, (_, p) => 2 * theirs.filter(partition => partition === p).length)
    assert.deepEqual(await api.ends('t'), counts)
  }
)
