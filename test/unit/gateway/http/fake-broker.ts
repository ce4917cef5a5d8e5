/**
 * A broker in memory for tests of the HTTP gateway: enough of the semantics to check what goes in and comes out, and
 * switches for what a test wants to happen. Answers come on a later turn of the loop, never inside a submit.
 */
import { noEpochs, type EpochsOf } from '../../../../src/model/leader-epochs.ts'
import { assert } from '../../../../src/base/assert.ts'
import { fnv1a64Modulo } from '../../../../src/base/hash.ts'
import { authorise, denialOf } from '../../../../src/model/access.ts'
import { toTopicId, type TopicId } from '../../../../src/model/ids.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import type { Principal } from '../../../../src/model/principal.ts'
import { limits } from '../../../../src/model/limits.ts'
import { unreplicated, type Replication } from '../../../../src/model/replication.ts'
import { RESULT_BYTES, submitOutcomes } from '../../../../src/model/requests.ts'
import type { ProducerDescription } from '../../../../src/model/producer.ts'
import type {
  Broker,
  CreatedTopic,
  CreateTopicRequest,
  ProduceCaller,
  ReadCaller,
  ReadRequest,
  Readiness,
  RecordSource,
  SubmitOutcome,
  Watch,
  WatchCaller,
  WatchRequest
} from '../../../../src/model/requests.ts'
import type { SchemaUseCases } from '../../../../src/model/schemas.ts'
import type { PartitionOffsets, TopicConfig, TopicConfigPatch, TopicDescription } from '../../../../src/model/topic.ts'
import { defaultConfig } from '../../control/topics.ts'
import { FakeKeys } from '../fake-keys.ts'
import { FakeWatches } from '../fake-watches.ts'
import { readAnswer, type StoredRecord } from './fake-answers.ts'
import { noBatches } from '../../../support/no-batches.ts'
import { noClassicGroups, noGroups } from '../../../support/no-groups.ts'
import { noSchemas } from '../../../support/no-schemas.ts'

interface StoredTopic {
  readonly partitions: StoredRecord[][]
  config: TopicConfig
}

const NO_SEQUENCE = -(2n ** 63n)

/** Records in ring layout, decoded. */
export function decodeRing(
  ring: Buffer,
  count: number,
  hasHeaders = false
): (StoredRecord & { readonly partition: number })[] {
  let at = 0
  return Array.from({ length: count }, () => {
    const keyBytes = ring.readInt32BE(at)
    at += 4
    const key = keyBytes < 0 ? null : Buffer.from(ring.subarray(at, at + keyBytes))
    at += Math.max(keyBytes, 0)
    const valueBytes = ring.readUInt32BE(at)
    at += 4
    const value = Buffer.from(ring.subarray(at, at + valueBytes))
    at += valueBytes
    const partition = ring.readUInt32BE(at)
    const sequence = ring.readBigInt64BE(at + 4)
    at += 12
    if (!hasHeaders) return { key, value, partition, sequence }
    const headersEnd = at + 4 + ring.readUInt32BE(at)
    const headers = Buffer.from(ring.subarray(at + 4, headersEnd))
    at = headersEnd
    return { key, value, partition, sequence, headers }
  })
}

export class FakeBroker implements Broker {
  readonly keys = new FakeKeys()
  readonly watches = new FakeWatches()
  readonly groups = noGroups
  readonly batches = noBatches
  readonly classicGroups = noClassicGroups
  /** Set to have schemas. */
  schemas: SchemaUseCases = noSchemas
  readonly producers: ProducerDescription[] = []
  ready: Readiness = {
    ready: true,
    status: 'ready',
    progress: null,
    message: 'accepting traffic',
    durability: 'synced'
  }
  /** While true every submit finds the rings full. */
  areRingsFull = false
  /** While true answers wait for flush(). */
  holdsAnswers = false
  turnCount = 0
  readonly reads: ReadRequest[] = []
  /** Of each shared read. */
  readonly readerCounts: number[] = []
  readonly timesAsked: (bigint | null)[] = []
  /** Set to have the next submit throw: a bug of the broker. */
  bug: Error | null = null
  /** Set to have every consume answer with these bytes, in pieces of `chunkBytes`. */
  cannedAnswer: { bytes: Buffer; chunkBytes: number } | null = null
  /** The canned answer is cut to what the read asks for. */
  cutsAnswers = false
  /** Set to have a read fail; after its first chunk if there is a canned answer. */
  readFailure: BrokerError | null = null
  produceFailure: BrokerError | null = null
  /** Called after each chunk of a read. */
  onChunk: (() => void) | null = null
  /** Set to have the next describe wait. */
  beforeDescribe: (() => Promise<void>) | null = null
  /** Every produced result claims to be a duplicate at this offset. */
  duplicateAt: bigint | null = null
  readonly #topics = new Map<string, StoredTopic>()
  readonly #roomWaiters: (() => void)[] = []
  readonly #answers: (() => void)[] = []
  #roundRobin = 0

