/** KafkaJS against a broker of a test: quiet, impatient, closed with the test. */
import type { TestContext } from 'node:test'
import { Kafka, logLevel, type Consumer, type KafkaConfig } from 'kafkajs'
import { atEnd } from './clean-up.ts'
import { waitFor } from './broker.ts'

export function kafkaJs(broker: string, config: Partial<KafkaConfig> = {}): Kafka {
  const retry = { initialRetryTime: 20, maxRetryTime: 200, retries: 20 }
  return new Kafka({ clientId: 'test', brokers: [broker], logLevel: logLevel.NOTHING, retry, ...config })
}

/** One consumer in a group, and what it got. */
export interface GroupReader {
  readonly consumer: Consumer
  /** `partition:offset:value` of each message, in the order in which they came. */
  readonly messages: string[]
  /** Partitions that it has, of the topic; null: none yet. */
  partitions(): readonly number[] | null
  stop(): Promise<void>
}

/** Starts a consumer that is stopped with the test. */
export async function readInGroup(t: TestContext, kafka: Kafka, groupId: string, topic: string): Promise<GroupReader> {
  const reader = await startReader(kafka, groupId, topic)
  atEnd(t, () => reader.stop())
  return reader
}

/** Starts a consumer of a topic from its beginning, which commits after each message. */
export async function startReader(kafka: Kafka, groupId: string, topic: string): Promise<GroupReader> {
  // It hears of a rebalance between two fetches only.
  const quick = { heartbeatInterval: 100, maxWaitTimeInMs: 200 }
  const consumer = kafka.consumer({ groupId, sessionTimeout: 6_000, rebalanceTimeout: 10_000, ...quick })
  const messages: string[] = []
  let partitions: readonly number[] | null = null
  let stopping: Promise<void> | null = null
  const stop = (): Promise<void> => (stopping ??= consumer.disconnect())
  consumer.on('consumer.group_join', ({ payload }) => {
    partitions = payload.memberAssignment[topic] ?? []
  })
  consumer.on('consumer.rebalancing', () => {
    partitions = null
  })
  await consumer.connect()
  await consumer.subscribe({ topic, fromBeginning: true })
  await consumer.run({
    autoCommitThreshold: 1,
    eachMessage: ({ partition, message }) => {
      messages.push(`${partition}:${message.offset}:${message.value?.toString()}`)
      return Promise.resolve()
    }
  })
  return { consumer, messages, partitions: () => partitions, stop }
}

/** Waits until readers have all partitions between them, each with at least one. */
export async function sharedBy(count: number, readers: readonly Pick<GroupReader, 'partitions'>[]): Promise<void> {
  await waitFor(`${count} partitions between ${readers.length} members`, () => {
    const shares = readers.map(reader => reader.partitions() ?? [])
    return shares.every(share => share.length > 0) && new Set(shares.flat()).size === count
  })
}
