/**
 * When a shard's sealed slots are settled, what becomes of them, and how fast produce may go on meanwhile (S4). Shard
 * thread only. The settler thread does the work; this asks for it, one job at a time, and adopts what it committed.
 *
 *   used of the budget   0 ────────── half ──────────── three quarters ─────────────── all
 *   settling             idle or old  as fast as it can
 *   produce              free         free              at the measured speed of settling, and slower
 */
import { receiveMessageOnPort, type MessagePort } from 'node:worker_threads'
import { assert } from '../../src/base/assert.ts'
import { applyChange, type PartitionChange } from '../../src/log/settle/partition-change.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { unpackMessage } from '../../src/wire/msgpack.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import type { SettleFailure, SettleReport, SlotToSettle } from '../../src/wire/shard/settle.ts'
import type { SettlingSettings } from '../../src/wire/shard/start.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** Share of the budget at which settling begins whatever else is going on. */
const BEGIN_SHARE = 0.5
/** Share from which produce is slowed. */
const SLOW_SHARE = 0.75
/** Share of the budget that one job takes: slots come back while others fill. */
const JOB_SHARE = 0.25
/** Speed of settling before any was measured, bytes a ms. */
const FIRST_RATE = 300_000
/** Weight of the newest measurement. */
const RATE_WEIGHT = 0.5
/** At the beginning of slowing produce may go so many times faster than settling, at the full budget so much of it. */
const RATE_AT_SLOW = 2
const RATE_AT_FULL = 0.5
/** A twelfth beyond the budget and further produce all but stands, whatever keeps settling from going on. */
const RATE_LEAST = 0.01
/** Waits after a job that failed. */
const RETRY_MS = [1000, 5000, 30_000]
/** Longest that produce is held by one look. */
const HOLD_MS_MAX = 100

export interface SettlingParts {
  readonly log: ShardLog
  readonly replies: Pick<ReplyWriter, 'acknowledge' | 'refuseByDisk' | 'event' | 'log'>
  readonly changes: MessagePort
  readonly counters: Float64Array
  readonly settings: SettlingSettings
  readonly monotonicMs: () => number
}

export class Settling {
  readonly #parts: SettlingParts
  #isAsked = false
  #askedBytes = 0
  #failures = 0
  /** Jobs in a row that ended because a slot or a pack could not be read. */
  #unreadJobs = 0
  #retryAtMs = 0
  #lastGroupMs: number
  /** Start offsets moved or topics were dropped since the last job. */
  #hasDropped = false
  /** Sealed slots are settled at once, the open one included. */
  #isForced = false
  /** Who waits until slots up to a sequence are settled. */
  #waiting: { readonly id: number; readonly sequence: number }[] = []
  #rate = FIRST_RATE
  #freeAtMs = 0
  /** Produce is not held any more: the shard stops. */
  isOpen = false

  constructor(parts: SettlingParts) {
    this.#parts = parts
    this.#lastGroupMs = parts.monotonicMs()
  }

  /** Something is to be taken out of the manifest: by the next job. */
  noteDropped(): void {
    this.#hasDropped = true
  }

  /**
   * Everything written so far is settled as soon as can be. Between groups.
   * @param id of the control message that is answered when it is done. @throws DiskError
   */
  settleAll(id: number): void {
    const { log, replies } = this.#parts
    if (log.hasOpenGroups) log.sealOpenSlot()
    const last = log.sealedSlots.at(-1)
    if (last === undefined) replies.acknowledge(id)
    else this.#waiting.push({ id, sequence: last.sequence })
    this.#isForced = this.#waiting.length > 0
  }

  #answerWaiting(sequence: number): void {
    const { replies } = this.#parts
    for (const { id } of this.#waiting.filter(waiting => waiting.sequence <= sequence)) replies.acknowledge(id)
    this.#waiting = this.#waiting.filter(waiting => waiting.sequence > sequence)
    this.#isForced = this.#waiting.length > 0
  }

  /** Files are about to go: whoever has them open closes them. */
  forgetFiles(paths: readonly string[]): void {
    this.#parts.log.window.settled.forget(paths)
  }

