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

export class SlotFiller {
  readonly #logger: Logger
  readonly #onFilled: (shard: number, files: { name: string; bytes: number }[]) => void
  #jobs: FillJob[] = []
  #worker: Worker | null = null
  #isStopped = false
  /** By shard, since the process started. */
  readonly #filledBytes = new Map<number, number>()

  constructor(logger: Logger, onFilled: (shard: number, files: { name: string; bytes: number }[]) => void) {
    this.#logger = logger
    this.#onFilled = onFilled
  }

  fill(shard: number, directory: string, files: readonly { name: string; bytes: number }[]): void {
    this.#jobs.push(...files.map(file => ({ shard, directory, ...file })))
    this.#next()
  }

  /** Drops the jobs of a shard that died. On return no thread of ours touches its directory. */
  async cancel(shard: number): Promise<void> {
    const worker = this.#worker
    this.#worker = null
    this.#jobs = this.#jobs.filter(job => job.shard !== shard)
    if (worker !== null) await worker.terminate()
    this.#next()
  }

  async stop(): Promise<void> {
    this.#isStopped = true
    this.#jobs = []
    const worker = this.#worker
    this.#worker = null
    if (worker !== null) await worker.terminate()
  }

  /** Gives the oldest job to the thread; ends the thread when there is none. */
  #next(): void {
    const job = this.#jobs[0]
    if (job === undefined || this.#isStopped) {
      const worker = this.#worker
      this.#worker = null
      void worker?.terminate()
      return
    }
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
      this.#logger.error(
        { err: error },
        'the filler of journal slots ended; the journal goes on with slower, unfilled slots'
      )
    })
    worker.postMessage(job)
  }

  /** One log line when all that a shard asked for is there. */
  #filled(job: FillJob): void {
    const bytes = (this.#filledBytes.get(job.shard) ?? 0) + job.bytes
    this.#filledBytes.set(job.shard, bytes)
    this.#onFilled(job.shard, [{ name: job.name, bytes: job.bytes }])
    if (this.#jobs.every(other => other.shard !== job.shard)) {
      this.#logger.info({ shard: job.shard, bytes }, 'slots filled')
    }
  }

  #done(worker: Worker, done: FillDone): void {
    this.#jobs = this.#jobs.filter(job => job.shard !== done.job.shard || job.name !== done.job.name)
    if (done.problem === null) this.#filled(done.job)
    else this.#logger.warn({ shard: done.job.shard, cause: done.problem }, 'a journal slot could not be filled ahead')
    const next = this.#jobs[0]
    if (next === undefined) this.#next()
    else worker.postMessage(next)
  }
}
