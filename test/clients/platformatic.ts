/**
 * @platformatic/kafka: recent versions of every API, all of them flexible. It is no dependency of the project: a run installs
 * it into a folder of its own. Its types are not looked at here.
 */
import assert from 'node:assert/strict'
import type { EventEmitter } from 'node:events'
import { pathToFileURL } from 'node:url'
import { waitFor } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'
import { newTopic, threeRecords, topicOf, type Check, type ClientStage, type KafkaClientUnderTest } from './client.ts'
import { groupChecks, staticMemberCheck, type Joining, type StaticMember } from './groups.ts'
import { installPackages } from './npm.ts'

const PACKAGE = '@platformatic/kafka'
const VERSION = '2.12.1'
const TOPIC_RESOURCE = 2
const SET_CONFIG = 0

interface Options {
  readonly clientId: string
  readonly bootstrapBrokers: readonly string[]
  readonly [name: string]: unknown
}

interface Closing {
  close(): Promise<void>
}

interface TopicInCluster {
  readonly partitionsCount: number
}

interface PlatformaticAdmin extends Closing {
  createTopics(options: object): Promise<readonly { readonly name: string }[]>
  createPartitions(options: object): Promise<void>
  deleteTopics(options: object): Promise<void>
  deleteRecords(options: object): Promise<unknown>
  listTopics(): Promise<readonly string[]>
  metadata(options: object): Promise<{ readonly topics: ReadonlyMap<string, TopicInCluster> }>
  describeConfigs(options: object): Promise<readonly { readonly configs: readonly { readonly value: string }[] }[]>
  describeGroups(options: object): Promise<ReadonlyMap<string, { readonly state: string }>>
  incrementalAlterConfigs(options: object): Promise<void>
}

interface PlatformaticProducer extends Closing {
  send(options: object): Promise<{ readonly offsets: readonly { readonly offset: bigint }[] }>
}

interface Message {
  readonly partition: number
  readonly offset: bigint
  readonly value: string
}

interface PlatformaticConsumer extends EventEmitter {
  /** @param isForced its streams are closed before. */
  close(isForced: boolean): Promise<void>
  consume(options: object): Promise<EventEmitter & Closing>
  commit(options: object): Promise<void>
  leaveGroup(isForced: boolean): Promise<void>
  listOffsets(options: object): Promise<ReadonlyMap<string, readonly bigint[]>>
}

interface Library {
  readonly Admin: new (options: Options) => PlatformaticAdmin
  readonly Producer: new (options: Options) => PlatformaticProducer
  readonly Consumer: new (options: Options) => PlatformaticConsumer
  readonly stringSerializers: object
  readonly stringDeserializers: object
}

