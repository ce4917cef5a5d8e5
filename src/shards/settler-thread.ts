/**
 * Main's face of the settler thread, which fills slots ahead, settles sealed ones and removes files. Main thread only.
 * The thread lives only while there is something for it to do: idle, it would cost memory for nothing.
 *
 * Fenced by shard incarnation (S2): cancel() resolves when the thread does nothing for that shard any more, and from then
 * to admit() it is given nothing, while a successor reads the directory; what it answers to an older incarnation is
 * dropped by whoever listens.
 */
import { Worker } from 'node:worker_threads'
import type { Logger } from '../base/logger.ts'
import { workerMemory } from '../base/worker-memory.ts'
import { siblingModule } from '../base/module-url.ts'
import type { TierablePartition, TieredRange } from '../wire/shard/cold.ts'
import { Adoptions } from './adoptions.ts'
import type {
  CompactablePartition,
  CompactedRange,
  SettleFailure,
  SettleReport,
  SettleWish,
  SettlerJob,
  SettlerReply,
  SettlerStart,
  FillPlace,
  ShardPlace,
  TopicPlace
} from '../wire/shard/settle.ts'

/** What becomes of the jobs of a shard. */
export interface SettlerListener {
  onFilled(shard: number, file: { name: string; bytes: number }): void
  onFillFailed(shard: number, bytes: number): void
  onSettledPart(shard: number, changes: Uint8Array): void
  /** @returns resolves when the shard has adopted it; rejects if it is gone. */
  onSettled(shard: number, report: SettleReport): Promise<void>
  /** @returns resolves when the shard has adopted what was sent before, and closed those files. */
  onFilesUnused(shard: number, paths: readonly string[]): Promise<void>
  onSettleFailed(shard: number, failure: SettleFailure): void
}

export interface SettlerOptions {
  readonly logger: Logger
  readonly listener: SettlerListener
  readonly placeOf: (shard: number) => ShardPlace
  /** Live and deleted topics, by first handle: asked for when a job is sent. */
  readonly topicPlaces: () => TopicPlace[]
  /** From the commit of a job to the removal of files that it leaves unused. */
  readonly graceMs: number
  readonly faults: string | null
}

/** What a replacement came to. */
export type ReplacedReply = Extract<SettlerReply, { kind: 'replaced' }>

/** What there is to do for cold storage. */
export interface Tierable {
  readonly partitions: readonly TierablePartition[]
  /** Keys of objects that nothing names any more. */
  readonly objects: readonly string[]
}

/** The thread ends when it had nothing to do for so long. */
const IDLE_MS = 3000
/** What becomes of a job whose thread died. */
const threadEnded: SettleFailure = { problem: 'the settler thread ended', isFull: false, isUnread: false }
/** Files that the disk would not remove are tried again after it. */
const SWEEP_RETRY_MS = 30_000
/** Files that the shard may still read are looked at again after it. */
const SWEEP_LATER_MS = 50
/** Longest time that one timer covers. */
const TIMER_MS_MAX = 2 ** 31 - 1

export class SettlerThread {
  readonly #options: SettlerOptions
  #worker: Worker | null = null
  /** Jobs that the thread has not answered, by shard: fills in bytes, settles and sweeps as such. */
  #open: SettlerJob[] = []
  #idleTimer: NodeJS.Timeout | null = null
  readonly #adoptions = new Adoptions()
  readonly #sweepTimers = new Map<number, NodeJS.Timeout>()
  readonly #cancelWaiters = new Map<number, (() => void)[]>()
  /** Shards that may not know of a commit, because the job that made it ended badly: the next thread is told so. */
  readonly #inDoubt = new Set<number>()
  /** Shards that died and have not read their directory since. */
  readonly #fenced = new Set<number>()
  /** Who waits for the answer to a job; null: the shard or the thread is gone. */
  readonly #answers = new Map<SettlerJob, (reply: SettlerReply | null) => void>()
  readonly #settleJobs = new Map<number, number>()
  #isStopped = false
  #hasStarted = false
  /** By shard, since the process started. */
  readonly #filledBytes = new Map<number, number>()

  constructor(options: SettlerOptions) {
    this.#options = options
  }

  fill(place: FillPlace, files: readonly { name: string; bytes: number }[]): void {
    for (const { name, bytes } of files) this.#send({ kind: 'fill', ...place, name, bytes })
  }

