/**
 * Main's face of the filler: fills slots with zeros ahead of the writers, in a thread of its own that lives only while
 * there is something to fill (W9). Main thread only.
 *
 * Fenced by shard incarnation: cancel() ends the thread before a dead shard's successor reads the directory, so no
 * late file can appear in it.
 */
import { Worker } from 'node:worker_threads'
import type { Logger } from '../base/logger.ts'
import { siblingModule } from '../base/module-url.ts'
import type { FillDone, FillJob } from '../wire/shard/fill.ts'

/** What becomes of the slots that a shard asked for. */
export interface FillListener {
  onFilled(shard: number, file: { name: string; bytes: number }): void
  onFailed(shard: number, bytes: number): void
}

export class SlotFiller {
  readonly #logger: Logger
  readonly #listener: FillListener
  #jobs: FillJob[] = []
  #worker: Worker | null = null
  /** Resolves when the thread that was ended last is gone. */
  #ending: Promise<unknown> = Promise.resolve()
  #isStopped = false
  /** By shard, since the process started. */
  readonly #filledBytes = new Map<number, number>()

  constructor(logger: Logger, listener: FillListener) {
    this.#logger = logger
    this.#listener = listener
  }

  fill(shard: number, directory: string, files: readonly { name: string; bytes: number }[]): void {
    this.#jobs.push(...files.map(file => ({ shard, directory, ...file })))
    void this.#next()
  }

  /** Drops the jobs of a shard that died. On return no thread of ours touches its directory. */
  async cancel(shard: number): Promise<void> {
    this.#jobs = this.#jobs.filter(job => job.shard !== shard)
    this.#endWorker()
    await this.#ending
    void this.#next()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#jobs = []
    this.#endWorker()
    await this.#ending
  }

  #endWorker(): void {
    const worker = this.#worker
    this.#worker = null
    if (worker !== null) this.#ending = Promise.all([this.#ending, worker.terminate()])
  }

  /** Gives the oldest job to the thread; ends the thread when there is none. */
  async #next(): Promise<void> {
    // Two threads never work at once: they could be at one file.
    await this.#ending
    const job = this.#jobs[0]
    if (job === undefined || this.#isStopped) return this.#endWorker()
    if (this.#worker !== null) return
    const worker = new Worker(siblingModule(import.meta.url, '../../workers/settler/entry'), { name: 'settler' })
    this.#worker = worker
    worker.unref()
    worker.on('message', (done: FillDone) => {
      if (this.#worker === worker) this.#done(worker, done)
    })
    worker.on('error', error => {
      if (this.#worker !== worker) return
      this.#worker = null
      this.#logger.error({ err: error }, 'the filler of journal slots ended')
      const failed = this.#jobs.splice(0)
      for (const { shard, bytes } of failed) this.#listener.onFailed(shard, bytes)
    })
    worker.postMessage(job)
  }

  /** One log line when all that a shard asked for is there. */
  #filled(job: FillJob): void {
    const bytes = (this.#filledBytes.get(job.shard) ?? 0) + job.bytes
    this.#filledBytes.set(job.shard, bytes)
    this.#listener.onFilled(job.shard, { name: job.name, bytes: job.bytes })
    if (this.#jobs.every(other => other.shard !== job.shard)) {
      this.#logger.info({ shard: job.shard, bytes }, 'slots filled')
    }
  }

  #failed({ shard, bytes }: FillJob, problem: string): void {
    this.#logger.warn({ shard, cause: problem }, 'a journal slot could not be filled ahead')
    this.#listener.onFailed(shard, bytes)
  }

  #done(worker: Worker, { job, problem }: FillDone): void {
    this.#jobs = this.#jobs.filter(other => other.shard !== job.shard || other.name !== job.name)
    if (problem === null) this.#filled(job)
    else this.#failed(job, problem)
    const next = this.#jobs[0]
    if (next === undefined) void this.#next()
    else worker.postMessage(next)
  }
}
