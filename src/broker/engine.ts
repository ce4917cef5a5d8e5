/**
 * What the broker needs of whatever holds the records. `local` is the shards of this process; nothing above this file
 * may know which engine runs. Main thread.
 */
import type { BatchCaller, BatchSubmission } from '../model/batches.ts'
import type { BrokerError } from '../model/errors.ts'
import type { EpochsOf } from '../model/leader-epochs.ts'
import type { Replication } from '../model/replication.ts'
import type {
  ProduceCaller,
  ReadCaller,
  RecordSource,
  SubmitOutcome,
  Watch,
  WatchCaller,
  WatchRequest
} from '../model/requests.ts'
import type { PartitionDescription, PartitionOffsets, Topic } from '../model/topic.ts'

/** A read of one partition that exists. */
export interface EngineRead {
  readonly topic: Topic
  readonly partition: number
  readonly offsetHigh: number
  readonly offsetLow: number
  readonly isFromStart?: boolean
  readonly maxRecords: number
  readonly maxBytes: number
  readonly format: number
}

/** A wait for something to read, of one partition that exists. */
export interface EngineWatch extends Omit<WatchRequest, 'topic'> {
  readonly topic: Topic
}

/** Records whose partitions are resolved and valid: record i goes to partitions[i]. */
export interface EngineAppend {
  readonly topic: Topic
  readonly records: RecordSource
  readonly partitions: Uint32Array
  /** Number of the producer; 0: none, and sequences mean nothing. */
  readonly producer: number
}

/** A batch, its header checked, for a partition that exists. */
export interface EngineBatch extends Omit<BatchSubmission, 'topic'> {
  readonly topic: Topic
  /** Number of the producer, which the batch names; 0: none. */
  readonly producer: number
  /** The time of append becomes that of its records. */
  readonly takesAppendTime: boolean
}

/** What a producer has in one partition, durable. */
export interface EnginePosition {
  readonly handle: number
  readonly producer: number
  /** Below 0: of a producer that speaks Kafka's protocol (wire/batch/sequences.ts). */
  readonly lastSequence: bigint
  readonly lastOffset: number
}

/** Hears what became of an append: what a ProduceCaller hears, and what of it was there already. */
export interface AppendCaller extends Omit<ProduceCaller, 'onProduced'> {
  /** @param duplicates records that an idempotent producer had written before. @param duplicateBytes of their keys and values. */
  onProduced(bytes: Buffer, start: number, count: number, duplicates: number, duplicateBytes: number): void
}

/** Hears the answer of a read, and how much is in it. */
export interface EngineReadCaller extends ReadCaller {
  /** Just before the last chunk. @param payloadBytes of the keys and values of these records. */
  onReadCounted(records: number, payloadBytes: number): void
}

export interface Engine {
  /** Makes a committed topic usable everywhere; resolves when every owner has it. */
  openTopic(topic: Topic): Promise<void>
  /** Applies a committed configuration, or more partitions; resolves when every owner has it. */
  configureTopic(topic: Topic): Promise<void>
  /** After it resolves no append to the topic is acknowledged. */
  dropTopic(topic: Topic): Promise<void>
  /** One entry a partition, in order. */
  describeTopic(topic: Topic): Promise<PartitionDescription[]>
  /**
   * One entry a partition, in order. @param partition null: all of them. @param timestampMs a safe integer; null: only
   * where they begin and end.
   */
  offsetsAt(topic: Topic, partition: number | null, timestampMs: number | null): Promise<PartitionOffsets[]>
  /** Appends records. What it is given is borrowed until return. The caller is never called before it. */
  append(append: EngineAppend, caller: AppendCaller): SubmitOutcome
  /** Appends a batch that a client encoded. Likewise. */
  appendBatch(batch: EngineBatch, caller: BatchCaller): SubmitOutcome
  /** True if append() checks and writes such a request in one step: all of its partitions have one owner. */
  hasOneOwner(append: EngineAppend): boolean
  /**
   * The same for a producer's request over several owners: each checks its part first, then all of it is written or none.
   * Waits for room by itself. What it is given is the engine's until the caller has heard; nothing else of that producer
   * may be submitted meanwhile. The caller hears onDispatched.
   * @param lateRefusal asked when all is checked and nothing written: what it gives is the answer instead. null: go on.
   */
  appendChecked(append: EngineAppend, caller: AppendCaller, lateRefusal: () => BrokerError | null): void
  /** What every producer has on the owners that can be asked. isWhole: all could be. */
  listProducers(): Promise<{ readonly positions: readonly EnginePosition[]; readonly isWhole: boolean }>
  /** Drops what is known of producers; their numbers are never used again. */
  forgetProducers(numbers: readonly number[]): Promise<void>
  /**
   * A retention pass over all topics: resolves when what has had its time cannot be read any more.
   * @fails DISK_FULL, OVERLOADED, SHARD_DOWN
   */
  runRetention(): Promise<void>
  /**
   * Moves the start of a partition up to an offset, durably. @param offset a safe integer.
   * @returns where it starts now. @fails FIELD_RANGE beyond its end; SHARD_DIED: it may have moved.
   */
  deleteRecords(topic: Topic, partition: number, offset: number): Promise<number>
  replication(): Replication
  /** Leader epochs of a topic's partitions, as their owners said them last. */
  leaderEpochs(topic: Topic): EpochsOf
  /** Another number whenever more is known of the epochs of any topic; 0: none is above 0. */
  readonly leaderEpochChanges: number
  read(read: EngineRead, caller: EngineReadCaller): SubmitOutcome
  /**
   * Waits until as many stored bytes can be read as are asked for: what is durable counts. Waits for room by itself. Several
   * may wait for the same. @fails TOPIC_NOT_FOUND, SHARD_DOWN, SHARD_DIED, NOT_READY
   */
  watch(watch: EngineWatch, caller: WatchCaller): Watch
  /** Makes what was submitted visible and delivers replies. */
  turn(): void
  /** Makes it visible at the end of this tick at the latest. */
  publishSoon(): void
  whenRoom(callback: () => void): void
  onDelivered(hook: () => void): void
  /** What keeps it from serving, one sentence each; empty when all is well. */
  problems(): string[]
  /** What is tried again in vain for the moment while it serves, one sentence each. */
  troubles(): string[]
  /** Share of its start that is done, 0 to 1; null: nothing of it is starting. */
  progress(): number | null
}
