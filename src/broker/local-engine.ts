/**
 * The local engine: topics and records in the shards of this process. Main thread.
 * Owns the list of topics that shards must have open: a shard that starts again is given all of them.
 */
import { assert } from '../base/assert.ts'
import type { ByteBudget } from '../base/byte-budget.ts'
import type { BatchCaller } from '../model/batches.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { EpochsOf } from '../model/leader-epochs.ts'
import { limits } from '../model/limits.ts'
import { unreplicated, type Replication } from '../model/replication.ts'
import { submitOutcomes, type SubmitOutcome, type Watch, type WatchCaller } from '../model/requests.ts'
import type { PartitionDescription, PartitionOffsets, Topic } from '../model/topic.ts'
import type { LeaderEpochs } from '../shards/leader-epochs.ts'
import { PRODUCERS_PER_MESSAGE } from '../shards/open-shard.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { readU64 } from '../wire/primitives/u64.ts'
import { DESCRIBED_ENTRY_BYTES, REPLY_HEADER_BYTES, replyTypes, type ShardTopic } from '../wire/shard/messages.ts'
import { CheckedAppend } from './checked-append.ts'
import type {
  AppendCaller,
  Engine,
  EngineAppend,
  EngineBatch,
  EnginePosition,
  EngineRead,
  EngineReadCaller,
  EngineWatch
} from './engine.ts'
import { LocalAppend } from './local-append.ts'
import { appendBatch } from './local-batch.ts'
import { LocalWatch } from './local-watch.ts'
import { partitionOffsets } from './partition-offsets.ts'
import { listProducers } from './producer-positions.ts'
import { EngineReadRequest } from './read-answers.ts'
import { deleteRecords } from './record-deletion.ts'
import { hasOneShard } from './shard-parts.ts'

/** Topics open on the shards, by first handle. Shared by the engine, which changes it, and the shard set, which reads it. */
export class OpenTopics {
  readonly #topics = new Map<number, ShardTopic>()

  set(topic: Topic): ShardTopic {
    const { firstHandle, partitionCount, added, config } = topic
    const { segment_ms: segmentMs } = config
    const entry = {
      firstHandle,
      partitionCount,
      ...(added !== undefined && { added }),
      segmentBytes: Math.min(config.segment_bytes, limits.segmentBytesHard),
      ...(segmentMs !== null && { segmentMs }),
      retention: {
        retentionMs: config.retention_ms,
        retentionBytes: config.retention_bytes,
        cleanupPolicy: config.cleanup_policy
      }
    }
    this.#topics.set(firstHandle, entry)
    return entry
  }

  delete(topic: Topic): void {
    this.#topics.delete(topic.firstHandle)
  }

  all(): ShardTopic[] {
    return [...this.#topics.values()]
  }
}

export class LocalEngine implements Engine {
  readonly #shards: ShardSet
  readonly #open: OpenTopics
  readonly #epochs: LeaderEpochs
  readonly #append: LocalAppend
  readonly #oversized: ByteBudget

  constructor(shards: ShardSet, open: OpenTopics, epochs: LeaderEpochs, oversized: ByteBudget) {
    this.#shards = shards
    this.#open = open
    this.#epochs = epochs
    this.#oversized = oversized
    this.#append = new LocalAppend(shards, oversized)
  }

  async openTopic(topic: Topic): Promise<void> {
    const entry = this.#open.set(topic)
    await this.#shards.broadcast(link => link.control(id => ({ kind: 'open', id, topics: [entry] })))
  }

  async configureTopic(topic: Topic): Promise<void> {
    const entry = this.#open.set(topic)
    await this.#shards.broadcast(link => link.control(id => ({ kind: 'configure', id, topic: entry })))
  }

  async dropTopic(topic: Topic): Promise<void> {
    this.#open.delete(topic)
    const { firstHandle, partitionCount, added } = topic
    const dropped = { firstHandle, partitionCount, ...(added !== undefined && { added }) }
    await this.#shards.broadcast(link => link.control(id => ({ kind: 'drop', id, topic: dropped })))
    this.#epochs.forget(topic)
  }