  settle(shard: number, wish: SettleWish): void {
    const { placeOf, topicPlaces, graceMs } = this.#options
    this.#settleJobs.set(shard, this.settleJobs(shard) + 1)
    this.#send({ kind: 'settle', place: placeOf(shard), wish, topics: topicPlaces(), graceMs })
  }

  /** Settle jobs sent for a shard so far: the number of the newest, and there is one at a time. */
  settleJobs(shard: number): number {
    return this.#settleJobs.get(shard) ?? 0
  }

  /** Partitions of these ranges that are to be compacted, packed. @fails Error in words for the log */
  async findCompactable(shard: number, ranges: readonly CompactedRange[]): Promise<readonly CompactablePartition[]> {
    const reply = await this.#ask({ kind: 'find-compactable', place: this.#options.placeOf(shard), ranges })
    if (reply?.kind === 'compactable' && reply.partitions !== null) return reply.partitions
    throw failureOf(reply)
  }

  /** Partitions of these ranges with segments for cold storage, and objects that are to go. @fails Error in words for the log */
  async findTierable(shard: number, ranges: readonly TieredRange[]): Promise<Tierable> {
    const reply = await this.#ask({ kind: 'find-tierable', place: this.#options.placeOf(shard), ranges })
    if (reply?.kind !== 'tierable' || reply.partitions === null) throw failureOf(reply)
    return { partitions: reply.partitions, objects: reply.objects }
  }

  /** Base offsets of the cold segments of a partition that begins at `startOffset`, ascending. @fails Error in words for the log */
  async findCold(shard: number, handle: number, startOffset: number): Promise<readonly number[]> {
    const reply = await this.#ask({ kind: 'find-cold', place: this.#options.placeOf(shard), handle, startOffset })
    if (reply?.kind === 'cold' && reply.baseOffsets !== null) return reply.baseOffsets
    throw failureOf(reply)
  }

  /** Objects that are gone are not named any more. @fails Error in words for the log */
  async forgetObjects(shard: number, keys: readonly string[]): Promise<void> {
    const reply = await this.#ask({ kind: 'forget-objects', place: this.#options.placeOf(shard), keys })
    if (reply?.kind !== 'objects-forgotten' || reply.problem !== null) throw failureOf(reply)
  }

  /** Puts other segments into the manifest, and lets the shard adopt them. Never rejects. */
  async replace(shard: number, replacement: Uint8Array): Promise<ReplacedReply | null> {
    const { placeOf, graceMs } = this.#options
    const reply = await this.#ask({ kind: 'replace', place: placeOf(shard), replacement, graceMs })
    return reply?.kind === 'replaced' ? reply : null
  }

