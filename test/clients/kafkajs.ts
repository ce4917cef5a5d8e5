/** KafkaJS: old versions of every API, none of them flexible. All of its codecs but gzip are plug-ins. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import kafkajs, { CompressionTypes, type Admin, type Kafka, type Message, type SASLOptions } from 'kafkajs'
import { waitFor } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { kafkaJs, startReader, type GroupReader } from '../support/kafkajs.ts'
import { newTopic, threeRecords, topicOf, type Check, type KafkaClientUnderTest } from './client.ts'
import { groupChecks } from './groups.ts'
import { installPackages } from './npm.ts'

// Node.js does not find this name among those that the package exports.
const { CompressionCodecs } = kafkajs
const TOPIC_RESOURCE = 2
const SNAPPY = 'kafkajs-snappy'
const LZ4 = 'lz4js'

type Compress = (bytes: Uint8Array) => Uint8Array

/** What succeeds only when it is tried again has not succeeded. */
function kafkaOf(address: string, sasl?: SASLOptions): Kafka {
  return kafkaJs(address, { retry: { retries: 0 }, ...(sasl !== undefined && { sasl }) })
}

async function withAdmin(kafka: Kafka, use: (admin: Admin) => Promise<void>): Promise<void> {
  const admin = kafka.admin()
  await admin.connect()
  try {
    await use(admin)
  } finally {
    await admin.disconnect()
  }
}

async function withReader(kafka: Kafka, topic: string, use: (reader: GroupReader) => Promise<void>): Promise<void> {
  const reader = await startReader(kafka, `readers-of-${topic}`, topic)
  try {
    await use(reader)
  } finally {
    await reader.stop()
  }
}

interface Round {
  readonly compression?: CompressionTypes
  readonly isIdempotent?: boolean
  readonly message?: Message
}

/** Writes, reads, and has the broker read it. */
function written({ compression = CompressionTypes.None, isIdempotent = false, message }: Round = {}): Check {
  return async stage => {
    const topic = await topicOf(stage)
    const kafka = kafkaOf(stage.open.kafka)
    const sent = message ?? { key: 'key', value: 'a text that is worth compressing '.repeat(50), headers: { h: 'x' } }
    // An idempotent one insists on being allowed to try again.
    const producer = kafka.producer({ idempotent: isIdempotent, retry: { retries: isIdempotent ? 1 : 0 } })
    await producer.connect()
    try {
      const [told] = await producer.send({ topic, compression, messages: [sent] })
      assert.equal(told?.baseOffset, '0')
    } finally {
      await producer.disconnect()
    }
    await withReader(kafka, topic, async ({ messages }) => {
      await waitFor('the record', () => messages.length > 0)
      assert.deepEqual(messages, [`0:0:${String(sent.value)}`])
    })
    const [record] = await new HttpApi(stage.open.url).consumeAll(topic, 0)
    assert.equal(record?.value, sent.value)
  }
}

function login(mechanism: SASLOptions['mechanism']): Check {
  return async ({ guarded, keyId: username, secret: password }) => {
    const sasl = { mechanism, username, password } as SASLOptions
    await withAdmin(kafkaOf(guarded.kafka, sasl), async admin => assert.deepEqual(await admin.listTopics(), []))
    const wrong = { mechanism, username, password: `${password}x` } as SASLOptions
    const refused = kafkaOf(guarded.kafka, wrong)
    await assert.rejects(
      withAdmin(refused, () => Promise.resolve()),
      { name: 'KafkaJSSASLAuthenticationError' }
    )
  }
}

const createTopic: Check = ({ open }) =>
  withAdmin(kafkaOf(open.kafka), async admin => {
    const topic = newTopic()
    const configEntries = [{ name: 'retention.ms', value: '60000' }]
    assert.equal(await admin.createTopics({ topics: [{ topic, numPartitions: 3, configEntries }] }), true)
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    assert.equal(topics[0]?.partitions.length, 3)
    await admin.deleteTopics({ topics: [topic] })
    assert.ok(!(await admin.listTopics()).includes(topic))
  })

const createPartitions: Check = async stage => {
  const topic = await topicOf(stage)
  await withAdmin(kafkaOf(stage.open.kafka), async admin => {
    await admin.createPartitions({ topicPartitions: [{ topic, count: 3 }] })
    const { topics } = await admin.fetchTopicMetadata({ topics: [topic] })
    assert.equal(topics[0]?.partitions.length, 3)
  })
}

const readFromTheMiddle: Check = async stage => {
  const topic = await threeRecords(stage)
  const consumer = kafkaOf(stage.open.kafka).consumer({ groupId: topic })
  const values: string[] = []
  await consumer.connect()
  try {
    // Not from the beginning: what comes, comes because it was sought.
    await consumer.subscribe({ topic, fromBeginning: false })
    await consumer.run({
      eachMessage: ({ message }) => {
        values.push(String(message.value))
        return Promise.resolve()
      }
    })
    consumer.seek({ topic, partition: 0, offset: '1' })
    await waitFor('two records', () => values.length > 1)
    assert.deepEqual(values, ['two', 'three'])
  } finally {
    await consumer.disconnect()
  }
}