/** It is not there before it was prepared. */
export function platformaticClient(): KafkaClientUnderTest {
  let entry = ''
  const library = async (): Promise<Library> => (await import(entry)) as Library
  const withAdmin = async (options: Options, use: (admin: PlatformaticAdmin) => Promise<void>): Promise<void> => {
    const { Admin } = await library()
    const admin = new Admin(options)
    await closing(
      () => admin.close(),
      () => use(admin)
    )
  }
  const checkAdmin =
    (check: (admin: PlatformaticAdmin, stage: ClientStage) => Promise<void>): Check =>
    stage =>
      withAdmin(optionsOf(stage.open.kafka), admin => check(admin, stage))

  const written = (
    options: Readonly<Record<string, unknown>> = {},
    value = 'a text to be compressed '.repeat(50)
  ): Check => {
    return async stage => {
      const topic = await topicOf(stage)
      const { Producer, stringSerializers } = await library()
      const producer = new Producer({ ...optionsOf(stage.open.kafka), serializers: stringSerializers })
      await closing(
        () => producer.close(),
        async () => {
          const { offsets } = await producer.send({ messages: [{ topic, key: 'key', value }], acks: -1, ...options })
          assert.equal(offsets[0]?.offset, 0n)
        }
      )
      assert.equal((await new HttpApi(stage.open.url).consumeAll(topic, 0))[0]?.value, value)
      assert.deepEqual(await readFrom(await library(), stage, topic, 0n, 1), [value])
    }
  }

  const login = (mechanism: string): Check => {
    return async ({ guarded, keyId: username, secret: password }) => {
      const options = { ...optionsOf(guarded.kafka), sasl: { mechanism, username, password } }
      await withAdmin(options, async admin => assert.deepEqual(await admin.listTopics(), []))
      const wrong = { ...optionsOf(guarded.kafka), sasl: { mechanism, username, password: `${password}x` } }
      await assert.rejects(withAdmin(wrong, async admin => void (await admin.listTopics())))
    }
  }

  const readFromTheMiddle: Check = async stage => {
    const topic = await threeRecords(stage)
    assert.deepEqual(await readFrom(await library(), stage, topic, 1n, 2), ['two', 'three'])
  }

  const findByTime: Check = async stage => {
    const topic = await threeRecords(stage)
    const [first] = await new HttpApi(stage.open.url).consumeAll(topic, 0)
    const { Consumer } = await library()
    const consumer = new Consumer({ ...optionsOf(stage.open.kafka), groupId: topic })
    await closing(
      () => consumer.close(true),
      async () => {
        const timestamp = BigInt(first?.timestamp_ms ?? 0)
        assert.deepEqual((await consumer.listOffsets({ topics: [topic], timestamp })).get(topic), [0n])
        const later = { topics: [topic], timestamp: timestamp + 3_600_000n }
        assert.deepEqual((await consumer.listOffsets(later)).get(topic), [-1n])
      }
    )
  }

  return {
    name: PACKAGE,
    async prepare(folder) {
      const require = await installPackages(folder, [`${PACKAGE}@${VERSION}`])
      entry = pathToFileURL(require.resolve(PACKAGE)).href
      return VERSION
    },
    checks: {
      connect: checkAdmin(async admin => void (await admin.listTopics())),
      'create topic': checkAdmin(createTopic),
      'create partitions': checkAdmin(createPartitions),
      'produce and fetch': written(),
      gzip: written({ compression: 'gzip' }),
      snappy: written({ compression: 'snappy' }),
      lz4: written({ compression: 'lz4' }),
      zstd: written({ compression: 'zstd' }),
      idempotent: written({ idempotent: true }),
      'record of 1 MB': written({}, 'x'.repeat(1_000_000)),
      'from a middle offset': readFromTheMiddle,
      'by time': findByTime,
      ...groupChecks(async joining => join(await library(), joining)),
      'static member': staticMemberCheck(async (joining, groupInstanceId) =>
        join(await library(), joining, { groupInstanceId })
      ),
      'delete records': checkAdmin(deleteRecords),
      describe: checkAdmin(describeAll),
      'change configuration': checkAdmin(changeConfiguration),
      'SASL PLAIN': login('PLAIN'),
      'SASL SCRAM-SHA-256': login('SCRAM-SHA-256'),
      'SASL SCRAM-SHA-512': login('SCRAM-SHA-512')
    }
  }
}

/** What succeeds only when it is tried again has not succeeded. */
function optionsOf(address: string): Options {
  return { clientId: 'millrace-test', bootstrapBrokers: [address], retries: 0 }
}

async function closing(close: () => Promise<void>, use: () => Promise<void>): Promise<void> {
  try {
    await use()
  } finally {
    await close()
  }
}

async function partitionsOf(admin: PlatformaticAdmin, topic: string): Promise<number | undefined> {
  return (await admin.metadata({ topics: [topic] })).topics.get(topic)?.partitionsCount
}

async function createTopic(admin: PlatformaticAdmin): Promise<void> {
  const topic = newTopic()
  await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1 })
  assert.equal(await partitionsOf(admin, topic), 3)
  await admin.deleteTopics({ topics: [topic] })
  assert.ok(!(await admin.listTopics()).includes(topic))
}

async function createPartitions(admin: PlatformaticAdmin, stage: ClientStage): Promise<void> {
  const name = await topicOf(stage)
  await admin.createPartitions({ topics: [{ name, count: 3 }] })
  assert.equal(await partitionsOf(admin, name), 3)
}

async function deleteRecords(admin: PlatformaticAdmin, stage: ClientStage): Promise<void> {
  const name = await threeRecords(stage)
  await admin.deleteRecords({ topics: [{ name, partitions: [{ partition: 0, offset: 2n }] }] })
  const [partition] = (await new HttpApi(stage.open.url).describe(name)).partitions
  assert.deepEqual([partition?.start_offset, partition?.end_offset], [2, 3])
}