  /** @returns null: the shard or the thread is gone. */
  #ask(job: SettlerJob): Promise<SettlerReply | null> {
    return new Promise(resolve => {
      this.#answers.set(job, resolve)
      this.#send(job)
    })
  }

  #answer(shard: number, kind: SettlerJob['kind'], reply: SettlerReply | null): void {
    const at = this.#open.findIndex(job => job.kind === kind && shardOfJob(job) === shard)
    const job = this.#open[at]
    if (job === undefined) return
    this.#open.splice(at, 1)
    this.#answers.get(job)?.(reply)
    this.#answers.delete(job)
  }

  /** Removes files that are due by then. @param dueMs Unix ms; null: none is. */
  sweepAt(shard: number, dueMs: number | null): void {
    const timer = this.#sweepTimers.get(shard)
    if (timer !== undefined) clearTimeout(timer)
    this.#sweepTimers.delete(shard)
    if (dueMs === null || this.#isStopped) return
    const waitMs = Math.min(TIMER_MS_MAX, Math.max(0, dueMs - Date.now()))
    const next = setTimeout(() => {
      // What a commit leaves unused stays until the shard has adopted that commit, whatever the grace.
      if (this.#isChanging(shard)) this.sweepAt(shard, Date.now() + SWEEP_LATER_MS)
      else this.#send({ kind: 'sweep', place: this.#options.placeOf(shard) })
    }, waitMs)
    next.unref()
    this.#sweepTimers.set(shard, next)
  }

  /** True while a commit of the shard may come, or is not adopted yet. */
  #isChanging(shard: number): boolean {
    if (this.#adoptions.isOpen(shard)) return true
    return this.#open.some(job => (job.kind === 'settle' || job.kind === 'replace') && job.place.shard === shard)
  }

  /**
   * Drops the jobs of a shard that died. On return nothing of ours touches its directory, and nothing will before
   * admit(): a compaction that began before the death must not commit while the next incarnation reads the manifest.
   */
  async cancel(shard: number): Promise<void> {
    this.#fenced.add(shard)
    // Its successor reads the manifest itself.
    this.#inDoubt.delete(shard)
    this.sweepAt(shard, null)
    const dropped = this.#open.filter(job => shardOfJob(job) === shard)
    this.#open = this.#open.filter(job => shardOfJob(job) !== shard)
    this.#drop(dropped)
    const worker = this.#worker
    if (worker === null) return
    await new Promise<void>(resolve => {
      const waiters = this.#cancelWaiters.get(shard)
      if (waiters === undefined) this.#cancelWaiters.set(shard, [resolve])
      else waiters.push(resolve)
      worker.postMessage({ kind: 'cancel', shard } satisfies SettlerJob)
    })
  }

  /** The shard has read its directory: jobs are taken again. */
  admit(shard: number): void {
    this.#fenced.delete(shard)
  }

  /** Ends the thread where it stands: a job not committed is done again at the next start. */
  async stop(): Promise<void> {
    this.#isStopped = true
    for (const timer of this.#sweepTimers.values()) clearTimeout(timer)
    this.#drop(this.#open.splice(0))
    await this.#endWorker()
  }

  /** Nobody will answer these any more. */
  #drop(jobs: readonly SettlerJob[]): void {
    for (const job of jobs) {
      this.#answers.get(job)?.(null)
      this.#answers.delete(job)
    }
  }

  #send(job: SettlerJob): void {
    if (this.#isStopped || this.#fenced.has(shardOfJob(job))) return this.#drop([job])
    if (this.#idleTimer !== null) clearTimeout(this.#idleTimer)
    this.#idleTimer = null
    this.#open.push(job)
    this.#worker ??= this.#start()
    this.#worker.postMessage(job)
  }

  #start(): Worker {
    const faults = this.#hasStarted ? null : this.#options.faults
    this.#hasStarted = true
    const worker = new Worker(siblingModule(import.meta.url, '../../workers/settler/entry'), {
      workerData: { faults } satisfies SettlerStart,
      resourceLimits: workerMemory,
      name: 'settler'
    })
    worker.unref()
    for (const shard of this.#inDoubt) worker.postMessage({ kind: 'doubt', shard } satisfies SettlerJob)
    worker.on('message', (reply: SettlerReply) => {
      if (this.#worker === worker) this.#take(reply)
    })
    worker.on('error', error => {
      if (this.#worker !== worker) return
      this.#options.logger.error({ err: error }, 'the settler ended; its jobs are asked for again')
      this.#lose()
    })
    return worker
  }

  /** The thread died: nothing that it had not answered is known to be done. */
  #lose(): void {
    this.#worker = null
    for (const resolve of this.#takeCancelWaiters()) resolve()
    const { listener } = this.#options
    for (const job of this.#open.splice(0)) {
      if (job.kind === 'settle' || job.kind === 'replace') this.#inDoubt.add(job.place.shard)
      if (job.kind === 'fill') listener.onFillFailed(job.shard, job.bytes)
      else if (job.kind === 'settle') listener.onSettleFailed(job.place.shard, threadEnded)
      else if (job.kind === 'sweep') this.sweepAt(job.place.shard, Date.now() + SWEEP_RETRY_MS)
      else this.#drop([job])
    }
  }

  #takeCancelWaiters(): (() => void)[] {
    const waiters = [...this.#cancelWaiters.values()].flat()
    this.#cancelWaiters.clear()
    return waiters
  }

  #take(reply: SettlerReply): void {
    const { shard } = reply
    const { listener, logger } = this.#options
    switch (reply.kind) {
      case 'filled':
        if (this.#close(job => job.kind === 'fill' && job.shard === shard && job.name === reply.name))
          this.#filled(reply)
        break
      case 'settled-part':
        if (this.#open.some(job => (job.kind === 'settle' || job.kind === 'replace') && job.place.shard === shard))
          listener.onSettledPart(shard, reply.changes)
        break
      case 'settled':
        if (!this.#close(job => job.kind === 'settle' && job.place.shard === shard)) break
        this.#inDoubt.delete(shard)
        this.#settled(shard, reply.report)
        break
      case 'settle-failed':
        if (!this.#close(job => job.kind === 'settle' && job.place.shard === shard)) break
        this.#inDoubt.add(shard)
        listener.onSettleFailed(shard, reply.failure)
        break
      case 'compactable':
        this.#answer(shard, 'find-compactable', reply)
        break
      case 'tierable':
        this.#answer(shard, 'find-tierable', reply)
        break
      case 'cold':
        this.#answer(shard, 'find-cold', reply)
        break
      case 'objects-forgotten':
        this.#answer(shard, 'forget-objects', reply)
        break
      case 'replaced':
        this.#replaced(reply)
        break
      case 'swept':
        if (!this.#close(job => job.kind === 'sweep' && job.place.shard === shard)) break
        if (reply.problem !== null)
          logger.warn(
            { shard, cause: reply.problem },
            'files that are not used any more could not be removed; it is tried again'
          )
        this.sweepAt(shard, reply.problem === null ? reply.nextRemovalMs : Date.now() + SWEEP_RETRY_MS)
        break
      case 'cancelled':
        for (const resolve of this.#cancelWaiters.get(shard) ?? []) resolve()
        this.#cancelWaiters.delete(shard)
        break
    }
    if (this.#open.length === 0) this.#endSoon()
  }

  /** Takes the first such job off the list. @returns false: it was dropped meanwhile, its shard died. */
  #close(isIt: (job: SettlerJob) => boolean): boolean {
    const at = this.#open.findIndex(isIt)
    if (at >= 0) this.#open.splice(at, 1)
    return at >= 0
  }

  /** Files go only when nobody looks for them any more: after the shard has adopted the commit (S1). */
  #settled(shard: number, report: SettleReport): void {
    this.#adoptions.during(shard, this.#options.listener.onSettled(shard, report)).then(
      () => this.sweepAt(shard, report.nextRemovalMs),
      // The shard is gone; the next one reads the manifest, and asks by itself.
      () => undefined
    )
  }

  #replaced(reply: ReplacedReply): void {
    const { shard, unused, nextRemovalMs, isCommitted, problem } = reply
    if (problem !== null) this.#inDoubt.add(shard)
    if (isCommitted) {
      this.#adoptions.during(shard, this.#options.listener.onFilesUnused(shard, unused)).then(
        () => this.sweepAt(shard, nextRemovalMs),
        () => undefined
      )
    }
    this.#answer(shard, 'replace', reply)
  }

  #filled({ shard, name, bytes, problem }: Extract<SettlerReply, { kind: 'filled' }>): void {
    const { listener, logger } = this.#options
    if (problem !== null) {
      logger.warn({ shard, cause: problem }, 'a journal slot could not be filled ahead')
      return listener.onFillFailed(shard, bytes)
    }
    const total = (this.#filledBytes.get(shard) ?? 0) + bytes
    this.#filledBytes.set(shard, total)
    listener.onFilled(shard, { name, bytes })
    // One log line when all that a shard asked for is there.
    if (this.#open.every(job => job.kind !== 'fill' || job.shard !== shard))
      logger.info({ shard, bytes: total }, 'slots filled')
  }

  #endSoon(): void {
    this.#idleTimer ??= setTimeout(() => {
      this.#idleTimer = null
      if (this.#open.length === 0 && this.#cancelWaiters.size === 0) void this.#endWorker()
    }, IDLE_MS).unref()
  }

  async #endWorker(): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    // Not those that come meanwhile: they wait for another thread, which may be at work for their shard.
    const waiters = this.#takeCancelWaiters()
    await worker?.terminate()
    for (const resolve of waiters) resolve()
  }
}

function shardOfJob(job: SettlerJob): number {
  return 'place' in job ? job.place.shard : job.shard
}

/** Why a question was not answered. */
function failureOf(reply: SettlerReply | null): Error {
  const problem = reply !== null && 'problem' in reply ? reply.problem : null
  return new Error(problem ?? 'the shard or the settler ended')
}
