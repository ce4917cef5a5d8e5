/**
 * What a gateway asks of the broker, and how it hears the answer. All of it lives on the main thread.
 * The hot calls are callbacks on long-lived objects, not promises: one produce makes no closure.
 */
import type { KeyHash } from '../base/hash.ts'
import type { BatchUseCases } from './batches.ts'
import type { TopicId } from './ids.ts'
import type { BrokerError } from './errors.ts'
import type { KeyUseCases } from './keys.ts'
import type { ClassicGroupUseCases } from './classic-groups.ts'
import type { GroupUseCases } from './groups.ts'
import type { EpochsOf } from './leader-epochs.ts'
import type { Principal } from './principal.ts'
import type { ProducerDescription } from './producer.ts'
import type { Replication } from './replication.ts'
import type { SchemaUseCases } from './schemas.ts'
import type { SubmitOutcome } from './submit-outcomes.ts'
import type { PartitionOffsets, TopicConfig, TopicConfigPatch, TopicDescription } from './topic.ts'

export { submitOutcomes, type SubmitOutcome } from './submit-outcomes.ts'

/**
 * The records of one produce request: parsed and checked in form, not yet routed, lying in the gateway's buffer.
 * Borrowed by the broker until submitProduce returns, whatever it returns.
 *
 * Ring layout of a record, big-endian, the same as in an ES01 produce frame but with the partition always resolved:
 *   key_len i32 (−1 none) · key · value_len u32 · value · partition i32 · sequence i64 (i64::MIN none)
 *
 * If any record of the request has headers, each is followed by headers_len u32 · headers, in the form of a RecordBatch v2
 * record: count varint, then key length varint · key · value length varint (−1 null) · value for each. None: one byte, 0.
 */
export interface RecordSource {
  readonly count: number
  /** The ring layout has headers, of all records. */
  readonly hasHeaders: boolean
  /** The producer id that the request names, unchecked, or null. Sequences count only together with one. */
  readonly producerId: string | null
  /** Bytes of all records in ring layout. */
  readonly ringBytes: number
  /** key + value + header bytes of record i. Its headers_len, and a count of no headers, do not count. */
  payloadBytesOf(i: number): number
  /** Largest payloadBytesOf, and the index it belongs to. */
  readonly largestPayloadBytes: number
  readonly largestPayloadIndex: number
  /** The partition the record names, or −1. May be ≥ 2^31: it is a u32 on HTTP. */
  partitionOf(i: number): number
  /** The hash of the key modulo `partitionCount`, or −1 if the record has no key. */
  hashKeyOf(i: number, partitionCount: number, hash: KeyHash): number
  /** Sequence of record i: bits 32 to 63, as i32. With the low half 0, −2^31 means that it has none. */
  sequenceHighOf(i: number): number
  /** Bits 0 to 31, as u32. */
  sequenceLowOf(i: number): number
  /** Bytes of record i in ring layout. */
  ringBytesOf(i: number): number
  /** Writes record i in ring layout at target[at…]. @returns the position after it. */
  writeRecord(i: number, partition: number, target: Buffer, at: number): number
  /** Writes all records, record i for partitions[i]. One bulk copy where the layout allows it. @returns the position after them. */
  writeAll(partitions: Uint32Array, target: Buffer, at: number): number
}

/** Bytes of one result: partition u32, offset u64, duplicate u8, big-endian (the ES01 layout). */
export const RESULT_BYTES = 13

/** Hears what became of one produce. Exactly one of the two is called, once, never before submitProduce returned. */
export interface ProduceCaller {
  /**
   * The records are as durable as the broker promises.
   * @param results bytes[start, start + RESULT_BYTES × count), in the order of the request; borrowed until return.
   */
  onProduced(bytes: Buffer, start: number, count: number): void
  onProduceFailed(error: BrokerError): void
  /**
   * Of a request that was `held`, once, before its answer: it is on all its rings, or refused. What is submitted from
   * here on comes after it in its partitions.
   */
  onDispatched?(): void
}

