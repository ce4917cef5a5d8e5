/**
 * The use cases of the broker, in the order authorise → quota → route → submit → shape the reply. Main thread. Knows no protocol and no engine.
 */
import type { Quotas } from '../control/quotas.ts'
import { authorise, denialOf } from '../model/access.ts'
import type { BatchUseCases } from '../model/batches.ts'
import { BrokerError } from '../model/errors.ts'
import type { TopicId } from '../model/ids.ts'
import type { KeyUseCases } from '../model/keys.ts'
import type { ClassicGroupUseCases } from '../model/classic-groups.ts'
import type { GroupUseCases } from '../model/groups.ts'
import type { EpochsOf } from '../model/leader-epochs.ts'
import type { Principal } from '../model/principal.ts'
import type { Replication } from '../model/replication.ts'
import type {
  AddPartitionsRequest,
  Broker,
  CreatedTopic,
  CreateTopicRequest,
  ProduceCaller,
  ReadCaller,
  ReadRequest,
  Readiness,
  StartReport,
  RecordSource,
  SubmitOutcome,
  Trial,
  Watch,
  WatchCaller,
  WatchRequest
} from '../model/requests.ts'
import { submitOutcomes } from '../model/requests.ts'
import type { SchemaUseCases } from '../model/schemas.ts'
import type { PartitionOffsets, Topic, TopicConfig, TopicConfigPatch, TopicDescription } from '../model/topic.ts'
import type { ProducerDescription } from '../model/producer.ts'
import { Batches } from './batches.ts'
import type { AppendCaller, Engine } from './engine.ts'
import type { GroupFlush } from './group-flush.ts'
import type { Groups } from './groups.ts'
import { sizeRefusal } from './message-limits.ts'
import type { KeyedBatches } from './keyed-batches.ts'
import { MeteredProduce, MeteredRead, payloadBytesOf } from './metering.ts'
import { checkSequences, type IdempotentProduce } from './idempotent-produce.ts'
import { hasPartition, noSuchPartition } from './partition-range.ts'
import type { ProducerCommands } from './producer-commands.ts'
import { Router } from './router.ts'
import type { Tiering } from './tiering.ts'
import { TopicCommands, type TopicParts } from './topic-commands.ts'
import type { Traffic } from './traffic.ts'
import type { ValidatedProduce } from './validated-produce.ts'
import { refusedWatch, type WatchHub } from './watches.ts'

export interface BrokerOptions extends Omit<TopicParts, 'onDeleting' | 'onGrown'> {
  readonly engine: Engine
  readonly idempotent: IdempotentProduce
  readonly validation: Pick<ValidatedProduce, 'concerns' | 'submit'>
  readonly keyedBatches: Pick<KeyedBatches, 'concerns' | 'append'>
  readonly producers: ProducerCommands
  readonly keys: KeyUseCases
  readonly groups: GroupUseCases & Pick<Groups, 'forgetTopic' | 'partitionsAdded'>
  readonly classicGroups: ClassicGroupUseCases
  readonly schemas: SchemaUseCases
  readonly groupFlush: Pick<GroupFlush, 'problem'>
  readonly tombstones: { begin(topic: Topic): () => void }
  readonly compaction: { readonly problem: string | null; runAll(): Promise<void> }
  readonly tiering: Pick<Tiering, 'problem' | 'runAll' | 'coldSegments'>
  /** True while the disk has no room for more records. */
  readonly space: { readonly isLow: boolean }
  readonly quotas: Quotas
  readonly watches: WatchHub
  /** What went through each topic. */
  readonly traffic: Traffic
  /** Of the TLS listeners; null: there are none. */
  readonly certificates: { readonly problem: string | null } | null
  /** What comes before the engine starts. */
  readonly preparation: Preparation
  readonly maxRecordBytes: number
  readonly flushEveryRecords: number
}

/** What must be done before the engine starts. */
export interface Preparation {
  /** True if there is something that takes its time. */
  readonly isChange: boolean
  /** The step under way; null: it is done. */
  report(): StartReport | null
}

