/**
 * Compaction of topics whose policy says so: from time to time, and when asked. Main thread: it says what is to be done
 * and in what order; a background thread does the work, the settler makes it count, the shard adopts it (S1, S2).
 *
 *   find what is dirty (settler) ─▶ one partition after another: compact (background) ─▶ replace (settler) ─▶ adopt (shard)
 */
import type { CompactPartitionResult, CompactPartitionValue } from '../background/compaction.ts'
import type { MaintenanceJobs } from '../background/jobs.ts'
import type { BackgroundPool } from '../background/pool.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import { BrokerError } from '../model/errors.ts'
import { rangesOf } from '../model/handles.ts'
import { limits } from '../model/limits.ts'
import type { CompactedFigures } from '../model/metrics.ts'
import { DIRTY_SHARE_MIN, type Topic } from '../model/topic.ts'
import type { SettlerThread } from '../shards/settler-thread.ts'
import type { CompactablePartition } from '../wire/shard/settle.ts'
import { DroppedRecords } from './dropped-records.ts'
import type { StructuralTurns } from './structural-turns.ts'

/** What compaction needs of the shards. */
export interface CompactedShards {
  readonly placementEpoch: number
  readonly settler: Pick<SettlerThread, 'findCompactable' | 'replace'>
  links(): readonly { readonly shard: number }[]
  settleAll(): Promise<void>
  /** A shard that is not ready; null: all are. */
  firstDown(): number | null
  refusal(shard: number): BrokerError
}

export interface CompactionParts {
  readonly catalog: Pick<Catalog, 'topics' | 'meaningOf'>
  readonly shards: CompactedShards
  readonly pool: Pick<BackgroundPool<MaintenanceJobs>, 'run'>
  readonly turns: StructuralTurns
  readonly clock: Clock
  readonly logger: Logger
  /** Absolute. */
  readonly dataDirectory: string
  readonly intervalMs: number
  readonly mapBytes: number
  readonly space: { readonly freeBytes: number }
  /** Room that settling may need: a pass leaves it free. */
  readonly settleBytes: number
}

/** What passes did since the start, for metrics. */
export interface CompactionCounts {
  passes: number
  partitions: number
  recordsDropped: number
  /** In every pass that went over them. */
  opaqueBatches: number
  bytesRead: number
  bytesWritten: number
  failures: number
}

const nothingDone = {
  replacement: null,
  recordsRead: 0,
  recordsDropped: 0,
  opaqueBatches: 0,
  bytesRead: 0,
  bytesWritten: 0,
  isDamaged: false
}

/** Why something was left out, where only the log may say it: it may name files. */
const seeLog = 'the log says why'

export class Compaction {
  readonly #parts: CompactionParts
  readonly counts: CompactionCounts = {
    passes: 0,
    partitions: 0,
    recordsDropped: 0,
    opaqueBatches: 0,
    bytesRead: 0,
    bytesWritten: 0,
    failures: 0
  }
  /** When a pass last left nothing out, Unix ms; null: none did. */
  lastDoneMs: number | null = null
  readonly #dropped = new DroppedRecords()
  #timer: NodeJS.Timeout | null = null
  #isStopped = false
  /** What failed in the last pass, one sentence for anybody: what may name files is in the log. null: nothing. */
  problem: string | null = null
  /** Newest sealed offset and when it was gone over, by handle: nothing new since then, nothing to do. */
  readonly #seen = new Map<number, { readonly key: string; readonly atMs: number }>()
  /** What was said in the log of partitions that could not be compacted, by handle: the same is not said again. */
  readonly #told = new Map<number, string>()

  constructor(parts: CompactionParts) {
    this.#parts = parts
  }

  /** Begins to look from time to time. */
  start(): void {
    let isWaiting = false
    this.#timer = setInterval(() => {
      // A pass that takes longer than the interval is not followed by a line of others.
      if (isWaiting) return
      isWaiting = true
      this.#enqueue(false)
        .catch((error: unknown) => this.#parts.logger.warn({ err: error }, 'a compaction pass failed'))
        .finally(() => (isWaiting = false))
    }, this.#parts.intervalMs)
    this.#timer.unref()
  }

