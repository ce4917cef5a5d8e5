/** What every client of others is asked to do against a broker, and how it says that it can. */
import type { TestBroker } from '../support/broker.ts'
import { HttpApi } from '../support/http-api.ts'

/** In the order of the pass table. */
export const checkNames = [
  'connect',
  'create topic',
  'create partitions',
  'produce and fetch',
  'gzip',
  'snappy',
  'lz4',
  'zstd',
  'idempotent',
  'record of 1 MB',
  'from a middle offset',
  'by time',
  'group of two',
  'rebalance',
  'commit and resume',
  'static member',
  'delete records',
  'describe',
  'change configuration',
  'SASL PLAIN',
  'SASL SCRAM-SHA-256',
  'SASL SCRAM-SHA-512'
] as const
export type CheckName = (typeof checkNames)[number]

/** A broker that asks for no keys, and one that does, with one. */
export interface ClientStage {
  readonly open: TestBroker
  readonly guarded: TestBroker
  readonly keyId: string
  readonly secret: string
}

/** Rejects, or ends, as the client does. */
export type Check = (stage: ClientStage) => Promise<void>

export interface KafkaClientUnderTest {
  readonly name: string
  /** Looked at with `--all` only: it wants another language's tools. */
  readonly isExtra?: boolean
  /**
   * Makes it ready to run. @param folder its own, to install it into if it must be.
   * @returns its version; null: what it needs is not on this machine.
   */
  prepare(folder: string): Promise<string | null>
  /** What is missing the client cannot do. */
  readonly checks: Partial<Record<CheckName, Check>>
  /** Why it cannot, in a few words that stand under the table. */
  readonly lacks?: Partial<Record<CheckName, string>>
}

let topics = 0

/** A name that no other check has. */
export function newTopic(): string {
  return `topic-${++topics}`
}

/** A new topic, made over HTTP. */
export async function topicOf({ open }: ClientStage, partitions = 1): Promise<string> {
  const topic = newTopic()
  await new HttpApi(open.url).createTopic(topic, partitions)
  return topic
}

/** A new topic with the records `one`, `two` and `three`, each in a batch of its own. */
export async function threeRecords(stage: ClientStage): Promise<string> {
  const topic = await topicOf(stage)
  for (const value of ['one', 'two', 'three']) await new HttpApi(stage.open.url).produce(topic, [{ value }])
  return topic
}