/**
 * How the shard encodes the answer of a read: an ES01 payload, the JSON or MessagePack body of an HTTP consume, or frames
 * of one JSON text a record (wire/json/record-frames.ts), which a stream takes apart; or whole batches as they are stored
 * (wire/batch/stored-batches.ts).
 */
export const readFormats = {
  es01: 0,
  jsonUtf8: 1,
  jsonBase64: 2,
  framesUtf8: 3,
  framesBase64: 4,
  msgpack: 5,
  batches: 6
} as const
export type ReadFormat = (typeof readFormats)[keyof typeof readFormats]

export interface ReadRequest {
  readonly topic: string
  /** Who reads for long means this topic: one that was made anew under its name is TOPIC_NOT_FOUND. */
  readonly topicId?: TopicId
  readonly partition: number
  /** u64: high and low 32 bits. */
  readonly offsetHigh: number
  readonly offsetLow: number
  /** Where the partition begins is what is wanted, if the offset is below it: the answer has no `skipped` for that. */
  readonly isFromStart?: boolean
  /** Already clamped to the settings. Of batches only the bytes count: stored ones, and one batch always fits. */
  readonly maxRecords: number
  readonly maxBytes: number
  readonly format: ReadFormat
}

/** Where a read is counted and charged. */
export interface ReadCost {
  /** So much was consumed. At most once a read. */
  charge(records: number, payloadBytes: number): void
}

/** A part of an answer in memory that is lent: bytes[0, length). */
export interface LentPart {
  /** The same buffer each time that this memory is lent. */
  readonly bytes: Buffer
  readonly length: number
  /** Once, when nothing reads it any more: it is filled anew. */
  giveBack(): void
}

/** A whole answer in the format `batches`. */
export interface LentAnswer {
  /** Its head (wire/batch/stored-batches) begins at bytes[headAt]: borrowed until return. */
  readonly bytes: Buffer
  readonly headAt: number
  /** Of head and batches. */
  readonly totalBytes: number
  /** The batches, one behind another; all are the caller's. */
  readonly parts: readonly LentPart[]
}

/** Hears the answer of one read: chunks in order, or one failure. Never called before submitRead returned. */
export interface ReadCaller {
  /**
   * A piece of the encoded answer: the JSON body, or the payload of an ES01 0x82 frame.
   * @param bytes [start, end) borrowed until return. @param totalBytes of the whole answer, the same in every call.
   */
  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void
  /** Instead of chunks, for large answers of whole batches. Left out: those come in chunks, too. */
  onReadLent?(answer: LentAnswer): void
  onReadFailed(error: BrokerError): void
  /**
   * Just before the last chunk. For callers that may give up what they have read: they charge what they send, when they do.
   * Left out: all of it is charged now.
   */
  onReadCost?(cost: ReadCost, records: number, payloadBytes: number): void
}

/** Somebody who waits until a partition has something to read. */
export interface WatchRequest {
  readonly topic: string
  /** As of a ReadRequest. */
  readonly topicId?: TopicId
  readonly partition: number
  /** u64: high and low 32 bits. */
  readonly offsetHigh: number
  readonly offsetLow: number
  /** At least 1. Stored bytes at or above the offset: what is read may be counted a little differently. */
  readonly minBytes: number
}

/** Hears once, never before submitWatch returned; after cancel, nothing. */
export interface WatchCaller {
  /** There is as much to read. */
  onAvailable(): void
  /**
   * KEY_REVOKED: the caller's key. TOPIC_NOT_FOUND: it was deleted. SHARD_DOWN, SHARD_DIED: whoever still wants to wait
   * asks again; the read that follows hears when the shard is back.
   */
  onWatchFailed(error: BrokerError): void
}

/** Ends a watch: its caller hears nothing more, and nothing of it is kept. Again: nothing happens. */
export interface Watch {
  cancel(): void
}