  /** Looked at in every turn. @param hadGroup the turn wrote something. */
  turn(hadGroup: boolean): void {
    const { log, counters, settings, monotonicMs } = this.#parts
    const nowMs = monotonicMs()
    if (hadGroup) this.#lastGroupMs = nowMs
    counters[counterIndex.unsettledBytes] = log.unsettledBytes
    counters[counterIndex.budgetBytes] = settings.budgetBytes
    counters[counterIndex.settleRate] = this.#rate * 1000
    if (this.#isAsked || nowMs < this.#retryAtMs || nowMs < this.#dueMs()) return
    this.#ask()
  }

  /** When turn() has something to do, monotonic ms; Infinity: a group or a message comes first. */
  get dueMs(): number {
    return this.#isAsked ? Number.POSITIVE_INFINITY : Math.max(this.#dueMs(), this.#retryAtMs)
  }

  #dueMs(): number {
    const { log, settings } = this.#parts
    if (this.#hasDropped) return 0
    const oldest = log.sealedSlots[0]
    if (oldest === undefined) return Number.POSITIVE_INFINITY
    if (this.#isForced || log.unsettledBytes >= settings.budgetBytes * BEGIN_SHARE) return 0
    return Math.min(this.#lastGroupMs + settings.idleMs, oldest.sealedAtMs + settings.ageMs)
  }

  #ask(): void {
    const { log, replies, settings } = this.#parts
    const slots: SlotToSettle[] = []
    this.#askedBytes = 0
    for (const { name, sequence, seed, previousLastGroup, lastGroup, capacityBytes } of log.sealedSlots) {
      const follows = slots.length === 0 || sequence === (slots.at(-1)?.sequence ?? 0) + 1
      if (!follows || (slots.length > 0 && this.#askedBytes + capacityBytes > settings.budgetBytes * JOB_SHARE)) break
      slots.push({ name, sequence, seed, previousLastGroup, lastGroup })
      this.#askedBytes += capacityBytes
    }
    const startOffsets: [number, number][] = []
    for (const { handle, startOffset, settled } of log.table.openLogs()) {
      if (startOffset > (settled?.startOffset ?? 0)) startOffsets.push([handle, startOffset])
    }
    this.#isAsked = true
    this.#hasDropped = false
    replies.event({ kind: 'settle-wanted', wish: { slots, startOffsets, unreadJobs: this.#unreadJobs } })
  }

  /** Some partitions of a committed job: readers look there from now on. */
  takePart(): void {
    const { log, changes } = this.#parts
    const received = receiveMessageOnPort(changes) as { message: Uint8Array } | undefined
    assert(received !== undefined, 'changes are posted before the message that names them')
    const bytes = Buffer.from(received.message)
    for (const change of unpackMessage(bytes, 0, bytes.length) as PartitionChange[]) {
      const known = log.table.logOf(change.partition.handle)
      // Its topic was deleted meanwhile.
      if (known === undefined) continue
      const partition = applyChange(known.settled, change)
      if (change.isCompaction) log.adoptCompacted(partition)
      else log.adopt([partition])
    }
  }

  /** The job is committed and all of it adopted. */
  finish(report: SettleReport): void {
    const { log, counters, replies } = this.#parts
    this.#isAsked = false
    this.#failures = 0
    this.#unreadJobs = 0
    const refusal = log.freeSlots(report.sequence)
    if (refusal !== null) {
      const fields = { cause: refusal.message }
      replies.log('warn', 'a journal file that holds nothing any more could not be removed; it is tried again', fields)
    }
    this.forgetFiles(report.unused)
    this.#answerWaiting(report.sequence)
    if (this.#askedBytes > 0 && report.milliseconds > 0) {
      this.#rate += RATE_WEIGHT * (this.#askedBytes / report.milliseconds - this.#rate)
    }
    counters[counterIndex.settlingFailing] = 0
    counters[counterIndex.settleJobs]! += 1
    counters[counterIndex.settleReadBytes]! += report.readBytes
    counters[counterIndex.settleWrittenBytes]! += report.writtenBytes
    counters[counterIndex.settleMs]! += report.milliseconds
    counters[report.isDirect ? counterIndex.settleDirect : counterIndex.settleBuffered]! += 1
    this.#reportDamage(report)
  }

  /** Whoever reads the log learns which records are lost, and whether there is something to look at. */
  #reportDamage({ damagedRuns, damaged }: SettleReport): void {
    const { counters, replies } = this.#parts
    counters[counterIndex.damagedRuns]! += damagedRuns
    for (const { handle, firstOffset, nextOffset, isKept } of damaged) {
      const fields = { handle, first: firstOffset, last: nextOffset - 1 }
      if (isKept)
        replies.log('error', 'damaged data was met while settling, and put aside: see millrace quarantine', fields)
      else
        replies.log(
          'error',
          'records could not be read while settling, and are given up: see millrace quarantine',
          fields
        )
    }
    if (damagedRuns > damaged.length)
      replies.log('error', 'more damaged data was met than is named here: see millrace quarantine', { damagedRuns })
  }

  /** Nothing was committed: it is tried again. */
  fail({ problem, isFull, isUnread }: SettleFailure): void {
    const { counters, replies, monotonicMs } = this.#parts
    this.#isAsked = false
    this.#hasDropped = true
    const waitMs = RETRY_MS[Math.min(this.#failures, RETRY_MS.length - 1)] ?? 0
    this.#failures++
    if (isUnread) this.#unreadJobs++
    this.#retryAtMs = monotonicMs() + waitMs
    counters[counterIndex.settlingFailing] = 1
    counters[counterIndex.settleFailures]! += 1
    for (const { id } of this.#waiting.splice(0)) replies.refuseByDisk(id, 'settling the journal', isFull)
    replies.log('warn', 'sealed slots could not be settled; it is tried again', { cause: problem, waitMs })
  }

  /** How long produce is held from now on, ms; 0: not at all. */
  get holdMs(): number {
    const { log, settings, monotonicMs } = this.#parts
    if (this.isOpen || log.unsettledBytes < settings.budgetBytes * SLOW_SHARE) return 0
    return Math.min(HOLD_MS_MAX, Math.max(0, this.#freeAtMs - monotonicMs()))
  }

  /** A group of `bytes` was written: near the end of the budget it takes its time. */
  noteGroup(bytes: number): void {
    const { log, settings, monotonicMs, counters } = this.#parts
    const used = log.unsettledBytes / settings.budgetBytes
    if (used < SLOW_SHARE) return
    const share = (used - SLOW_SHARE) / (1 - SLOW_SHARE)
    const rate = this.#rate * Math.max(RATE_LEAST, RATE_AT_SLOW + (RATE_AT_FULL - RATE_AT_SLOW) * share)
    const nowMs = monotonicMs()
    this.#freeAtMs = Math.max(this.#freeAtMs, nowMs) + bytes / rate
    counters[counterIndex.heldMs]! += bytes / rate
  }
}
