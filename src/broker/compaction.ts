/**
 * Compaction of topics whose policy says so: from time to time, and when asked. Main thread: it says what is to be done
 * and in what order; a background thread does the work, the settler makes it count, the shard adopts it (S1, S2).
 *
 *   find what is dirty (settler) ─▶ one partition after another: compact (background) ─▶ replace (settler) ─▶ adopt (shard)
 */
import type { MaintenanceJobs } from '../background/jobs.ts'
import type { BackgroundPool } from '../background/pool.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Topic } from '../model/topic.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import type { CompactablePartition } from '../wire/shard/settle.ts'
import type { StructuralTurns } from './structural-turns.ts'

export interface CompactionParts {
  readonly catalog: Catalog
  readonly shards: ShardSet
  readonly pool: BackgroundPool<MaintenanceJobs>
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
  bytesRead: number
  bytesWritten: number
  failures: number
}

/** Share of a partition's sealed bytes that must be new for a pass that nobody asked for: as in Kafka. */
const DIRTY_SHARE_MIN = 0.5

export class Compaction {
  readonly #parts: CompactionParts
  readonly counts: CompactionCounts = {
    passes: 0,
    partitions: 0,
    recordsDropped: 0,
    bytesRead: 0,
    bytesWritten: 0,
    failures: 0
  }
  #timer: NodeJS.Timeout | null = null
  #isStopped = false
  /** What failed in the last pass, one sentence; null: nothing. */
  problem: string | null = null
  /** Newest sealed offset and when it was gone over, by handle: nothing new since then, nothing to do. */
  readonly #seen = new Map<number, { readonly key: string; readonly atMs: number }>()

  constructor(parts: CompactionParts) {
    this.#parts = parts
  }

  /** Begins to look from time to time. */
  start(): void {
    this.#timer = setInterval(() => {
      this.#enqueue(false).catch((error: unknown) =>
        this.#parts.logger.warn({ err: error }, 'a compaction pass failed')
      )
    }, this.#parts.intervalMs)
    this.#timer.unref()
  }

  /** No pass begins any more; the one under way ends after its partition. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#parts.turns.idle()
  }

  /** A pass over everything that is sealed, settled or not. @fails DISK_FULL, SHARD_DOWN, OVERLOADED */
  runAll(): Promise<void> {
    return this.#enqueue(true)
  }

  #enqueue(isAsked: boolean): Promise<void> {
    return this.#parts.turns.run(() => this.#pass(isAsked))
  }

  async #pass(isAsked: boolean): Promise<void> {
    const { catalog, shards } = this.#parts
    const topics = catalog.topics.filter(topic => topic.config.cleanup_policy !== 'delete')
    if (topics.length === 0 || this.#isStopped) return
    this.counts.passes++
    // Only what is settled is compacted: what was asked for includes what lies in slots.
    if (isAsked) await shards.settleAll()
    const problems: string[] = []
    for (const { shard } of shards.links()) {
      const wanted = topics.map(({ firstHandle, partitionCount }) => {
        return { firstHandle, partitionCount, dirtyShareMin: isAsked ? 0 : DIRTY_SHARE_MIN }
      })
      for (const partition of await shards.settler.findCompactable(shard, wanted)) {
        if (this.#isStopped) return
        const problem = await this.#compact(shard, partition, topics, isAsked)
        if (problem !== null) problems.push(problem)
      }
    }
    this.problem = problems[0] ?? null
    if (isAsked && problems.length > 0) {
      throw new BrokerError('OVERLOADED', {
        what: 'compaction, which could not finish (the log says why),',
        limit: 'the disk'
      })
    }
  }

  /** @returns what kept it from being done. */
  async #compact(
    shard: number,
    { handle, key, bytes, partition }: CompactablePartition,
    topics: readonly Topic[],
    isAsked: boolean
  ): Promise<string | null> {
    const { pool, clock, dataDirectory, mapBytes, shards, logger } = this.#parts
    const topic = topics.find(
      ({ firstHandle, partitionCount }) => handle >= firstHandle && handle < firstHandle + partitionCount
    )
    if (topic === undefined) return null
    const tombstoneRetentionMs = topic.config.tombstone_retention_ms
    const seen = this.#seen.get(handle)
    const isDue = seen === undefined || clock.nowMs() - seen.atMs > Number(tombstoneRetentionMs)
    if (!isAsked && seen?.key === key && !isDue) return null
    const of = { topic: topic.name, partition: handle - topic.firstHandle }
    const { freeBytes } = this.#parts.space
    if (freeBytes < bytes + this.#parts.settleBytes) {
      return this.#failed(of, `it may need ${bytes} bytes beside what settling needs, and ${freeBytes} are free`)
    }
    const nowMs = clock.nowMs()
    const segmentBytes = Math.min(topic.config.segment_bytes, limits.segmentBytesHard)
    const { placementEpoch } = shards
    const place = { dataDirectory, shard, placementEpoch }
    const value = { ...place, partition, tombstoneRetentionMs, segmentBytes, mapBytes, nowMs }
    const result = await pool.run('compactPartition', value)
    this.counts.partitions++
    this.counts.bytesRead += result.bytesRead
    this.counts.bytesWritten += result.bytesWritten
    if (result.problem !== null) return this.#failed(of, result.problem)
    this.#seen.set(handle, { key, atMs: nowMs })
    if (result.replacement === null) return null
    const reply = await shards.settler.replace(shard, result.replacement)
    if (reply === null) return this.#failed(of, 'the shard or the settler ended')
    if (reply.problem !== null) return this.#failed(of, reply.problem)
    // The partition changed meanwhile: the next pass sees what it is now.
    if (!reply.isCommitted) this.#seen.delete(handle)
    else this.counts.recordsDropped += result.recordsDropped
    const { recordsRead, recordsDropped } = result
    logger.debug({ ...of, recordsRead, recordsDropped, isCommitted: reply.isCommitted }, 'a partition was compacted')
    return null
  }

  #failed(of: { readonly topic: string; readonly partition: number }, problem: string): string {
    this.counts.failures++
    this.#parts.logger.warn({ ...of, cause: problem }, 'a partition could not be compacted; it is tried again')
    return `compaction of ${of.topic}/${of.partition} fails: ${problem}`
  }
}