const nothing = Buffer.alloc(0)
/** Of a start that has something to prepare: the engine's own start is the rest. */
const PREPARATION_SHARE = 0.9

export class LocalBroker implements Broker {
  readonly keys: KeyUseCases
  readonly groups: GroupUseCases
  readonly classicGroups: ClassicGroupUseCases
  readonly schemas: SchemaUseCases
  readonly batches: BatchUseCases
  readonly #topics: TopicCommands
  readonly #router = new Router()
  readonly #options: BrokerOptions
  #isStopping = false

  constructor(options: BrokerOptions) {
    this.#options = options
    this.keys = options.keys
    this.groups = options.groups
    this.classicGroups = options.classicGroups
    this.schemas = options.schemas
    this.batches = new Batches(options)
    this.#topics = new TopicCommands({
      ...options,
      onGrown: topic => options.groups.partitionsAdded(topic),
      onDeleting: topic => {
        const onDropped = options.tombstones.begin(topic)
        options.traffic.forget(topic.id)
        options.gates.forget(topic.id)
        options.groups.forgetTopic(topic)
        options.watches.endTopic(topic)
        return () => {
          this.#router.forget(topic)
          onDropped()
        }
      }
    })
  }

  async createTopic(who: Principal, request: CreateTopicRequest): Promise<CreatedTopic> {
    authorise(who, 'create topic')
    return this.#topics.create(request)
  }

  listTopics(who: Principal): string[] {
    authorise(who, 'list topics')
    return this.#options.catalog.names().filter(name => who.mayRead(name))
  }

  topicNameOf(who: Principal, id: TopicId): string | null {
    authorise(who, 'list topics')
    const topic = this.#options.catalog.topicOfId(id)
    return topic !== undefined && who.mayRead(topic.name) ? topic.name : null
  }

  async describeTopic(who: Principal, name: string): Promise<TopicDescription> {
    authorise(who, 'describe topic', name)
    return this.#topics.describe(name)
  }

  async offsetsAt(
    who: Principal,
    name: string,
    partition: number | null,
    timestampMs: bigint | null
  ): Promise<PartitionOffsets[]> {
    authorise(who, 'list offsets', name)
    return this.#topics.offsetsAt(name, partition, timestampMs)
  }

  topicConfig(who: Principal, name: string): TopicConfig {
    authorise(who, 'read topic config', name)
    return this.#topics.topic(name).config
  }

  async changeTopicConfig(
    who: Principal,
    name: string,
    patch: TopicConfigPatch,
    trial: Trial = {}
  ): Promise<TopicConfig> {
    authorise(who, 'change topic config', name)
    return this.#topics.configure(name, patch, trial)
  }

  async addPartitions(who: Principal, request: AddPartitionsRequest): Promise<{ name: string; partitions: number }> {
    authorise(who, 'add partitions', request.name)
    return this.#topics.grow(request)
  }

  async deleteTopic(who: Principal, name: string): Promise<{ name: string; partitions: number }> {
    authorise(who, 'delete topic', name)
    return this.#topics.delete(name)
  }

  async deleteRecords(who: Principal, name: string, partition: number, offset: bigint): Promise<number> {
    authorise(who, 'delete records')
    return this.#topics.deleteRecords(name, partition, offset)
  }

  replication(who: Principal): Replication {
    authorise(who, 'read replication')
    return this.#options.engine.replication()
  }

  async listProducers(who: Principal): Promise<ProducerDescription[]> {
    authorise(who, 'manage producers')
    return this.#options.producers.list()
  }

  async forgetProducer(who: Principal, id: string): Promise<void> {
    authorise(who, 'manage producers')
    return this.#options.producers.forget(id)
  }

  async runRetention(who: Principal): Promise<void> {
    authorise(who, 'run cleaning')
    await this.#options.engine.runRetention()
    await this.#options.tiering.runAll()
  }

  async coldSegments(who: Principal, name: string, partition: number): Promise<readonly number[]> {
    authorise(who, 'list cold segments')
    return this.#options.tiering.coldSegments(name, partition)
  }

  async runCompaction(who: Principal): Promise<void> {
    authorise(who, 'run cleaning')
    return this.#options.compaction.runAll()
  }

  /**
   * Checks in the order of spec 4: grant · topic · empty · count · record size · quota · form of the sequences · partition ·
   * schema, where the topic asks for it · producer id · sequences. Nothing is written before all hold.
   */
  submitProduce(who: Principal, topicName: string, records: RecordSource, caller: ProduceCaller): SubmitOutcome {
    const { engine, catalog } = this.#options
    const denial = denialOf(who, 'produce', topicName)
    if (denial !== null) return this.#refuse(caller, denial)
    const topic = catalog.topicNamed(topicName)
    if (topic === undefined) return this.#refuse(caller, new BrokerError('TOPIC_NOT_FOUND', { topic: topicName }))
    if (records.count === 0) {
      queueMicrotask(() => caller.onProduced(nothing, 0, 0))
      return submitOutcomes.taken
    }
    const { quotas, traffic, gates } = this.#options
    const gate = gates.of(topic.id)
    if (gate.isClosed) return submitOutcomes.full
    if (this.#options.space.isLow) return this.#refuse(caller, new BrokerError('DISK_FULL', {}, { written: 'no' }))
    const refusal = sizeRefusal(topic, records, this.#options.maxRecordBytes)
    if (refusal !== null) return this.#refuse(caller, refusal)
    const payloadBytes = payloadBytesOf(records)
    const limited = quotas.takeProduce(who, payloadBytes)
    if (limited !== null) return this.#refuse(caller, limited)
    const cost = { who, bytes: payloadBytes, counts: traffic.of(topic.id), gate }
    const metered = new MeteredProduce(caller, quotas, cost)
    let outcome: SubmitOutcome = submitOutcomes.full
    try {
      outcome = this.#route(who, topic, records, metered)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      return this.#refuse(caller, error)
    } finally {
      // Not taken: what was refused here, or is offered again when there is room.
      if (outcome === submitOutcomes.full) quotas.giveBackProduce(who, payloadBytes)
    }
    if (outcome !== submitOutcomes.full) {
      gate.enter()
      this.#router.accept(topic)
      engine.publishSoon()
    }
    return outcome
  }

  /** @throws BrokerError */
  #route(who: Principal, topic: Topic, records: RecordSource, caller: AppendCaller): SubmitOutcome {
    const { engine, idempotent, validation } = this.#options
    const { producerId } = records
    if (producerId !== null) checkSequences(records)
    const append = { topic, records, partitions: this.#router.route(topic, records), producer: 0 }
    if (validation.concerns(topic, who)) return validation.submit(append, who, caller)
    if (producerId === null) return engine.append(append, caller)
    return idempotent.submit(append, producerId, who, caller)
  }

  submitRead(who: Principal, read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    const { engine, quotas, traffic } = this.#options
    const topic = this.#topicToRead(who, read)
    if (topic instanceof BrokerError) return this.#refuseRead(caller, topic)
    const limited = quotas.refusalOfConsume(who)
    if (limited !== null) return this.#refuseRead(caller, limited)
    const metered = new MeteredRead(caller, who, quotas, traffic.of(topic.id))
    const outcome = engine.read({ ...read, topic }, metered)
    if (outcome === submitOutcomes.taken) engine.publishSoon()
    return outcome
  }

  submitWatch(who: Principal, watch: WatchRequest, caller: WatchCaller): Watch {
    const topic = this.#topicToRead(who, watch)
    if (topic instanceof BrokerError) return refusedWatch(topic, caller)
    return this.#options.watches.submit(who, { ...watch, topic }, caller)
  }

  refusalOfRead(who: Principal, read: Pick<ReadRequest, 'topic' | 'topicId' | 'partition'>): BrokerError | null {
    const topic = this.#topicToRead(who, read)
    return topic instanceof BrokerError ? topic : this.#options.quotas.refusalOfConsume(who)
  }

  /** The topic of a partition that the caller may read, or why not. */
  #topicToRead(who: Principal, read: Pick<ReadRequest, 'topic' | 'topicId' | 'partition'>): Topic | BrokerError {
    return denialOf(who, 'consume', read.topic) ?? this.#topicOf(read)
  }

  #topicOf(read: Pick<ReadRequest, 'topic' | 'topicId' | 'partition'>): Topic | BrokerError {
    const topic = this.#options.catalog.topicNamed(read.topic)
    if (topic === undefined || (read.topicId ?? topic.id) !== topic.id)
      return new BrokerError('TOPIC_NOT_FOUND', { topic: read.topic })
    return hasPartition(topic, read.partition) ? topic : noSuchPartition(topic, read.partition)
  }

  submitSharedRead(readers: readonly Principal[], read: ReadRequest, caller: ReadCaller): SubmitOutcome {
    const { engine, quotas, traffic } = this.#options
    const topic = this.#topicOf(read)
    if (topic instanceof BrokerError) return this.#refuseRead(caller, topic)
    const outcome = engine.read({ ...read, topic }, new MeteredRead(caller, readers, quotas, traffic.of(topic.id)))
    if (outcome === submitOutcomes.taken) engine.publishSoon()
    return outcome
  }

  partitionCountOf(who: Principal, name: string): number {
    authorise(who, 'consume', name)
    return this.#topics.topic(name).partitionCount
  }

  topicIdOf(who: Principal, name: string): TopicId {
    authorise(who, 'consume', name)
    return this.#topics.topic(name).id
  }

  leaderEpochs(who: Principal, name: string): EpochsOf {
    authorise(who, 'consume', name)
    return this.#options.engine.leaderEpochs(this.#topics.topic(name))
  }

  get leaderEpochChanges(): number {
    return this.#options.engine.leaderEpochChanges
  }

  turn(): void {
    this.#options.engine.turn()
  }

  whenRoom(callback: () => void): void {
    this.#options.engine.whenRoom(callback)
  }

  onDelivered(hook: () => void): void {
    this.#options.engine.onDelivered(hook)
  }

  topicCount(): number {
    return this.#options.catalog.topicCount
  }

  readiness(): Readiness {
    const durability = this.#options.flushEveryRecords === 1 ? 'synced' : 'deferred'
    if (this.#isStopping)
      return { ready: false, status: 'stopping', progress: null, message: 'shutting down', durability }
    const { engine, preparation } = this.#options
    const step = preparation.report()
    if (step !== null) {
      const progress = shareOf(PREPARATION_SHARE * step.progress)
      return { ready: false, status: 'starting', progress, message: step.message, durability }
    }
    const problems = engine.problems()
    const started = engine.progress()
    const before = preparation.isChange ? PREPARATION_SHARE : 0
    const progress = started === null ? null : shareOf(before + (1 - before) * started)
    const message = problems.join('; ') || 'accepting traffic'
    const status = problems.length === 0 ? 'ready' : progress === null ? 'unavailable' : 'starting'
    return { ready: problems.length === 0, status, progress, message, durability }
  }

  troubles(): string[] {
    const { engine, compaction, tiering, space, groupFlush, certificates } = this.#options
    return [
      ...(space.isLow ? ['the disk has less room than its reserve: produce is refused'] : []),
      ...engine.troubles(),
      ...[groupFlush, compaction, tiering, certificates].flatMap(part => part?.problem ?? [])
    ]
  }

  /** From now on not ready: load balancers look elsewhere while requests in progress finish. */
  beginStop(): void {
    this.#isStopping = true
  }

  #refuse(caller: ProduceCaller, error: BrokerError): SubmitOutcome {
    queueMicrotask(() => caller.onProduceFailed(error))
    return submitOutcomes.taken
  }

  #refuseRead(caller: ReadCaller, error: BrokerError): SubmitOutcome {
    queueMicrotask(() => caller.onReadFailed(error))
    return submitOutcomes.taken
  }
}

function shareOf(share: number): number {
  return Math.round(share * 1000) / 1000
}
