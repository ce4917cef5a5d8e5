/**
 * @platformatic/kafka: recent versions of every API, all of them flexible. It is no dependency of the project: a run installs
 * it into a folder of its own. Its types are not looked at here.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { HttpApi } from '../support/http-api.ts'
import { newTopic, type Check, type ClientStage, type KafkaClientUnderTest } from './client.ts'

const PACKAGE = '@platformatic/kafka'
const run = promisify(execFile)

interface Options {
  readonly clientId: string
  readonly bootstrapBrokers: readonly string[]
  readonly [name: string]: unknown
}

interface TopicInCluster {
  readonly id: string
  readonly partitionsCount: number
}

interface Closing {
  close(): Promise<void>
}

interface PlatformaticAdmin extends Closing {
  createTopics(options: object): Promise<readonly { readonly name: string }[]>
  deleteTopics(options: object): Promise<void>
  listTopics(): Promise<readonly string[]>
  metadata(options: object): Promise<{ readonly topics: ReadonlyMap<string, TopicInCluster> }>
}

interface PlatformaticProducer extends Closing {
  send(options: object): Promise<{ readonly offsets: readonly { readonly offset: bigint }[] }>
}

interface PlatformaticConsumer extends Closing {
  fetch(options: object): Promise<{
    readonly responses: readonly {
      readonly partitions: readonly {
        readonly records?: readonly {
          readonly records: readonly { readonly offset?: bigint; readonly value: Buffer }[]
        }[]
      }[]
    }[]
  }>
  listOffsets(options: object): Promise<ReadonlyMap<string, readonly bigint[]>>
}

interface Library {
  readonly Admin: new (options: Options) => PlatformaticAdmin
  readonly Producer: new (options: Options) => PlatformaticProducer
  readonly Consumer: new (options: Options) => PlatformaticConsumer
  readonly stringSerializers: object
}

/** It is not there before it was prepared. */
export function platformaticClient(): KafkaClientUnderTest {
  let entry = ''
  const library = async (): Promise<Library> => (await import(entry)) as Library
  const optionsOf = (address: string): Options => ({
    clientId: 'millrace-test',
    bootstrapBrokers: [address],
    retries: 1
  })

  const written = (options: Readonly<Record<string, unknown>> = {}, producer: object = {}): Check => {
    return async ({ open }) => {
      const topic = await topicOf(open)
      const { Producer, stringSerializers } = await library()
      const value = 'a text that is worth compressing '.repeat(50)
      const client = new Producer({ ...optionsOf(open.kafka), serializers: stringSerializers, ...producer })
      await closing(client, async () => {
        const { offsets } = await client.send({ messages: [{ topic, key: 'key', value }], acks: -1, ...options })
        assert.equal(offsets[0]?.offset, 0n)
      })
      assert.equal((await new HttpApi(open.url).consumeAll(topic, 0))[0]?.value, value)
      assert.deepEqual(await fetched(await library(), optionsOf(open.kafka), topic, 0n), [value])
    }
  }

  const login = (mechanism: string): Check => {
    return async ({ guarded, keyId: username, secret: password }) => {
      const { Admin } = await library()
      const admin = new Admin({ ...optionsOf(guarded.kafka), sasl: { mechanism, username, password } })
      await closing(admin, async () => assert.deepEqual(await admin.listTopics(), []))
    }
  }

  const createTopic: Check = async ({ open }) => {
    const { Admin } = await library()
    const admin = new Admin(optionsOf(open.kafka))
    const topic = newTopic()
    await closing(admin, async () => {
      await admin.createTopics({ topics: [topic], partitions: 3, replicas: 1 })
      assert.equal((await admin.metadata({ topics: [topic] })).topics.get(topic)?.partitionsCount, 3)
      await admin.deleteTopics({ topics: [topic] })
      assert.ok(!(await admin.listTopics()).includes(topic))
    })
  }

  const readFromTheMiddle: Check = async ({ open }) => {
    const topic = await topicOf(open)
    const api = new HttpApi(open.url)
    for (const value of ['one', 'two', 'three']) await api.produce(topic, [{ value }])
    assert.deepEqual(await fetched(await library(), optionsOf(open.kafka), topic, 1n), ['two', 'three'])
  }

  return {
    name: PACKAGE,
    async prepare(folder) {
      await run('npm', ['install', '--no-audit', '--no-fund', '--prefix', folder, PACKAGE])
      entry = pathToFileURL(createRequire(join(folder, 'package.json')).resolve(PACKAGE)).href
      const text = await readFile(join(folder, 'node_modules', PACKAGE, 'package.json'), 'utf8')
      return (JSON.parse(text) as { version: string }).version
    },
    checks: {
      connect: async ({ open }) => {
        const { Admin } = await library()
        const admin = new Admin(optionsOf(open.kafka))
        await closing(admin, async () => void (await admin.listTopics()))
      },
      'create topic': createTopic,
      'produce and fetch': written(),
      gzip: written({ compression: 'gzip' }),
      snappy: written({ compression: 'snappy' }),
      lz4: written({ compression: 'lz4' }),
      zstd: written({ compression: 'zstd' }),
      idempotent: written({}, { idempotent: true }),
      'from a middle offset': readFromTheMiddle,
      'SASL PLAIN': login('PLAIN'),
      'SASL SCRAM-SHA-256': login('SCRAM-SHA-256'),
      'SASL SCRAM-SHA-512': login('SCRAM-SHA-512')
    }
  }
}

async function topicOf({ url }: ClientStage['open']): Promise<string> {
  const topic = newTopic()
  await new HttpApi(url).createTopic(topic)
  return topic
}

async function closing(client: Closing, use: () => Promise<void>): Promise<void> {
  try {
    await use()
  } finally {
    await client.close()
  }
}

/** The values from an offset on, by one fetch without a group. */
async function fetched({ Admin, Consumer }: Library, options: Options, topic: string, from: bigint): Promise<string[]> {
  const admin = new Admin(options)
  const consumer = new Consumer({ ...options, groupId: 'none' })
  const values: string[] = []
  await closing(admin, async () => {
    const topicId = (await admin.metadata({ topics: [topic] })).topics.get(topic)?.id
    const place = { currentLeaderEpoch: 0, lastFetchedEpoch: 0, partitionMaxBytes: 1_000_000 }
    const partitions = [{ partition: 0, fetchOffset: from, ...place }]
    await closing(consumer, async () => {
      const answer = await consumer.fetch({
        node: 1,
        minBytes: 1,
        maxWaitTime: 1000,
        topics: [{ topicId, partitions }]
      })
      for (const { partitions: told } of answer.responses)
        for (const { records = [] } of told)
          for (const batch of records) values.push(...batch.records.map(({ value }) => value.toString()))
    })
  })
  return values
}