const findByTime: Check = async stage => {
  const topic = await threeRecords(stage)
  const [, second] = await new HttpApi(stage.open.url).consumeAll(topic, 0)
  await withAdmin(kafkaOf(stage.open.kafka), async admin => {
    const timestamp = second?.timestamp_ms ?? 0
    const [found] = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp)
    // The first may have been written within the same millisecond.
    assert.ok(found !== undefined && Number(found.offset) <= 1, found?.offset)
    assert.deepEqual(await admin.fetchTopicOffsetsByTimestamp(topic, 1), [{ partition: 0, offset: '0' }])
    const later = await admin.fetchTopicOffsetsByTimestamp(topic, timestamp + 3_600_000)
    assert.deepEqual(later, [{ partition: 0, offset: '3' }])
  })
}

const deleteRecords: Check = async stage => {
  const topic = await threeRecords(stage)
  await withAdmin(kafkaOf(stage.open.kafka), async admin => {
    // This client deletes only where it knows the leader.
    await admin.fetchTopicOffsets(topic)
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 0, offset: '2' }] })
    const [offsets] = await admin.fetchTopicOffsets(topic)
    assert.deepEqual([offsets?.low, offsets?.high], ['2', '3'])
  })
}

const describeAll: Check = async stage => {
  const topic = await threeRecords(stage)
  const group = newTopic()
  await new HttpApi(stage.open.url).post(`/groups/${group}/commit`, { topic, partition: 0, offset: 2 })
  await withAdmin(kafkaOf(stage.open.kafka), async admin => {
    const resources = [{ type: TOPIC_RESOURCE, name: topic, configNames: ['cleanup.policy'] }]
    const told = await admin.describeConfigs({ includeSynonyms: false, resources })
    const entries = told.resources[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue])
    assert.deepEqual(entries, [['cleanup.policy', 'delete']])
    assert.equal((await admin.describeGroups([group])).groups[0]?.state, 'Empty')
    const [offsets] = await admin.fetchOffsets({ groupId: group, topics: [topic] })
    assert.equal(offsets?.partitions[0]?.offset, '2')
  })
}

const changeConfiguration: Check = async stage => {
  const topic = await topicOf(stage)
  await withAdmin(kafkaOf(stage.open.kafka), async admin => {
    const change = { type: TOPIC_RESOURCE, name: topic, configEntries: [{ name: 'retention.ms', value: '5000' }] }
    await admin.alterConfigs({ validateOnly: false, resources: [change] })
  })
  assert.equal((await new HttpApi(stage.open.url).describe(topic)).config['retention_ms'], 5_000)
}

export const kafkaJsClient: KafkaClientUnderTest = {
  name: 'KafkaJS',
  async prepare(folder) {
    const require = await installPackages(folder, [`${SNAPPY}@1.1.0`, `${LZ4}@0.2.0`])
    CompressionCodecs[CompressionTypes.Snappy] = require(SNAPPY) as () => unknown
    const lz4 = require(LZ4) as { readonly compress: Compress; readonly decompress: Compress }
    CompressionCodecs[CompressionTypes.LZ4] = () => codecOf(lz4.compress, lz4.decompress)
    CompressionCodecs[CompressionTypes.ZSTD] = () => codecOf(zstdCompressSync, zstdDecompressSync)
    const { version } = createRequire(import.meta.url)('kafkajs/package.json') as { version: string }
    return version
  },
  checks: {
    connect: ({ open }) =>
      withAdmin(kafkaOf(open.kafka), async admin => {
        const { brokers, controller } = await admin.describeCluster()
        assert.deepEqual([brokers.length, controller], [1, brokers[0]?.nodeId])
      }),
    'create topic': createTopic,
    'create partitions': createPartitions,
    'produce and fetch': written(),
    gzip: written({ compression: CompressionTypes.GZIP }),
    snappy: written({ compression: CompressionTypes.Snappy }),
    lz4: written({ compression: CompressionTypes.LZ4 }),
    zstd: written({ compression: CompressionTypes.ZSTD }),
    idempotent: written({ isIdempotent: true }),
    'record of 1 MB': written({ message: { value: 'x'.repeat(1_000_000) } }),
    'from a middle offset': readFromTheMiddle,
    'by time': findByTime,
    ...groupChecks(({ address, group, topic }) => startReader(kafkaOf(address), group, topic)),
    'delete records': deleteRecords,
    describe: describeAll,
    'change configuration': changeConfiguration,
    'SASL PLAIN': login('plain'),
    'SASL SCRAM-SHA-256': login('scram-sha-256'),
    'SASL SCRAM-SHA-512': login('scram-sha-512')
  },
  lacks: { 'static member': 'members have no instance id' }
}

/** A plug-in of KafkaJS: it encodes what its encoder has gathered. */
function codecOf(compress: Compress, decompress: Compress) {
  return {
    compress: (encoder: { readonly buffer: Buffer }) => Promise.resolve(Buffer.from(compress(encoder.buffer))),
    decompress: (bytes: Buffer) => Promise.resolve(Buffer.from(decompress(bytes)))
  }
}