  async describeTopic(topic: Topic): Promise<PartitionDescription[]> {
    const partitions: PartitionDescription[] = Array.from({ length: topic.partitionCount }, (_, id) => ({
      id,
      start_offset: 0,
      end_offset: 0,
      segment_count: 1,
      size_bytes: 0
    }))
    // Partitions lie on shards in turn: a topic with few of them does not need every shard to be up.
    const owners = new Set(partitions.map(({ id }) => shardOf(handleOf(topic, id), this.#shards.shardCount)))
    await Promise.all([...owners].map(shard => this.#describeOn(shard, topic, partitions)))
    return partitions
  }

  offsetsAt(topic: Topic, partition: number | null, timestampMs: number | null): Promise<PartitionOffsets[]> {
    return partitionOffsets(this.#shards, topic, partition, timestampMs)
  }

  append(append: EngineAppend, caller: AppendCaller): SubmitOutcome {
    return this.#append.append(append, caller)
  }

  appendBatch(batch: EngineBatch, caller: BatchCaller): SubmitOutcome {
    return appendBatch(this.#shards, this.#oversized, batch, caller)
  }

  hasOneOwner(append: EngineAppend): boolean {
    return hasOneShard(append, this.#shards.shardCount)
  }

  appendChecked(append: EngineAppend, caller: AppendCaller, lateRefusal: () => BrokerError | null): void {
    new CheckedAppend(
      { shards: this.#shards, append: this.#append, oversized: this.#oversized, lateRefusal },
      append,
      caller
    ).begin()
  }

  listProducers(): Promise<{ positions: EnginePosition[]; isWhole: boolean }> {
    return listProducers(this.#shards)
  }

  async forgetProducers(numbers: readonly number[]): Promise<void> {
    for (let from = 0; from < numbers.length; from += PRODUCERS_PER_MESSAGE) {
      const part = numbers.slice(from, from + PRODUCERS_PER_MESSAGE)
      await this.#shards.broadcast(link => link.control(id => ({ kind: 'producers-forgotten', id, numbers: part })))
    }
  }

  async runRetention(): Promise<void> {
    await this.#shards.broadcast(link => link.control(id => ({ kind: 'run-retention', id })))
    this.#refuseIfDown()
  }

  /** What was asked of all shards was not done by those that are down. @throws BrokerError SHARD_DOWN, NOT_READY */
  #refuseIfDown(): void {
    const down = this.#shards.firstDown()
    if (down !== null) throw this.#shards.refusal(down)
  }

  deleteRecords(topic: Topic, partition: number, offset: number): Promise<number> {
    return deleteRecords(this.#shards, topic, partition, offset)
  }

  replication(): Replication {
    return unreplicated
  }

  leaderEpochs(topic: Topic): EpochsOf {
    return this.#epochs.of(topic)
  }

  get leaderEpochChanges(): number {
    return this.#epochs.changes
  }

  read(read: EngineRead, caller: EngineReadCaller): SubmitOutcome {
    const handle = handleOf(read.topic, read.partition)
    const link = this.#shards.linkOf(handle)
    if (link === null) {
      const error = this.#shards.refusal(shardOf(handle, this.#shards.shardCount))
      queueMicrotask(() => caller.onReadFailed(error))
      return submitOutcomes.taken
    }
    return link.sendRead({ ...read, handle }, new EngineReadRequest(caller, read.topic.name, link))
      ? submitOutcomes.taken
      : submitOutcomes.full
  }

  watch(watch: EngineWatch, caller: WatchCaller): Watch {
    const request = new LocalWatch(this.#shards, watch, caller)
    request.send()
    return request
  }

  turn(): void {
    this.#shards.turn()
  }

  publishSoon(): void {
    this.#shards.publishSoon()
  }

  whenRoom(callback: () => void): void {
    this.#shards.whenRoom(callback)
  }

  onDelivered(hook: () => void): void {
    this.#shards.onDelivered(hook)
  }

  troubles(): string[] {
    return this.#shards
      .counters()
      .flatMap(({ shard, counters }) => [
        ...(counters.settlingFailing > 0 ? [`settling of shard ${shard} is refused by the disk`] : []),
        ...(counters.retentionFailing > 0 ? [`retention of shard ${shard} is refused by the disk`] : []),
        ...(counters.damagedRuns > 0 ? [damageTrouble(shard, counters.damagedRuns)] : [])
      ])
  }

  problems(): string[] {
    return this.#shards.problems()
  }

  progress(): number | null {
    return this.#shards.progress()
  }

  #describeOn(shard: number, topic: Topic, partitions: PartitionDescription[]): Promise<void> {
    return new Promise((resolve, reject) => {
      const request: PendingRequest = {
        endPosition: -1,
        onReply: (type, bytes, start, end, isLast) => {
          assert(type === replyTypes.described, 'a describe is answered by entries')
          for (let at = start + REPLY_HEADER_BYTES; at < end; at += DESCRIBED_ENTRY_BYTES)
            readEntry(bytes, at, partitions)
          if (isLast) resolve()
        },
        onFailure: reject
      }
      const send = (): void => {
        // Looked up at each attempt: a shard that died while this waited has another link, or none.
        const link = this.#shards.link(shard)
        if (link === null) reject(this.#shards.refusal(shard))
        else if (link.ask({ type: 'describe', numbers: [topic.firstHandle, topic.partitionCount] }, request))
          this.#shards.publishSoon()
        else this.#shards.whenRoom(send)
      }
      send()
    })
  }
}

/** Said until the shard starts anew: somebody has to look. */
function damageTrouble(shard: number, runCount: number): string {
  return `shard ${shard} put ${runCount} damaged or unreadable range(s) of records aside; the log says which`
}

function readEntry(bytes: Buffer, at: number, partitions: PartitionDescription[]): void {
  const id = bytes.readUInt32BE(at)
  // The topic has grown since it was asked about.
  if (id >= partitions.length) return
  partitions[id] = {
    id,
    start_offset: readU64(bytes, at + 8),
    end_offset: readU64(bytes, at + 16),
    segment_count: bytes.readUInt32BE(at + 4),
    size_bytes: readU64(bytes, at + 24)
  }
}
