/**
 * Tiered storage: segments beyond a topic's retention limits go to cold storage instead of being dropped. From time to time,
 * and when asked. Main thread: it says what is to be done and in what order; background threads copy and read back, the
 * settler makes it count, the shard adopts it, and only then local files go (S1, S2).
 *
 *   find what is due (settler) ─▶ store and read back (background) ─▶ replace (settler) ─▶ adopt (shard) ─▶ grace ─▶ remove
 *
 * The other way round for what nothing names any more: the settler forgets an object only after it is gone.
 */
import type { ColdPlace } from '../background/cold.ts'
import type { ColdJobs } from '../background/jobs.ts'
import type { BackgroundPool } from '../background/pool.ts'
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import { checkTopicName } from '../control/topic-rules.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf, rangesOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { Topic } from '../model/topic.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import type { TierablePartition, TieredRange } from '../wire/shard/cold.ts'
import { partitionOffsets } from './partition-offsets.ts'
import type { StructuralTurns } from './structural-turns.ts'

export interface TieringParts {
  readonly catalog: Catalog
  readonly shards: ShardSet
  readonly pool: BackgroundPool<ColdJobs>
  readonly turns: StructuralTurns
  readonly clock: Clock
  readonly logger: Logger
  /** null: no cold storage is configured, and nothing is ever done. */
  readonly place: ColdPlace | null
  readonly intervalMs: number
}

/** What passes did since the start, for metrics. */
export interface TieringCounts {
  passes: number
  segments: number
  bytes: number
  removedObjects: number
  failures: number
}

/** Segments of one commit: each commit tells the shard of all segments behind them. */
const SEGMENTS_PER_JOB = 8

export class Tiering {
  readonly counts: TieringCounts = { passes: 0, segments: 0, bytes: 0, removedObjects: 0, failures: 0 }
  readonly #parts: TieringParts
  #timer: NodeJS.Timeout | null = null
  #isWaiting = false
  #isStopped = false
  #hasSwept = false
  /** What failed in this pass. */
  #failure: string | null = null
  /** The store refused in this pass: it is not asked again before the next. */
  #isUnavailable = false
  /** When a pass last left nothing out, Unix ms; null: none did. */
  lastDoneMs: number | null = null
  /** What failed in the last pass, one sentence; null: nothing. */
  problem: string | null = null

  constructor(parts: TieringParts) {
    this.#parts = parts
  }

  get isOn(): boolean {
    return this.#parts.place !== null
  }