async function describeAll(admin: PlatformaticAdmin, stage: ClientStage): Promise<void> {
  const topic = await topicOf(stage, 2)
  assert.equal(await partitionsOf(admin, topic), 2)
  const asked = { resourceType: TOPIC_RESOURCE, resourceName: topic, configurationKeys: ['cleanup.policy'] }
  const [told] = await admin.describeConfigs({ resources: [asked] })
  assert.deepEqual(
    told?.configs.map(({ value }) => value),
    ['delete']
  )
  const group = newTopic()
  await new HttpApi(stage.open.url).post(`/groups/${group}/commit`, { topic, partition: 0, offset: 0 })
  assert.match((await admin.describeGroups({ groups: [group] })).get(group)?.state ?? '', /^empty$/i)
}

async function changeConfiguration(admin: PlatformaticAdmin, stage: ClientStage): Promise<void> {
  const topic = await topicOf(stage)
  const configs = [{ name: 'retention.ms', configOperation: SET_CONFIG, value: '5000' }]
  await admin.incrementalAlterConfigs({ resources: [{ resourceType: TOPIC_RESOURCE, resourceName: topic, configs }] })
  assert.equal((await new HttpApi(stage.open.url).describe(topic)).config['retention_ms'], 5_000)
}

/** The values from an offset on, at least so many. */
async function readFrom(library: Library, stage: ClientStage, topic: string, offset: bigint, count: number) {
  const { Consumer, stringDeserializers: deserializers } = library
  const consumer = new Consumer({ ...optionsOf(stage.open.kafka), groupId: newTopic(), deserializers })
  const values: string[] = []
  await closing(
    () => consumer.close(true),
    async () => {
      const offsets = [{ topic, partition: 0, offset }]
      const stream = await consumer.consume({ topics: [topic], mode: 'manual', offsets, maxWaitTime: 200 })
      stream.on('data', ({ value }: Message) => values.push(value))
      await waitFor(`${count} records`, () => values.length >= count)
    }
  )
  return values
}

/** It leaves when it is closed, static or not: so a static one stays until it is replaced. */
async function join(library: Library, { address, group, topic }: Joining, options: object = {}): Promise<StaticMember> {
  const { Consumer, stringDeserializers: deserializers } = library
  const quick = { heartbeatInterval: 100, sessionTimeout: 10_000, maxWaitTime: 200 }
  const consumer = new Consumer({ ...optionsOf(address), groupId: group, deserializers, ...quick, ...options })
  const messages: string[] = []
  const nextOffsets = new Map<number, bigint>()
  let partitions: readonly number[] | null = null
  let isVanished = false
  const fail = (error: Error): void => {
    // Of one whose place was taken that is the right answer.
    if (!isVanished) throw error
  }
  consumer.on('error', fail)
  consumer.on(
    'consumer:group:join',
    ({ assignments }: { readonly assignments: readonly { partitions: number[] }[] }) => {
      partitions = assignments.flatMap(({ partitions: given }) => given)
    }
  )
  consumer.on('consumer:group:rebalance', () => {
    partitions = null
  })
  const reading = { mode: 'committed', fallbackMode: 'earliest', autocommit: false }
  const stream = await consumer.consume({ topics: [topic], ...reading })
  stream.on('data', ({ partition, offset, value }: Message) => {
    messages.push(`${partition}:${offset}:${value}`)
    nextOffsets.set(partition, offset + 1n)
  })
  stream.on('error', fail)
  let stopping: Promise<void> | null = null
  // Closing alone forgets the stream and the heartbeats of one that is no member any more: they would go on.
  const leave = async (): Promise<void> => {
    await stream.close()
    await consumer.leaveGroup(true)
    await consumer.close(true)
  }
  return {
    messages,
    partitions: () => partitions,
    commit: () => {
      const offsets = [...nextOffsets].map(([partition, offset]) => ({ topic, partition, offset, leaderEpoch: 0 }))
      return consumer.commit({ offsets })
    },
    stop: () => (stopping ??= leave()),
    vanish: () => {
      isVanished = true
      return Promise.resolve()
    }
  }
}