/** What a broker serves those who wait. */
export interface WatchUseCases {
  /**
   * Waits, without a bound of time, until there is something to read. Refusals come as onWatchFailed: FORBIDDEN,
   * TOPIC_NOT_FOUND, PARTITION_RANGE, OVERLOADED (limits.watchesMax). Costs no quota: the read that follows does.
   */
  submitWatch(who: Principal, watch: WatchRequest, caller: WatchCaller): Watch
  /**
   * What a read would be refused for now, in the order in which submitRead looks, or null. For those who wait before they
   * read: FORBIDDEN, KEY_REVOKED, TOPIC_NOT_FOUND, PARTITION_RANGE, RATE_LIMITED.
   */
  refusalOfRead(who: Principal, read: Pick<ReadRequest, 'topic' | 'topicId' | 'partition'>): BrokerError | null
}

/** What a broker serves streams: many readers that stand at the same place. */
export interface StreamUseCases {
  /**
   * One read for all of these readers, each of whom refusalOfRead let through just now: each is charged, and counted, as if
   * it had read alone. What became of the partition since comes as onReadFailed: TOPIC_NOT_FOUND, PARTITION_RANGE.
   */
  submitSharedRead(readers: readonly Principal[], read: ReadRequest, caller: ReadCaller): SubmitOutcome
  /** Partitions of a topic that the caller may read. @throws BrokerError KEY_REVOKED, FORBIDDEN, TOPIC_NOT_FOUND */
  partitionCountOf(who: Principal, topic: string): number
  /** Which topic has that name now. @throws BrokerError KEY_REVOKED, FORBIDDEN, TOPIC_NOT_FOUND */
  topicIdOf(who: Principal, topic: string): TopicId
}

/** Of a change that may be tried. */
export interface Trial {
  /** It is only looked whether it could be made. */
  readonly isDryRun?: boolean
}

/** How many partitions a topic is to have. */
export interface AddPartitionsRequest extends Trial {
  readonly name: string
  readonly partitions: number
}

export interface CreateTopicRequest extends Trial {
  readonly name: string
  readonly partitions: number
  readonly config: TopicConfigPatch
}

/** As it was made, or would be. */
export interface CreatedTopic {
  readonly name: string
  readonly partitions: number
  readonly config: TopicConfig
}

/**
 * The use cases, as every gateway sees them. Implemented by broker/. Promises reject with BrokerError.
 * `who` asks; what it takes is in access.ts, and what it lacks is FORBIDDEN, before anything is said of what exists.
 */
export interface Broker extends WatchUseCases, StreamUseCases {
  readonly keys: KeyUseCases
  readonly groups: GroupUseCases
  readonly classicGroups: ClassicGroupUseCases
  readonly schemas: SchemaUseCases
  readonly batches: BatchUseCases