  /** Begins to look from time to time. */
  start(): void {
    const { intervalMs, logger } = this.#parts
    if (!this.isOn) return
    this.#timer = setInterval(() => {
      if (this.#isWaiting) return
      this.#enqueue(false).catch((error: unknown) => logger.warn({ err: error }, 'a pass of tiering failed'))
    }, intervalMs)
    this.#timer.unref()
  }

  /** No pass begins any more; the one under way ends after its job. */
  async stop(): Promise<void> {
    this.#isStopped = true
    if (this.#timer !== null) clearInterval(this.#timer)
    await this.#parts.turns.idle()
  }

  /** A pass over everything that is sealed, settled or not. @fails DISK_FULL, SHARD_DOWN, OVERLOADED */
  async runAll(): Promise<void> {
    if (this.isOn) await this.#enqueue(true)
  }

  /** Base offsets of the cold segments, ascending; none of what is not there. @fails NAME_INVALID, SHARD_DOWN */
  async coldSegments(name: string, partition: number): Promise<readonly number[]> {
    const { catalog, shards, logger } = this.#parts
    checkTopicName(name)
    const topic = catalog.topicNamed(name)
    if (topic === undefined || partition >= topic.partitionCount) return []
    const handle = handleOf(topic, partition)
    const shard = shardOf(handle, shards.shardCount)
    const [offsets] = await partitionOffsets(shards, topic, partition, null)
    try {
      return await shards.settler.findCold(shard, handle, offsets?.earliest ?? 0)
    } catch (error) {
      logger.warn({ shard, err: error }, 'the cold segments of a partition could not be listed')
      throw shards.refusal(shard)
    }
  }

  async #enqueue(isAsked: boolean): Promise<void> {
    this.#isWaiting = true
    await this.#parts.turns.run(async () => {
      this.#isWaiting = false
      await this.#pass(isAsked)
    })
  }

  async #pass(isAsked: boolean): Promise<void> {
    const { catalog, shards, place, logger } = this.#parts
    if (this.#isStopped || place === null) return
    this.counts.passes++
    // Only what is settled can be moved: what was asked for includes what lies in slots.
    if (isAsked) await shards.settleAll()
    const ranges = catalog.topics.filter(isTiered).flatMap(tieredRanges)
    this.#isUnavailable = false
    this.#failure = null
    for (const { shard } of shards.links()) {
      try {
        const found = await shards.settler.findTierable(shard, ranges)
        if (found.objects.length > 0) await this.#remove(place, shard, found.objects)
        for (const partition of found.partitions) await this.#tierPartition(place, shard, partition)
      } catch (error) {
        // One shard that cannot say what it has keeps no other from moving its own.
        if (this.#isStopped) return
        this.counts.failures++
        this.#failure = `moving segments of shard ${shard} to cold storage fails and is tried again; the log says why`
        logger.warn({ shard, err: error }, 'segments could not be moved to cold storage; it is tried again')
      }
    }
    if (this.#failure === null && this.problem !== null) logger.info({}, 'tiering works again')
    this.problem = this.#failure
    if (this.problem === null) this.lastDoneMs = this.#parts.clock.nowMs()
    if (isAsked && this.problem !== null) {
      const what = 'moving segments to cold storage, which could not finish (the log says why),'
      throw new BrokerError('OVERLOADED', { what, limit: 'the store' })
    }
  }

  async #tierPartition(
    place: ColdPlace,
    shard: number,
    { handle, baseOffsets, partition }: TierablePartition
  ): Promise<void> {
    const { pool, shards, logger } = this.#parts
    const { placementEpoch } = shards
    for (let from = 0; from < baseOffsets.length; from += SEGMENTS_PER_JOB) {
      if (this.#isStopped || this.#isUnavailable) return
      await this.#sweepOnce(place)
      const part = baseOffsets.slice(from, from + SEGMENTS_PER_JOB)
      const result = await pool.run('tierSegments', { place, shard, placementEpoch, partition, baseOffsets: part })
      if (result.problem !== null) this.#failed(handle, result.problem)
      this.#isUnavailable = result.isUnavailable
      if (result.replacement === null) continue
      const reply = await shards.settler.replace(shard, result.replacement)
      if (reply === null || reply.problem !== null)
        return this.#failed(handle, reply?.problem ?? 'the shard or the settler ended')
      // The partition changed meanwhile: the next pass sees what it is now, and stores the same objects again.
      if (!reply.isCommitted) return this.#takeBack(place, handle, result.keys)
      this.counts.segments += result.segments
      this.counts.bytes += result.bytes
      const { topic, partition: number } = this.#nameOf(handle)
      logger.debug({ topic, partition: number, segments: result.segments }, 'segments are in cold storage')
    }
  }

  /** Objects that the manifest will never name, because their topic was deleted while they were stored. */
  async #takeBack(place: ColdPlace, handle: number, keys: readonly string[]): Promise<void> {
    const { catalog, pool, logger } = this.#parts
    if (catalog.meaningOf(handle).kind === 'live') return
    const { problem } = await pool.run('removeObjects', { place, keys })
    if (problem !== null)
      logger.warn({ cause: problem, keys: keys.length }, 'objects of a deleted topic are left in cold storage')
  }

  /** What puts of the last run left behind: once, before the first put. That it fails stops nothing. */
  async #sweepOnce(place: ColdPlace): Promise<void> {
    if (this.#hasSwept) return
    this.#hasSwept = true
    const { problem } = await this.#parts.pool.run('sweepCold', { place })
    if (problem !== null) this.#parts.logger.warn({ cause: problem }, 'cold storage could not be swept')
  }

  /** Objects that are gone are forgotten; the others are tried again. */
  async #remove(place: ColdPlace, shard: number, keys: readonly string[]): Promise<void> {
    const { pool, shards, logger } = this.#parts
    const { removed, problem } = await pool.run('removeObjects', { place, keys })
    if (removed.length > 0) await shards.settler.forgetObjects(shard, removed)
    this.counts.removedObjects += removed.length
    if (problem === null) return
    this.counts.failures++
    logger.warn({ cause: problem }, 'objects could not be removed from cold storage; it is tried again')
  }

  #failed(handle: number, problem: string): void {
    const of = this.#nameOf(handle)
    this.counts.failures++
    this.#failure = `moving segments of ${of.topic}/${of.partition} to cold storage fails and is tried again; the log says why`
    this.#parts.logger.warn(
      { ...of, cause: problem },
      'segments could not be moved to cold storage: they stay here, and it is tried again'
    )
  }

  #nameOf(handle: number): { topic: string; partition: number } {
    const meaning = this.#parts.catalog.meaningOf(handle)
    if (meaning.kind === 'live') return { topic: meaning.topic.name, partition: meaning.partition }
    return { topic: 'a deleted topic', partition: handle }
  }
}

function isTiered({ config }: Topic): boolean {
  const hasLimit = config.retention_ms !== null || config.retention_bytes !== null
  return hasLimit && config.cleanup_policy !== 'compact'
}

function tieredRanges(topic: Topic): TieredRange[] {
  const { retention_ms: retentionMs, retention_bytes: retentionBytes } = topic.config
  return rangesOf(topic).map(({ firstHandle, partitionCount }) => {
    return { firstHandle, partitionCount, retentionMs, retentionBytes }
  })
}
