/**
 * A broker in memory for tests of the ES01 listener: answers after a turn of the event loop, or when the test says so.
 * It reads records out of the ring layout, so what it stores is what a shard would see.
 */
import { noEpochs, type EpochsOf } from '../../../../src/model/leader-epochs.ts'
import { assert } from '../../../../src/base/assert.ts'
import { fnv1a64Modulo } from '../../../../src/base/hash.ts'
import { authorise } from '../../../../src/model/access.ts'
import { toTopicId, type TopicId } from '../../../../src/model/ids.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import type { Principal } from '../../../../src/model/principal.ts'
import { limits } from '../../../../src/model/limits.ts'
import type {
  Broker,
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
import { RESULT_BYTES, submitOutcomes } from '../../../../src/model/requests.ts'
import type { TopicConfig, TopicDescription } from '../../../../src/model/topic.ts'
import { encodeConsumed } from '../../../support/es01-consumed.ts'
import { FakeKeys } from '../fake-keys.ts'
import { FakeWatches } from '../fake-watches.ts'
import { noBatches } from '../../../support/no-batches.ts'
import { noClassicGroups, noGroups } from '../../../support/no-groups.ts'
import { noSchemas } from '../../../support/no-schemas.ts'

export interface StoredRecord {
  readonly partition: number
  readonly offset: number
  readonly key: Buffer | null
  readonly value: Buffer
  readonly sequence: bigint
}

/** Reads the ring layout of model/requests.ts, as plainly as possible. */
export function parseRing(ring: Buffer, count: number): Omit<StoredRecord, 'offset'>[] {
  let at = 0
  const bytes = (length: number): Buffer => {
    at += length
    return Buffer.from(ring.subarray(at - length, at))
  }
  return Array.from({ length: count }, () => {
    const keyBytes = bytes(4).readInt32BE()
    assert(keyBytes >= -1, 'the ring layout writes no key as −1')
    const key = keyBytes < 0 ? null : bytes(keyBytes)
    const value = bytes(bytes(4).readUInt32BE())
    return { key, value, partition: bytes(4).readInt32BE(), sequence: bytes(8).readBigInt64BE() }
  })
}

export class FakeBroker implements Broker {
  readonly keys = new FakeKeys()
  readonly watches = new FakeWatches()
  readonly groups = noGroups
  readonly batches = noBatches
  readonly classicGroups = noClassicGroups
  readonly schemas = noSchemas
  readonly partitionCounts = new Map<string, number>([['t', 4]])
  readonly logs = new Map<string, StoredRecord[]>()
  /** Submitted and not answered. */
  inProgress = 0
  inProgressMax = 0
  submitted = 0
  turns = 0
  /** Answers wait until `release`. */
  isHeld = false
  /** Nothing is taken until `makeRoom`. */
  isFull = false
  /** The next produce is held until dispatchHeld. */
  holdsNext = false
  held: (() => void) | null = null
  /** The next submitted request meets a bug. */
  throwsNext = false
  /** Bytes per chunk of a read. */
  chunkBytes = 1 << 20
  /** If set, every read answers one record of that many bytes. */
  bigValueBytes = 0
  readonly #answers: (() => void)[] = []
  readonly #waiting: (() => void)[] = []
  readonly #hooks: (() => void)[] = []
  #isScheduled = false
  #roundRobin = 0

  submitProduce(_who: Principal, topic: string, records: RecordSource, caller: ProduceCaller): SubmitOutcome {
    if (!this.#admits()) return submitOutcomes.full
    const refusal = this.#refusalOf(topic, records)
    if (refusal !== null) return this.#answer(() => caller.onProduceFailed(refusal))
    const partitionCount = this.partitionCounts.get(topic) ?? 0
    const partitions = Uint32Array.from({ length: records.count }, (_, i) => {
      const explicit = records.partitionOf(i)
      if (explicit >= 0) return explicit
      const hashed = records.hashKeyOf(i, partitionCount, fnv1a64Modulo)
      return hashed >= 0 ? hashed : this.#roundRobin++ % partitionCount
    })
    const ring = Buffer.from(new SharedArrayBuffer(records.ringBytes + 8))
    assert(records.writeAll(partitions, ring, 8) === 8 + records.ringBytes, 'writeAll fills what it said')
    const results = Buffer.alloc(RESULT_BYTES * records.count)
    parseRing(ring.subarray(8), records.count).forEach((record, i) => {
      assert(record.partition === partitions[i], 'the ring names the resolved partition')
      const offset = this.log(topic, record.partition).length
      this.log(topic, record.partition).push({ ...record, offset })
      results.writeUInt32BE(record.partition, i * RESULT_BYTES)
      results.writeBigUInt64BE(BigInt(offset), i * RESULT_BYTES + 4)
    })
    if (this.holdsNext) {
      this.holdsNext = false
      const { count: heldCount } = records
      this.held = () => {
        caller.onDispatched?.()
        caller.onProduced(results, 0, heldCount)
      }
      return submitOutcomes.held
    }
    // The source is borrowed until return: its count is another one when the answer leaves.
    const { count } = records
    return this.#answer(() => caller.onProduced(results, 0, count))
  }

  submitRead(_who: Principal, read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    if (!this.#admits()) return submitOutcomes.full
    const count = this.partitionCounts.get(read.topic)
    if (count === undefined) {
      return this.#answer(() => caller.onReadFailed(new BrokerError('TOPIC_NOT_FOUND', { topic: read.topic })))
    }
    if (read.partition >= count) {
      const details = { partition: read.partition, topic: read.topic, count }
      return this.#answer(() => caller.onReadFailed(new BrokerError('PARTITION_RANGE', details)))
    }
    const payload = this.#readPayload(read)
    // Chunks of one answer arrive with other answers in between.
    for (let at = 0; at < payload.length; at += this.chunkBytes) {
      const end = Math.min(payload.length, at + this.chunkBytes)
      const isLast = end === payload.length
      const deliver = () => caller.onReadChunk(payload, at, end, payload.length, isLast)
      if (isLast) this.#answer(deliver)
      else this.#schedule(deliver)
    }
    return submitOutcomes.taken
  }

  log(topic: string, partition: number): StoredRecord[] {
    const name = `${topic}/${partition}`
    const found = this.logs.get(name)
    if (found !== undefined) return found
    const made: StoredRecord[] = []
    this.logs.set(name, made)
    return made
  }

  /** Delivers what was held, and holds nothing further. */
  release(): void {
    this.isHeld = false
    this.#deliver()
  }

  makeRoom(): void {
    this.isFull = false
    for (const callback of this.#waiting.splice(0)) callback()
  }

  get waitingForRoom(): number {
    return this.#waiting.length
  }

  submitWatch(who: Principal, watch: WatchRequest, caller: WatchCaller): Watch {
    return this.watches.submit(who, watch, caller)
  }

  refusalOfRead(): BrokerError | null {
    return null
  }

  submitSharedRead(readers: readonly Principal[], read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    const [first] = readers
    assert(first !== undefined, 'a shared read has readers')
    return this.submitRead(first, read, caller)
  }

  partitionCountOf(who: Principal, topic: string): number {
    authorise(who, 'consume', topic)
    return this.partitionCounts.get(topic) ?? 0
  }

  leaderEpochs(): EpochsOf {
    return noEpochs
  }
  readonly leaderEpochChanges = 0

  topicIdOf(who: Principal, topic: string): TopicId {
    authorise(who, 'consume', topic)
    return toTopicId(1)
  }

  turn(): void {
    this.turns++
  }

  whenRoom(callback: () => void): void {
    this.#waiting.push(callback)
  }

  /** Dispatches what is held, and answers it, as in one delivery. */
  dispatchHeld(): void {
    this.held?.()
    this.held = null
    for (const hook of this.#hooks) hook()
  }

  onDelivered(hook: () => void): void {
    this.#hooks.push(hook)
  }

  listProducers(_who: Principal): Promise<never> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'listProducers' }))
  }

  troubles(): string[] {
    return []
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

  addPartitions(_who: Principal): Promise<never> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'addPartitions' }))
  }

  deleteRecords(_who: Principal): Promise<never> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'deleteRecords' }))
  }

  replication(_who: Principal): never {
    throw new BrokerError('ROUTE_NOT_FOUND', { path: 'replication' })
  }

  forgetProducer(_who: Principal): Promise<never> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'forgetProducer' }))
  }

  createTopic(_who: Principal): Promise<never> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'createTopic' }))
  }

  topicNameOf(_who: Principal): null {
    return null
  }

  listTopics(_who: Principal): string[] {
    return [...this.partitionCounts.keys()]
  }

  offsetsAt(_who: Principal): Promise<never> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'offsetsAt' }))
  }

  describeTopic(_who: Principal): Promise<TopicDescription> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'describeTopic' }))
  }

  topicConfig(_who: Principal): TopicConfig {
    throw new BrokerError('ROUTE_NOT_FOUND', { path: 'topicConfig' })
  }

  changeTopicConfig(_who: Principal): Promise<TopicConfig> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'changeTopicConfig' }))
  }

  deleteTopic(_who: Principal): Promise<{ name: string; partitions: number }> {
    return Promise.reject(new BrokerError('ROUTE_NOT_FOUND', { path: 'deleteTopic' }))
  }

  topicCount(): number {
    return this.partitionCounts.size
  }

  readiness(): Readiness {
    return { ready: true, status: 'ready', progress: null, message: 'ready', durability: 'synced' }
  }

  #admits(): boolean {
    if (this.throwsNext) {
      this.throwsNext = false
      throw new Error('planted: /secret/path')
    }
    return !this.isFull
  }

  #refusalOf(topic: string, records: RecordSource): BrokerError | null {
    const count = this.partitionCounts.get(topic)
    if (count === undefined) return new BrokerError('TOPIC_NOT_FOUND', { topic })
    if (records.count > limits.requestRecordsMax) {
      return new BrokerError('RECORDS_TOO_MANY', { count: records.count, limit: limits.requestRecordsMax })
    }
    for (let i = 0; i < records.count; i++) {
      const partition = records.partitionOf(i)
      if (partition >= count) return new BrokerError('PARTITION_RANGE', { partition, topic, count })
    }
    return null
  }

  #readPayload(read: ReadRequest): Buffer {
    if (this.bigValueBytes > 0) {
      const value = Buffer.alloc(this.bigValueBytes, 0x61)
      const record = { partition: read.partition, offset: 0, timestampMs: 1, key: null, value }
      return encodeConsumed({ nextOffset: 1, highWatermark: 1, records: [record] })
    }
    const log = this.log(read.topic, read.partition)
    const offset = (BigInt(read.offsetHigh) << 32n) | BigInt(read.offsetLow)
    if (offset >= log.length) return encodeConsumed({ nextOffset: offset, highWatermark: log.length, records: [] })
    const found = log.slice(Number(offset), Number(offset) + read.maxRecords)
    const records = found.map(record => ({ ...record, timestampMs: 1_700_000_000_000 }))
    return encodeConsumed({ nextOffset: Number(offset) + found.length, highWatermark: log.length, records })
  }

  #answer(deliver: () => void): SubmitOutcome {
    this.submitted++
    this.inProgress++
    this.inProgressMax = Math.max(this.inProgressMax, this.inProgress)
    this.#schedule(() => {
      this.inProgress--
      deliver()
    })
    return submitOutcomes.taken
  }

  #schedule(deliver: () => void): void {
    this.#answers.push(deliver)
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      if (!this.isHeld) this.#deliver()
    })
  }

  #deliver(): void {
    for (const deliver of this.#answers.splice(0)) deliver()
    for (const hook of this.#hooks) hook()
  }
}
