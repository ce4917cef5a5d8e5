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

export interface FillJob {
  readonly shard: number
  readonly directory: string
  readonly name: string
  readonly bytes: number
}

/** What the thread answers: one message a job. */
export interface FillDone {
  readonly job: FillJob
  /** null: the slot is there. */
  readonly problem: string | null
}

export class SlotFiller {
  readonly #logger: Logger
  readonly #onFilled: (shard: number, files: { name: string; bytes: number }[]) => void
  #jobs: FillJob[] = []
  #worker: Worker | null = null
  #isStopped = false

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
      this.#logger.error({ err: error }, 'the filler of journal slots ended; the journal goes on with slower, unfilled slots')
    })
    worker.postMessage(job)
  }

  #done(worker: Worker, done: FillDone): void {
    this.#jobs = this.#jobs.filter(job => job.shard !== done.job.shard || job.name !== done.job.name)
    if (done.problem === null) this.#onFilled(done.job.shard, [{ name: done.job.name, bytes: done.job.bytes }])
    else this.#logger.warn({ shard: done.job.shard, cause: done.problem }, 'a journal slot could not be filled ahead')
    const next = this.#jobs[0]
    if (next === undefined) this.#next()
    else worker.postMessage(next)
  }
}
