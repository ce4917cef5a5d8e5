/** KafkaJS: old versions of every API, none of them flexible. Its consumer needs groups; fetching is looked at by offsets. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { CompressionTypes, Kafka, logLevel, type Admin, type Message, type Producer, type SASLOptions } from 'kafkajs'
import { HttpApi } from '../support/http-api.ts'
import { newTopic, type Check, type ClientStage, type KafkaClientUnderTest } from './client.ts'

const TOPIC_RESOURCE = 2

function kafkaOf(address: string, sasl?: SASLOptions): Kafka {
  return new Kafka({
    clientId: 'millrace-test',
    brokers: [address],
    logLevel: logLevel.NOTHING,
    retry: { retries: 2 },
    ...(sasl !== undefined && { sasl })
  })
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

async function withProducer(kafka: Kafka, isIdempotent: boolean, use: (producer: Producer) => Promise<void>) {
  const producer = kafka.producer({ idempotent: isIdempotent })
  await producer.connect()
  try {
    await use(producer)
  } finally {
    await producer.disconnect()
  }
}

async function topicOf({ open }: ClientStage): Promise<string> {
  const topic = newTopic()
  await new HttpApi(open.url).createTopic(topic)
  return topic
}

interface Round {
  readonly compression?: CompressionTypes
  readonly isIdempotent?: boolean
  readonly message?: Message
}

/** Writes, and has the broker read it. */
function written({ compression = CompressionTypes.None, isIdempotent = false, message }: Round = {}): Check {
  return async stage => {
    const topic = await topicOf(stage)
    const sent = message ?? { key: 'key', value: 'a text that is worth compressing '.repeat(50), headers: { h: 'x' } }
    await withProducer(kafkaOf(stage.open.kafka), isIdempotent, async producer => {
      const [told] = await producer.send({ topic, compression, messages: [sent] })
      assert.equal(told?.baseOffset, '0')
    })
    const [record] = await new HttpApi(stage.open.url).consumeAll(topic, 0)
    assert.equal(record?.value, sent.value)
  }
}

async function threeRecords(stage: ClientStage): Promise<string> {
  const topic = await topicOf(stage)
  await new HttpApi(stage.open.url).produce(topic, [{ value: 'one' }, { value: 'two' }, { value: 'three' }])
  return topic
}

function login(mechanism: SASLOptions['mechanism']): Check {
  return async ({ guarded, keyId: username, secret: password }) => {
    const kafka = kafkaOf(guarded.kafka, { mechanism, username, password } as SASLOptions)
    await withAdmin(kafka, async admin => assert.deepEqual(await admin.listTopics(), []))
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

const findByTime: Check = async stage => {
  const topic = await threeRecords(stage)
  await withAdmin(kafkaOf(stage.open.kafka), async admin => {
    assert.deepEqual(await admin.fetchTopicOffsetsByTimestamp(topic, 1), [{ partition: 0, offset: '0' }])
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

export const kafkaJsClient: KafkaClientUnderTest = {
  name: 'KafkaJS',
  async prepare() {
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
    'produce and fetch': written(),
    gzip: written({ compression: CompressionTypes.GZIP }),
    idempotent: written({ isIdempotent: true }),
    'record of 1 MB': written({ message: { value: 'x'.repeat(1_000_000) } }),
    'by time': findByTime,
    'delete records': deleteRecords,
    describe: async stage => {
      const topic = await topicOf(stage)
      await withAdmin(kafkaOf(stage.open.kafka), async admin => {
        const change = { type: TOPIC_RESOURCE, name: topic, configEntries: [{ name: 'retention.ms', value: '5000' }] }
        await admin.alterConfigs({ validateOnly: false, resources: [change] })
        const asked = { includeSynonyms: false, resources: [{ type: TOPIC_RESOURCE, name: topic }] }
        const { resources } = await admin.describeConfigs(asked)
        const entries = resources[0]?.configEntries ?? []
        assert.equal(entries.find(({ configName }) => configName === 'retention.ms')?.configValue, '5000')
      })
    },
    'SASL PLAIN': login('plain'),
    'SASL SCRAM-SHA-256': login('scram-sha-256'),
    'SASL SCRAM-SHA-512': login('scram-sha-512')
  }
}
