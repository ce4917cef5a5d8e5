/** The calls of the Kafka protocol that most tests make, on one topic. */
import assert from 'node:assert/strict'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import type { ReadOf } from '../../src/wire/kafka/schema.ts'
import type { KafkaClient } from './kafka-client.ts'

type Fetched = ReadOf<typeof apis.fetch.response.fields>
type FetchedPartition = Fetched['responses'][number]['partitions'][number]
type Produced = ReadOf<typeof apis.produce.response.fields>['responses'][number]['partitionResponses'][number]

/** What a fetch asks for; what is left out is what most clients ask. */
export interface FetchAsked {
  readonly maxWaitMs?: number
  readonly minBytes?: number
  readonly maxBytes?: number
  readonly partitionMaxBytes?: number
  readonly sessionId?: number
  readonly sessionEpoch?: number
  readonly isolationLevel?: number
  readonly currentLeaderEpoch?: number
  readonly topicId?: string
}

/** The body of a fetch of some partitions of a topic, each from an offset. */
export function fetchBody(topic: string, offsets: Readonly<Record<number, number>>, asked: FetchAsked = {}) {
  const { maxWaitMs = 0, minBytes = 1, maxBytes = 50 * 1024 * 1024, partitionMaxBytes = 1024 * 1024 } = asked
  const { sessionId = 0, sessionEpoch = -1, isolationLevel = 0, currentLeaderEpoch = -1, topicId } = asked
  const partitions = Object.entries(offsets).map(([partition, fetchOffset]) => ({
    partition: Number(partition),
    currentLeaderEpoch,
    fetchOffset,
    partitionMaxBytes
  }))
  const place = topicId === undefined ? { topic } : { topicId }
  const topics = [{ ...place, partitions }]
  return {
    maxWaitMs,
    minBytes,
    maxBytes,
    sessionId,
    sessionEpoch,
    isolationLevel,
    topics
  }
}

/** Fetches; @returns the partitions in the order of the response. */
export async function fetchPartitions(
  client: KafkaClient,
  topic: string,
  offsets: Readonly<Record<number, number>>,
  asked: FetchAsked & { readonly version?: number } = {}
): Promise<readonly FetchedPartition[]> {
  const answer = await client.call(apis.fetch, asked.version ?? 11, fetchBody(topic, offsets, asked))
  assert.equal(answer.errorCode, 0)
  return answer.responses.flatMap(({ partitions }) => partitions)
}

/** A producer id that nobody else has. */
export async function newProducer(client: KafkaClient): Promise<bigint> {
  const asked = { transactionalId: null, transactionTimeoutMs: 0 }
  const { errorCode, producerId, producerEpoch } = await client.call(apis.initProducerId, 4, asked)
  assert.deepEqual([errorCode, producerEpoch], [0, 0])
  return producerId
}

/** The body of a produce of one batch. */
export function produceBody(topic: string, index: number, records: Buffer | null, acks = -1) {
  return { acks, timeoutMs: 1000, topicData: [{ name: topic, partitionData: [{ index, records }] }] }
}

/** Writes one batch. */
export async function produceBatch(
  client: KafkaClient,
  topic: string,
  index: number,
  records: Buffer | null,
  version = 7
): Promise<Produced> {
  const answer = await client.call(apis.produce, version, produceBody(topic, index, records))
  const told = answer.responses[0]?.partitionResponses[0]
  assert.ok(told !== undefined)
  return told
}
