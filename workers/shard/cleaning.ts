/**
 * Retention on a shard: from time to time, and when asked, segments that have had their time are dropped by moving start
 * offsets, durably, before anyone is told (W7). Old active segments are sealed, so that quiet topics age out. Shard
 * thread only, between groups. Files are removed later, by the settler.
 *
 * A pass is spread over turns, so that many partitions keep no produce waiting. Topics that are opened meanwhile are the
 * next one's.
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
/** Time that a pass gets between two groups. A partition takes microseconds, one of very many segments more. */
const TURN_MS = 1
/** Partitions between two looks at the clock. */
const LOOK_PARTITIONS = 64
/** A pass that the disk refused is tried again after so long, or after the interval if that is shorter. */
const RETRY_MS = 5000

export interface CleaningParts {
  readonly log: ShardLog
  readonly settling: Pick<Settling, 'turn' | 'noteDropped'>
  readonly replies: Pick<ReplyWriter, 'log' | 'acknowledge' | 'refuseByDisk'>
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
  #dueMs: number
  /** The last pass was refused. */
  #isFailing = false
  /** Topics of the pass under way that are not done, the next one last; null: none is under way. */
  #topics: TopicLogs[] | null = null
  /** Next partition of that topic. */
  #partition = 0
  /** Control messages that are answered at the end of the pass under way; and of the next one, which sees all of what was before them. */
  #waiting: number[] = []
  #asked: number[] = []

  constructor(parts: CleaningParts) {
    this.#parts = parts
    this.#dueMs = parts.monotonicMs() + parts.settings.intervalMs
  }

  /** When turn() has something to do, monotonic ms. */
  get dueMs(): number {
    return this.#topics !== null || this.#asked.length > 0 ? 0 : this.#dueMs
  }

  /** True while somebody waits for a pass. */
  get isAwaited(): boolean {
    return this.#waiting.length + this.#asked.length > 0
  }

  /** A pass over everything that is there now. @param id of the control message that is answered when it is through. */
  ask(id: number): void {
    this.#asked.push(id)
  }

  /**
   * Looked at in every turn: goes on with a pass for about a millisecond, what it writes not counted (R1). A pass that the
   * disk refuses ends there, and is tried again.
   * @throws DiskError that poisons the shard
   */
  turn(): void {
    const { log, monotonicMs } = this.#parts
    if (monotonicMs() < this.dueMs) return
    if (this.#topics === null) this.#begin()
    try {
      if (this.#goOn()) this.#end(null)
    } catch (error) {
      if (!(error instanceof DiskError) || log.isPoisoned) throw error
      this.#end(error)
    }
  }

  #begin(): void {
    const { log, monotonicMs, settings } = this.#parts
    this.#topics = [...log.table.topics()].reverse()
    this.#partition = 0
    this.#dueMs = monotonicMs() + settings.intervalMs
    this.#waiting = this.#asked.splice(0)
  }

  /** @returns true: the pass is through. @throws DiskError: nothing of this turn moved. */
  #goOn(): boolean {
    const { monotonicMs } = this.#parts
    const endMs = monotonicMs() + TURN_MS
    const moves: StartMove[] = []
    let isThrough = this.#look(moves)
    while (!isThrough && moves.length < MOVES_MAX && monotonicMs() < endMs) isThrough = this.#look(moves)
    if (moves.length > 0) this.#move(moves)
    return isThrough
  }

  /** Looks at the next few partitions. @returns true: there are no more. */
  #look(moves: StartMove[]): boolean {
    const { table } = this.#parts.log
    const topic = this.#topics?.at(-1)
    if (topic === undefined) return true
    const { logs, firstHandle } = topic
    // One that was deleted meanwhile has nothing to keep.
    const end = table.topic(firstHandle) === topic ? Math.min(logs.length, this.#partition + LOOK_PARTITIONS) : 0
    for (; this.#partition < end; this.#partition++) {
      const log = logs[this.#partition]
      if (log === undefined) continue
      const offset = this.#newStart(topic, log)
      if (offset > log.startOffset) moves.push({ log, offset })
    }
    if (end > 0 && end < logs.length) return false
    this.#topics?.pop()
    this.#partition = 0
    return this.#topics?.length === 0
  }

  #end(refusal: DiskError | null): void {
    const { settling, counters, settings, monotonicMs, nowMs, replies } = this.#parts
    this.#topics = null
    counters[counterIndex.retentionFailing] = refusal === null ? 0 : 1
    counters[counterIndex.retentionPasses]! += 1
    if (refusal === null) counters[counterIndex.retentionDoneMs] = nowMs()
    if (refusal !== null) {
      this.#dueMs = monotonicMs() + Math.min(RETRY_MS, settings.intervalMs)
      if (!this.#isFailing)
        replies.log('error', 'retention was refused by the disk; it is tried again', { cause: refusal.message })
    } else if (this.#isFailing) replies.log('info', 'retention works again')
    this.#isFailing = refusal !== null
    // What was dropped is asked for before anyone hears that it is.
    settling.turn(false)
    for (const id of this.#waiting.splice(0)) {
      if (refusal === null) replies.acknowledge(id)
      else replies.refuseByDisk(id, 'retention', refusal.isFull)
    }
  }

  /** The start offset that the partition should have; a segment that is old enough is sealed on the way. */
  #newStart(topic: TopicLogs, log: PartitionLog): number {
    const nowMs = this.#parts.nowMs()
    const { retention } = topic
    const segmentMs = topic.segmentMs ?? this.#parts.settings.segmentMs
    if (log.activeBytes > 0 && log.isQuiet && nowMs - log.activeSegment().firstReceiveMs >= segmentMs) log.rollNow()
    // In cold storage it can still be read. Where that is not configured any more, what is there waits until it is again.
    if (this.#parts.settings.isTiered || hasCold(log)) return log.startOffset
    if (retention === null || log.sealedCount === 0) return log.startOffset
    const hasLimit = retention.retentionMs !== null || retention.retentionBytes !== null
    if (!hasLimit || retention.cleanupPolicy === 'compact') return log.startOffset
    return expiredSegments(segmentsOf(log), log.startOffset, retention, nowMs).startOffset
  }

  #move(moves: readonly StartMove[]): void {
    const { log, settling, counters, finishGroup } = this.#parts
    finishGroup()
    log.moveStarts(moves).forEach(({ segments, bytes }, i) => {
      counters[counterIndex.retentionSegments]! += segments
      counters[counterIndex.retentionBytes]! += bytes
      noteRetired(moves[i]?.log, segments, bytes)
    })
    settling.noteDropped()
  }
}

function noteRetired(log: PartitionLog | undefined, segments: number, bytes: number): void {
  if (log === undefined) return
  log.retired ??= { segments: 0, bytes: 0 }
  log.retired.segments += segments
  log.retired.bytes += bytes
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
