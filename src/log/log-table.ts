/**
 * The partition logs of one shard, found by topic and partition on the hot path and by handle elsewhere.
 * Owned by the shard thread. Logs are made on first use: a topic of 10,000 partitions costs an empty array.
 */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf, rangePlace, rangesOf, type HandleRange } from '../model/handles.ts'
import { limits } from '../model/limits.ts'
import type { ShardTopic, TopicRetention } from '../wire/shard/messages.ts'
import type { Manifest } from './manifest.ts'
import { PartitionLog } from './partition-log.ts'

/** A topic's share of this shard. */
export class TopicLogs {
  readonly firstHandle: number
  #topic: ShardTopic
  segmentBytes = 0
  /** null: what holds for all topics. */
  segmentMs: number | bigint | null = null
  retention: TopicRetention | null = null
  /** Sparse: a hole is a partition without data, or of another shard. */
  readonly logs: (PartitionLog | undefined)[]

  constructor(topic: ShardTopic) {
    this.firstHandle = topic.firstHandle
    this.#topic = topic
    this.logs = []
    this.configure(topic)
  }

  get partitionCount(): number {
    return this.#topic.partitionCount
  }

  /** Its partitions, by handle. */
  get ranges(): HandleRange[] {
    return rangesOf(this.#topic)
  }

  /** A new configuration counts from the next record, and the next retention pass. Partitions never become fewer. */
  configure(topic: ShardTopic): void {
    assert(topic.partitionCount >= this.partitionCount, 'a topic loses no partitions')
    this.#topic = topic
    this.logs.length = topic.partitionCount
    const { segmentBytes, segmentMs, retention } = topic
    this.segmentBytes = Math.min(segmentBytes, limits.segmentBytesHard)
    this.segmentMs = segmentMs ?? null
    this.retention = retention ?? null
  }

  /** The log of a partition below partitionCount; made if it has none yet. */
  log(partition: number): PartitionLog {
    let log = this.logs[partition]
    if (log === undefined) {
      log = new PartitionLog(handleOf(this.#topic, partition))
      log.segmentBytes = this.segmentBytes
      this.logs[partition] = log
    }
    return log
  }
}

/** Partitions of an open topic whose handles are in a row. */
export interface OpenRange extends HandleRange {
  readonly topic: TopicLogs
}

export class LogTable {
  readonly #topics = new Map<number, TopicLogs>()
  /** Partitions of open topics, by handle; null: to be made again. */
  #ranges: OpenRange[] | null = null
  /** Recovered logs whose topic was not opened yet; what stays here is unknown to the store: kept, reported (V4). */
  readonly #unclaimed = new Map<number, PartitionLog>()
  /** The manifest was committed before, by a job or a move: what is not in it may be gone with its topic. */
  hasManifest = false

  topic(firstHandle: number): TopicLogs | undefined {
    return this.#topics.get(firstHandle)
  }

  /** The log of a handle during recovery, made if new. */
  recoveredLog(handle: number): PartitionLog {
    let log = this.#unclaimed.get(handle)
    if (log === undefined) {
      log = new PartitionLog(handle)
      this.#unclaimed.set(handle, log)
    }
    return log
  }

  /** Begins with what a manifest knows. */
  recover({ partitions, commit }: Pick<Manifest, 'partitions' | 'commit'>): void {
    this.hasManifest = commit > 0
    for (const partition of partitions.values()) this.recoveredLog(partition.handle).recoverSettled(partition)
  }

  /** The log of a handle, whether its topic is open or not; undefined: it has none. */
  logOf(handle: number): PartitionLog | undefined {
    const range = this.rangeFrom(handle)
    if (range === undefined || handle < range.firstHandle) return this.#unclaimed.get(handle)
    return range.topic.logs[range.firstPartition + handle - range.firstHandle]
  }

  /** The open topic that has the handle. @cost a binary search. */
  topicOf(handle: number): TopicLogs | undefined {
    const range = this.rangeFrom(handle)
    return range !== undefined && handle >= range.firstHandle ? range.topic : undefined
  }

  /** Partitions of an open topic: those with the handle among them, or the first ones behind it. @cost a binary search. */
  rangeFrom(handle: number): OpenRange | undefined {
    this.#ranges ??= this.#sortedRanges()
    return this.#ranges[rangePlace(this.#ranges, handle)]
  }

  #sortedRanges(): OpenRange[] {
    const ranges: OpenRange[] = []
    for (const topic of this.#topics.values()) for (const range of topic.ranges) ranges.push({ ...range, topic })
    return ranges.sort((a, b) => a.firstHandle - b.firstHandle)
  }

  /** Open topics. */
  topics(): IterableIterator<TopicLogs> {
    return this.#topics.values()
  }

  recoveredLogs(): IterableIterator<PartitionLog> {
    return this.#unclaimed.values()
  }

  /**
   * Opens a topic; its recovered logs become reachable. Doing it again changes nothing (V6: replayed at start).
   * @throws BrokerError NOT_READY if what is settled of it is gone, which is right for deleted topics only.
   */
  open(topic: ShardTopic): void {
    if (this.#topics.has(topic.firstHandle)) return
    const logs = new TopicLogs(topic)
    for (let partition = 0; partition < topic.partitionCount && this.#unclaimed.size > 0; partition++) {
      const log = this.#unclaimed.get(handleOf(topic, partition))
      if (log === undefined) continue
      if (log.isBeheaded) {
        throw new BrokerError('NOT_READY', {
          problem: `the manifest does not have partition handle ${log.handle}, but its slots begin at offset ${log.startOffset}; an operator must decide`
        })
      }
      logs.logs[partition] = log
      this.#unclaimed.delete(log.handle)
    }
    this.#topics.set(topic.firstHandle, logs)
    this.configure(topic)
  }

  /** A new segment_bytes applies from the next roll, more partitions from now on. */
  configure(topic: ShardTopic): void {
    const logs = this.#topics.get(topic.firstHandle)
    if (logs === undefined) return
    logs.configure(topic)
    this.#ranges = null
    for (const log of logs.logs) if (log !== undefined) log.segmentBytes = logs.segmentBytes
  }

  /** After this no append to that incarnation is acknowledged (V6). Its bytes stay in the slots until they are settled. */
  drop(firstHandle: number): void {
    this.#topics.delete(firstHandle)
    this.#ranges = null
  }

  /** Producers that main has forgotten. */
  forgetProducers(numbers: readonly number[]): void {
    for (const log of this.#openLogs()) log.producers.forget(numbers)
  }

  /**
   * Drops what recovery found of producers that main does not know any more, and of all in partitions that no topic
   * has: their handles are never written again.
   */
  keepProducers(isKnown: (number: number) => boolean): void {
    for (const log of this.#openLogs()) log.producers.keep(isKnown)
    for (const log of this.#unclaimed.values()) log.producers.keep(() => false)
  }

  /** Logs of open topics. */
  openLogs(): PartitionLog[] {
    return [...this.#openLogs()]
  }

  *#openLogs(): Generator<PartitionLog> {
    for (const { logs } of this.#topics.values()) for (const log of logs) if (log !== undefined) yield log
  }

  /** Handles with data whose topic nobody opened. Tombstones of deleted topics are among them. */
  unclaimedHandles(): number[] {
    return [...this.#unclaimed.keys()]
  }
}