  /** No pass begins any more; the one under way ends after its partition. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#parts.turns.idle()
  }

  /**
   * A pass over everything that is sealed, settled or not.
   * @fails DISK_FULL, SHARD_DOWN, OVERLOADED, STOPPING; COMPACTION_INCOMPLETE says what was left out
   */
  runAll(): Promise<void> {
    return this.#enqueue(true)
  }

  /** What compactions of a partition dropped since the start; null: nothing. */
  droppedOf(topic: Topic, partition: number): CompactedFigures | null {
    return this.#dropped.of(topic.id, partition)
  }

  #enqueue(isAsked: boolean): Promise<void> {
    return this.#parts.turns.run(() => this.#pass(isAsked))
  }

  async #pass(isAsked: boolean): Promise<void> {
    const { catalog, shards } = this.#parts
    const topics = catalog.topics.filter(topic => topic.config.cleanup_policy !== 'delete')
    const problems: string[] = []
    const found = new Set<number>()
    if (topics.length > 0 && !this.#isStopped) {
      this.counts.passes++
      // Only what is settled is compacted: what was asked for includes what lies in slots.
      if (isAsked) await shards.settleAll()
      for (const { shard } of shards.links()) {
        const partitions = await this.#find(shard, topics, isAsked)
        if (partitions === null) problems.push(`all of shard ${shard}: ${seeLog}`)
        for (const partition of partitions ?? []) {
          if (this.#isStopped) break
          found.add(partition.handle)
          const problem = await this.#compact(shard, partition, isAsked)
          if (problem !== null) problems.push(problem)
        }
      }
    }
    if (this.#isStopped) return refuseIfAsked(isAsked, new BrokerError('STOPPING'))
    const left = leftOut(problems)
    this.problem = left === null ? null : `compaction leaves out ${left}`
    this.#forgetTold()
    this.#dropped.keep(catalog.topics)
    if (left !== null) return refuseIfAsked(isAsked, new BrokerError('COMPACTION_INCOMPLETE', { left }))
    const down = shards.firstDown()
    if (down !== null) return refuseIfAsked(isAsked, shards.refusal(down))
    this.lastDoneMs = this.#parts.clock.nowMs()
    // Those of deleted topics are never found again.
    for (const handle of this.#seen.keys()) if (!found.has(handle)) this.#seen.delete(handle)
  }

  /** What is not compacted any more has nothing to be told of. */
  #forgetTold(): void {
    for (const handle of this.#told.keys()) if (this.#placeOf(handle) === null) this.#told.delete(handle)
  }

  /** A partition that is to be compacted as its topic is now; null: its topic is deleted, or not compacted any more. */
  #placeOf(handle: number): { readonly topic: Topic; readonly partition: number } | null {
    const meaning = this.#parts.catalog.meaningOf(handle)
    return meaning.kind === 'live' && meaning.topic.config.cleanup_policy !== 'delete' ? meaning : null
  }

  /** Partitions that may be compacted; null: it cannot be said, which does not keep the other shards from theirs. */
  async #find(
    shard: number,
    topics: readonly Topic[],
    isAsked: boolean
  ): Promise<readonly CompactablePartition[] | null> {
    const dirtyShareMin = isAsked ? 0 : DIRTY_SHARE_MIN
    const wanted = topics.flatMap(topic => rangesOf(topic).map(range => ({ ...range, dirtyShareMin })))
    try {
      return await this.#parts.shards.settler.findCompactable(shard, wanted)
    } catch (error) {
      this.counts.failures++
      this.#parts.logger.warn({ shard, err: error }, 'what to compact on a shard cannot be found; it is tried again')
      return null
    }
  }

  /** @returns what kept it from being done. */
  async #compact(
    shard: number,
    { handle, key, bytes, partition }: CompactablePartition,
    isAsked: boolean
  ): Promise<string | null> {
    const { catalog, clock, dataDirectory, mapBytes, shards, logger } = this.#parts
    const found = this.#placeOf(handle)
    if (found === null) return null
    const { topic } = found
    const tombstoneRetentionMs = topic.config.tombstone_retention_ms
    const seen = this.#seen.get(handle)
    const isDue = seen === undefined || clock.nowMs() - seen.atMs > Number(tombstoneRetentionMs)
    if (!isAsked && seen?.key === key && !isDue) return null
    const of = { handle, topic: topic.name, partition: found.partition }
    const { freeBytes } = this.#parts.space
    if (freeBytes < bytes + this.#parts.settleBytes) {
      const cause = `it may need ${bytes} bytes beside what settling needs, and ${freeBytes} are free`
      return this.#failed(of, cause, 'the disk has no room for it')
    }
    const nowMs = clock.nowMs()
    const segmentBytes = Math.min(topic.config.segment_bytes, limits.segmentBytesHard)
    const { placementEpoch } = shards
    const place = { dataDirectory, shard, placementEpoch }
    const value = { ...place, partition, tombstoneRetentionMs, segmentBytes, mapBytes, nowMs }
    const result = await this.#run(value)
    if (result === null) return null
    this.counts.partitions++
    this.counts.opaqueBatches += result.opaqueBatches
    this.counts.bytesRead += result.bytesRead
    this.counts.bytesWritten += result.bytesWritten
    // Its files are taken away under it.
    if (result.problem !== null && catalog.meaningOf(handle).kind !== 'live') return null
    if (result.problem !== null) return this.#failed(of, result.problem, result.isDamaged ? result.problem : seeLog)
    this.#seen.set(handle, { key, atMs: nowMs })
    if (result.replacement === null) {
      this.#works(of)
      return null
    }
    const reply = await shards.settler.replace(shard, result.replacement)
    if (reply === null) return this.#failed(of, 'the shard or the settler ended', seeLog)
    if (reply.problem !== null) return this.#failed(of, reply.problem, seeLog)
    // The partition changed meanwhile: the next pass sees what it is now.
    if (!reply.isCommitted) this.#seen.delete(handle)
    else this.#countDropped(topic, of.partition, result.recordsDropped)
    this.#works(of)
    const { recordsRead, recordsDropped, opaqueBatches } = result
    const { partition: number } = of
    logger.debug(
      {
        topic: topic.name,
        partition: number,
        recordsRead,
        recordsDropped,
        opaqueBatches,
        isCommitted: reply.isCommitted
      },
      'a partition was compacted'
    )
    return null
  }

  #countDropped(topic: Topic, partition: number, records: number): void {
    this.counts.recordsDropped += records
    if (records > 0) this.#dropped.add(topic.id, partition, records)
  }

  /** Null: the broker stops. What a thread died of is this partition's problem alone. */
  async #run(value: CompactPartitionValue): Promise<CompactPartitionResult | null> {
    try {
      return await this.#parts.pool.run('compactPartition', value)
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      if (error.code !== 'STOPPING') return { ...nothingDone, problem: `its thread: ${error.message}` }
      this.#isStopped = true
      return null
    }
  }

  /** Said in the log once, until something else is wrong. @param why for anybody. */
  #failed({ handle, topic, partition }: PartitionName, cause: string, why: string): string {
    this.counts.failures++
    // What the numbers in a cause are changes from pass to pass.
    const told = why === seeLog ? cause : why
    if (this.#told.get(handle) !== told) {
      this.#parts.logger.warn({ topic, partition, cause }, 'a partition could not be compacted; it is tried again')
      this.#told.set(handle, told)
    }
    return `${topic}/${partition}: ${why}`
  }

  #works({ handle, topic, partition }: PartitionName): void {
    if (this.#told.delete(handle)) this.#parts.logger.info({ topic, partition }, 'a partition can be compacted again')
  }
}

interface PartitionName {
  readonly handle: number
  readonly topic: string
  readonly partition: number
}

/** What a pass left out, the first of it by name; null: nothing. */
function leftOut(problems: readonly string[]): string | null {
  const [first] = problems
  if (first === undefined) return null
  return problems.length === 1 ? first : `${first}; and ${problems.length - 1} more`
}

/** A pass that nobody asked for has nobody to tell. */
function refuseIfAsked(isAsked: boolean, error: BrokerError): void {
  if (isAsked) throw error
}
