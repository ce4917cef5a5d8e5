/**
 * Retention on a shard: from time to time, and when asked, segments that have had their time are dropped by moving start
 * offsets, durably, before anyone is told (W7). Old active segments are sealed, so that quiet topics age out. Shard
 * thread only, between groups. Files are removed later, by the settler.
 */
import { DiskError } from '../../src/disk/disk.ts'
import { expiredSegments, type RetainedSegment } from '../../src/log/retention.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import type { ShardLog, StartMove } from '../../src/log/shard-log.ts'
import type { TopicLogs } from '../../src/log/log-table.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import type { CleaningSettings } from '../../src/wire/shard/start.ts'
import type { ReplyWriter } from './reply-writer.ts'
import type { Settling } from './settling.ts'

/** Moves of one group: half a MiB of entries. */
const MOVES_MAX = 8192
/** A pass that the disk refused is tried again after so long, or after the interval if that is shorter. */
const RETRY_MS = 5000

export interface CleaningParts {
  readonly log: ShardLog
  readonly settling: Pick<Settling, 'turn' | 'noteDropped'>
  readonly replies: Pick<ReplyWriter, 'log'>
  readonly counters: Float64Array
  readonly settings: CleaningSettings
  readonly monotonicMs: () => number
  readonly nowMs: () => number
  /** Finishes what is under way: start offsets move between groups. */
  readonly finishGroup: () => void
}

export class Cleaning {
  readonly #parts: CleaningParts
  /** When the next pass is due, monotonic ms. */
  dueMs: number
  /** The last pass was refused. */
  #isFailing = false

  constructor(parts: CleaningParts) {
    this.#parts = parts
    this.dueMs = parts.monotonicMs() + parts.settings.intervalMs
  }

  /** Looked at in every turn. @throws DiskError that poisons the shard */
  turn(): void {
    if (this.#parts.monotonicMs() < this.dueMs) return
    this.run()
  }

  /**
   * One pass over all partitions. @returns null, or why the disk refused; it is tried again.
   * @throws DiskError that poisons the shard
   */
  run(): DiskError | null {
    const { log, settling, counters, settings, monotonicMs, finishGroup, replies } = this.#parts
    finishGroup()
    this.dueMs = monotonicMs() + settings.intervalMs
    try {
      let moves: StartMove[] = []
      for (const topic of log.table.topics()) {
        for (const partition of topic.logs) {
          if (partition === undefined) continue
          const offset = this.#newStart(topic, partition)
          if (offset > partition.startOffset) moves.push({ log: partition, offset })
          if (moves.length < MOVES_MAX) continue
          this.#move(moves)
          moves = []
        }
      }
      if (moves.length > 0) this.#move(moves)
      if (this.#isFailing) replies.log('info', 'retention works again')
      this.#isFailing = false
      counters[counterIndex.retentionFailing] = 0
      return null
    } catch (error) {
      if (!(error instanceof DiskError) || log.isPoisoned) throw error
      this.dueMs = monotonicMs() + Math.min(RETRY_MS, settings.intervalMs)
      counters[counterIndex.retentionFailing] = 1
      if (!this.#isFailing)
        replies.log('error', 'retention was refused by the disk; it is tried again', { cause: error.message })
      this.#isFailing = true
      return error
    } finally {
      settling.turn(false)
    }
  }

  /** The start offset that the partition should have; a segment that is old enough is sealed on the way. */
  #newStart(topic: TopicLogs, log: PartitionLog): number {
    const nowMs = this.#parts.nowMs()
    const { retention } = topic
    if (
      log.activeBytes > 0 &&
      log.isQuiet &&
      nowMs - log.activeSegment().firstReceiveMs >= this.#parts.settings.segmentMs
    ) {
      log.rollNow()
    }
    // In cold storage it can still be read. Where that is not configured any more, what is there waits until it is again.
    if (this.#parts.settings.isTiered || hasCold(log)) return log.startOffset
    if (retention === null || log.sealedCount === 0) return log.startOffset
    const hasLimit = retention.retentionMs !== null || retention.retentionBytes !== null
    if (!hasLimit || retention.cleanupPolicy === 'compact') return log.startOffset
    return expiredSegments(segmentsOf(log), log.startOffset, retention, nowMs).startOffset
  }

  #move(moves: readonly StartMove[]): void {
    const { log, settling, counters } = this.#parts
    for (const gone of log.moveStarts(moves)) {
      counters[counterIndex.retentionSegments]! += gone.segments
      counters[counterIndex.retentionBytes]! += gone.bytes
    }
    settling.noteDropped()
  }
}

function hasCold({ settled }: PartitionLog): boolean {
  return settled?.segments.some(({ cold }) => cold !== undefined) ?? false
}

/** All segments of a log, as retention looks at them. */
function segmentsOf(log: PartitionLog): RetainedSegment[] {
  const active = log.activeSegment()
  const sealed = log.sealedSegments()
  const segments: RetainedSegment[] = sealed.map((segment, i) => ({
    ...segment,
    nextOffset: sealed[i + 1]?.baseOffset ?? active.baseOffset,
    isSealed: true
  }))
  if (active.bytes > 0) segments.push({ ...active, nextOffset: log.highWatermark, isSealed: false })
  return segments
}