  createTopic(who: Principal, request: CreateTopicRequest): Promise<CreatedTopic>
  /** The name of the live topic with that id; null: there is none, or the caller may not read it. @throws BrokerError KEY_REVOKED */
  topicNameOf(who: Principal, id: TopicId): string | null
  /** Names that the caller may read, sorted by code unit. */
  listTopics(who: Principal): string[]
  describeTopic(who: Principal, name: string): Promise<TopicDescription>
  /**
   * Where partitions begin and end, and the first record at or after a time, by partition.
   * @param partition null: all of the topic. @param timestampMs Unix ms, any integer; null: no time is looked for.
   */
  offsetsAt(
    who: Principal,
    name: string,
    partition: number | null,
    timestampMs: bigint | null
  ): Promise<PartitionOffsets[]>
  /** Leader epochs of a topic's partitions. @throws BrokerError KEY_REVOKED, FORBIDDEN, TOPIC_NOT_FOUND */
  leaderEpochs(who: Principal, topic: string): EpochsOf
  /** Another number whenever more is known of the epochs of any topic; 0: none is above 0. */
  readonly leaderEpochChanges: number
  /** @throws BrokerError TOPIC_NOT_FOUND */
  topicConfig(who: Principal, name: string): TopicConfig
  /** @returns what it is then. @fails TOPIC_NOT_FOUND; FIELD_INVALID, FIELD_RANGE: nothing is changed */
  changeTopicConfig(who: Principal, name: string, patch: TopicConfigPatch, trial?: Trial): Promise<TopicConfig>
  /**
   * Gives a topic more partitions, durably. Those that there are keep their records: keys may go to others from then on.
   * @returns what it has then. @fails TOPIC_NOT_FOUND; FIELD_INVALID where they would not be more, or too many in all;
   * FIELD_RANGE
   */
  addPartitions(who: Principal, request: AddPartitionsRequest): Promise<{ name: string; partitions: number }>
  deleteTopic(who: Principal, name: string): Promise<{ name: string; partitions: number }>
  /**
   * Records of a partition below an offset are gone, durably. @param offset 0 to the end of the partition.
   * @returns the offset that it starts at now: that one, or a later one that it had already.
   * @fails TOPIC_NOT_FOUND, PARTITION_RANGE, FIELD_RANGE, DISK_FULL, OVERLOADED, SHARD_DOWN; SHARD_DIED: it may be done
   */
  deleteRecords(who: Principal, name: string, partition: number, offset: bigint): Promise<number>

  submitProduce(who: Principal, topic: string, records: RecordSource, caller: ProduceCaller): SubmitOutcome
  submitRead(who: Principal, read: ReadRequest, caller: ReadCaller): SubmitOutcome
  /**
   * Publishes what was submitted since the last call and delivers the replies that wait. A gateway calls it once after
   * each socket read, or after a round of them; what was submitted is visible to its shard at the end of the tick at the
   * latest, delivered is nothing before.
   */
  turn(): void
  /** Calls back once, in order of asking, when rings had room again. */
  whenRoom(callback: () => void): void
  /** Registers a hook that runs after each delivery of replies: gateways write their gathered answers there. */
  onDelivered(hook: () => void): void

  /** Every producer id with what it has in which partition, durable; by id, then topic and partition. */
  listProducers(who: Principal): Promise<ProducerDescription[]>
  /** Its next use starts afresh. @throws BrokerError PRODUCER_NOT_FOUND */
  forgetProducer(who: Principal, id: string): Promise<void>
  /** Resolves once what has had its time cannot be read any more (D16), or, with cold storage, once it is there. */
  runRetention(who: Principal): Promise<void>
  /**
   * Base offsets of the segments in cold storage, ascending; none of a topic or partition that is not there.
   * @fails NAME_INVALID, SHARD_DOWN
   */
  coldSegments(who: Principal, topic: string, partition: number): Promise<readonly number[]>
  /** Resolves after a pass over all sealed segments. */
  runCompaction(who: Principal): Promise<void>

  /** Who has which copies. */
  replication(who: Principal): Replication

  topicCount(): number
  readiness(): Readiness
  /** What fails for the moment and is tried again while the broker serves, one sentence each. */
  troubles(): string[]
}

/** A step of a start, while it is under way. */
export interface StartReport {
  /** What is being done, for people. */
  readonly message: string
  /** Share of the step that is done, 0 to 1. */
  readonly progress: number
}

export interface Readiness {
  readonly ready: boolean
  /** starting: it will be ready by itself. unavailable: part of it needs somebody, or is tried again now and then. */
  readonly status: 'ready' | 'starting' | 'unavailable' | 'stopping'
  /** Of a start, 0 to 1; null: nothing starts. */
  readonly progress: number | null
  /** One sentence for people; what is missing when not ready. */
  readonly message: string
  /** 'synced' (an ack follows the sync) or 'deferred' (--flush-every-records above 1). */
  readonly durability: 'synced' | 'deferred'
}
