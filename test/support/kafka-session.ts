/** A client's side of a fetch session (KIP-227): what it knows of its partitions, and the next request. For tests. */
import assert from 'node:assert/strict'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import type { ReadOf } from '../../src/wire/kafka/schema.ts'
import type { KafkaClient } from './kafka-client.ts'

type Answer = ReadOf<typeof apis.fetch.response.fields>
type ToldPartition = Answer['responses'][number]['partitions'][number]

/** What one request says; what is left out is what most clients say. */
export interface SessionAsked {
  /** Offsets by partition. */
  readonly offsets?: Readonly<Record<number, number>>
  readonly forgotten?: readonly number[]
  readonly maxWaitMs?: number
  readonly minBytes?: number
  readonly maxBytes?: number
  readonly partitionMaxBytes?: number
  /** Instead of those of the session. */
  readonly sessionId?: number
  readonly epoch?: number
  readonly version?: number
}

export class ClientSession {
  client: KafkaClient
  readonly topic: string
  /** Named by it since version 13. */
  readonly topicId: string
  version: number
  id = 0
  epoch = 0

  constructor(client: KafkaClient, topic: string, version = 12, topicId = '') {
    this.client = client
    this.topic = topic
    this.topicId = topicId
    this.version = version
  }

  /** The body of the next request, as it is sent. */
  body(asked: SessionAsked = {}) {
    const { offsets = {}, forgotten = [], maxWaitMs = 0, minBytes = 1, maxBytes = 50 * 1024 * 1024 } = asked
    const { partitionMaxBytes = 1024 * 1024, sessionId = this.id, epoch = this.epoch } = asked
    const place = (asked.version ?? this.version) >= 13 ? { topicId: this.topicId } : { topic: this.topic }
    const partitions = Object.entries(offsets).map(([partition, fetchOffset]) => ({
      partition: Number(partition),
      fetchOffset,
      partitionMaxBytes
    }))
    return {
      maxWaitMs,
      minBytes,
      maxBytes,
      sessionId,
      sessionEpoch: epoch,
      topics: partitions.length === 0 ? [] : [{ ...place, partitions }],
      forgottenTopicsData: forgotten.length === 0 ? [] : [{ ...place, partitions: [...forgotten] }]
    }
  }

  /** Sends it without waiting for the answer. */
  send(asked: SessionAsked = {}): void {
    this.client.send(apis.fetch, this.version, this.body(asked))
    this.#goOn()
  }

  /** One request and its answer, which is not to be an error. @returns what is told, in its order. */
  async fetch(asked: SessionAsked = {}): Promise<readonly ToldPartition[]> {
    const answer = await this.call(asked)
    assert.equal(answer.errorCode, 0)
    if (this.epoch === 0) this.id = answer.sessionId
    else assert.equal(answer.sessionId, this.id)
    this.#goOn()
    return partitionsOf(answer)
  }

  /** One request and its answer, whatever it is: the session stays where it was. */
  call(asked: SessionAsked = {}): Promise<Answer> {
    return this.client.call(apis.fetch, asked.version ?? this.version, this.body(asked))
  }

  #goOn(): void {
    this.epoch = this.epoch === 0x7fff_ffff ? 1 : this.epoch + 1
  }
}

/** Of all topics. */
export function partitionsOf(answer: Answer): ToldPartition[] {
  return answer.responses.flatMap(({ partitions }) => partitions)
}
