/**
 * What the broker needs of whatever holds the records. `local` is the shards of this process; nothing above this file
 * may know which engine runs. Main thread.
 */
import type { ProduceCaller, ReadCaller, RecordSource, SubmitOutcome } from '../model/requests.ts'
import type { PartitionDescription, Topic } from '../model/topic.ts'

/** A read of one partition that exists. */
export interface EngineRead {
  readonly topic: Topic
  readonly partition: number
  readonly offsetHigh: number
  readonly offsetLow: number
  readonly maxRecords: number
  readonly maxBytes: number
  readonly format: number
}

export interface Engine {
  /** Makes a committed topic usable everywhere; resolves when every owner has it. */
  openTopic(topic: Topic): Promise<void>
  /** Applies a committed configuration. */
  configureTopic(topic: Topic): Promise<void>
  /** After it resolves no append to the topic is acknowledged. */
  dropTopic(topic: Topic): Promise<void>
  /** One entry a partition, in order. */
  describeTopic(topic: Topic): Promise<PartitionDescription[]>
  /**
   * Appends records whose partitions are resolved and valid: record i goes to partitions[i].
   * Both are borrowed until return. The caller is never called before it.
   */
  append(topic: Topic, records: RecordSource, partitions: Uint32Array, caller: ProduceCaller): SubmitOutcome
  read(read: EngineRead, caller: ReadCaller): SubmitOutcome
  /** Makes what was submitted visible and delivers replies. */
  turn(): void
  /** turn(), at the end of this tick at the latest. */
  turnSoon(): void
  whenRoom(callback: () => void): void
  onDelivered(hook: () => void): void
  /** What keeps it from serving, one sentence each; empty when all is well. */
  problems(): string[]
}