  recordsOf(topic: string, partition: number): StoredRecord[] {
    return this.#topicOf(topic).partitions[partition] ?? []
  }

  get heldAnswerCount(): number {
    return this.#answers.length
  }

  get roomWaiterCount(): number {
    return this.#roomWaiters.length
  }

  /** Gives all answers that wait. */
  flush(): void {
    for (const answer of this.#answers.splice(0)) answer()
  }

  /** The rings have room again. */
  makeRoom(): void {
    this.areRingsFull = false
    for (const callback of this.#roomWaiters.splice(0)) callback()
  }

  #answer(answer: () => void): void {
    this.#answers.push(answer)
    if (!this.holdsAnswers) setImmediate(() => this.flush())
  }

  #topicOf(name: string): StoredTopic {
    const topic = this.#topics.get(name)
    if (topic === undefined) throw new BrokerError('TOPIC_NOT_FOUND', { topic: name })
    return topic
  }

  async createTopic(who: Principal, request: CreateTopicRequest): Promise<CreatedTopic> {
    const { name, partitions, config } = request
    if (this.#topics.has(name)) throw new BrokerError('TOPIC_EXISTS', { topic: name })
    const topic = { partitions: Array.from({ length: partitions }, () => []), config: defaultConfig }
    this.#topics.set(name, topic)
    return { name, partitions, config: await this.changeTopicConfig(who, name, config) }
  }

  topicNameOf(_who: Principal): null {
    return null
  }

  listTopics(_who: Principal): string[] {
    return [...this.#topics.keys()].sort()
  }

  async describeTopic(_who: Principal, name: string): Promise<TopicDescription> {
    if (this.bug !== null) throw this.bug
    const { partitions, config } = this.#topicOf(name)
    const wait = this.beforeDescribe
    this.beforeDescribe = null
    await wait?.()
    return {
      name,
      config,
      partitions: partitions.map((records, id) => ({
        id,
        start_offset: 0,
        end_offset: records.length,
        segment_count: 1,
        size_bytes: 0
      }))
    }
  }

  /** Every record has timestamp 1, as in a consume. */
  async offsetsAt(
    _who: Principal,
    name: string,
    partition: number | null,
    timestampMs: bigint | null
  ): Promise<PartitionOffsets[]> {
    if (this.bug !== null) throw this.bug
    this.timesAsked.push(timestampMs)
    const all = this.#topicOf(name).partitions.map((records, id) => {
      const isFound = timestampMs !== null && timestampMs <= 1n && records.length > 0
      const found = isFound ? { offset: 0, timestampMs: 1 } : null
      return { partition: id, earliest: 0, latest: records.length, found }
    })
    return partition === null ? all : all.filter(entry => entry.partition === partition)
  }

  topicConfig(_who: Principal, name: string): TopicConfig {
    return this.#topicOf(name).config
  }

  async changeTopicConfig(_who: Principal, name: string, patch: TopicConfigPatch): Promise<TopicConfig> {
    const topic = this.#topicOf(name)
    const given = Object.entries(patch).filter(([, value]) => value !== null)
    const cleared = given.map(([field, value]) => [field, value === -1 ? null : value])
    topic.config = { ...topic.config, ...Object.fromEntries(cleared) }
    return topic.config
  }

  async listProducers(_who: Principal): Promise<ProducerDescription[]> {
    return this.producers
  }

  /** What it says is wrong. */
  readonly wrong: string[] = []

  troubles(): string[] {
    return this.wrong
  }

  runRetention(_who: Principal): Promise<void> {
    return Promise.resolve()
  }

  coldSegments(_who: Principal): Promise<readonly number[]> {
    return Promise.resolve([])
  }

  runCompaction(_who: Principal): Promise<void> {
    return Promise.resolve()
  }

  async forgetProducer(_who: Principal, id: string): Promise<void> {
    const index = this.producers.findIndex(producer => producer.id === id)
    if (index < 0) throw new BrokerError('PRODUCER_NOT_FOUND', { producer: id })
    this.producers.splice(index, 1)
  }

  async deleteTopic(_who: Principal, name: string): Promise<{ name: string; partitions: number }> {
    const { partitions } = this.#topicOf(name)
    this.#topics.delete(name)
    return { name, partitions: partitions.length }
  }

  addPartitions(_who: Principal, { name }: { name: string }): Promise<never> {
    return Promise.reject(new BrokerError('TOPIC_NOT_FOUND', { topic: name }))
  }

  async deleteRecords(_who: Principal, name: string, partition: number, offset: bigint): Promise<number> {
    const topic = this.#topicOf(name)
    if (partition >= topic.partitions.length)
      throw new BrokerError('PARTITION_RANGE', { topic: name, partition, count: topic.partitions.length })
    const end = topic.partitions[partition]?.length ?? 0
    if (offset > BigInt(end))
      throw new BrokerError('FIELD_RANGE', { field: 'offset', value: String(offset), min: 0, max: end })
    return Number(offset)
  }

  replication(_who: Principal): Replication {
    return unreplicated
  }

  #check(topic: string, records: RecordSource): StoredTopic {
    const stored = this.#topicOf(topic)
    if (records.count > limits.requestRecordsMax) {
      throw new BrokerError('RECORDS_TOO_MANY', { count: records.count, limit: limits.requestRecordsMax })
    }
    for (let i = 0; i < records.count; i++) {
      const partition = records.partitionOf(i)
      const count = stored.partitions.length
      if (partition >= count) throw new BrokerError('PARTITION_RANGE', { topic, partition, count })
    }
    return stored
  }

  submitProduce(who: Principal, topic: string, records: RecordSource, caller: ProduceCaller): SubmitOutcome {
    if (this.bug !== null) throw this.bug
    if (this.areRingsFull) return submitOutcomes.full
    try {
      authorise(who, 'produce', topic)
      if (this.produceFailure !== null) throw this.produceFailure
      const { partitions } = this.#check(topic, records)
      const { count } = records
      const chosen = Uint32Array.from({ length: count }, (_, i) => {
        const named = records.partitionOf(i)
        const hashed = named >= 0 ? named : records.hashKeyOf(i, partitions.length, fnv1a64Modulo)
        return hashed >= 0 ? hashed : this.#roundRobin++ % partitions.length
      })
      const ring = Buffer.alloc(records.ringBytes)
      records.writeAll(chosen, ring, 0)
      const results = Buffer.alloc(count * RESULT_BYTES)
      decodeRing(ring, count, records.hasHeaders).forEach((record, i) => {
        const log = partitions[record.partition]
        const offset = this.duplicateAt ?? BigInt(log?.length ?? 0)
        log?.push(record)
        results.writeUInt32BE(record.partition, i * RESULT_BYTES)
        results.writeBigUInt64BE(offset, i * RESULT_BYTES + 4)
        results[i * RESULT_BYTES + 12] = this.duplicateAt === null ? 0 : 1
      })
      this.#answer(() => caller.onProduced(results, 0, count))
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      this.#answer(() => caller.onProduceFailed(error))
    }
    return submitOutcomes.taken
  }

  submitRead(who: Principal, read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    if (this.bug !== null) throw this.bug
    if (this.areRingsFull) return submitOutcomes.full
    const failure = this.readFailure ?? denialOf(who, 'consume', read.topic)
    this.reads.push(read)
    this.#answer(() => {
      if (failure !== null && this.cannedAnswer === null) {
        caller.onReadFailed(failure)
        return
      }
      const { bytes: all, chunkBytes } = this.cannedAnswer ?? {
        bytes: readAnswer(this.recordsOf(read.topic, read.partition), read),
        chunkBytes: 1 << 20
      }
      const bytes = this.cutsAnswers ? all.subarray(0, read.maxBytes) : all
      for (let at = 0; at < bytes.length; at += chunkBytes) {
        const end = Math.min(at + chunkBytes, bytes.length)
        // Lent: the memory is spoilt after the call, as a ring's would be.
        const lent = Buffer.concat([Buffer.alloc(8), bytes.subarray(at, end)])
        caller.onReadChunk(lent, 8, lent.length, bytes.length, end === bytes.length)
        lent.fill(0x21)
        this.onChunk?.()
        if (failure !== null) {
          caller.onReadFailed(failure)
          return
        }
      }
    })
    return submitOutcomes.taken
  }

  submitWatch(who: Principal, watch: WatchRequest, caller: WatchCaller): Watch {
    return this.watches.submit(who, watch, caller)
  }

  refusalOfRead(who: Principal, read: Pick<ReadRequest, 'topic' | 'partition'>): BrokerError | null {
    return this.readFailure ?? denialOf(who, 'consume', read.topic)
  }

  submitSharedRead(readers: readonly Principal[], read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    const [first] = readers
    assert(first !== undefined, 'a shared read has readers')
    this.readerCounts.push(readers.length)
    return this.submitRead(first, read, caller)
  }

  partitionCountOf(who: Principal, topic: string): number {
    authorise(who, 'consume', topic)
    return this.#topicOf(topic).partitions.length
  }

  leaderEpochs(): EpochsOf {
    return noEpochs
  }
  readonly leaderEpochChanges = 0

  topicIdOf(who: Principal, topic: string): TopicId {
    authorise(who, 'consume', topic)
    this.#topicOf(topic)
    return toTopicId(1)
  }

  turn(): void {
    this.turnCount++
  }

  whenRoom(callback: () => void): void {
    this.#roomWaiters.push(callback)
  }

  onDelivered(): void {}

  topicCount(): number {
    return this.#topics.size
  }

  readiness(): Readiness {
    return this.ready
  }
}

/** Sequence of a record that names none. */
export { NO_SEQUENCE }
