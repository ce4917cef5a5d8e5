/**
 * Threads for work that would hold up the main thread, behind typed jobs. Main thread.
 *
 *   run ─▶ queue, bounded ─▶ a free thread ─▶ result
 *              └─ full: OVERLOADED     ├─ the thread dies: INTERNAL, for its jobs alone
 *                                      └─ over its bound: the thread is ended, the caller's own error
 *
 * Invariants: a job settles exactly once, also when its thread dies or the pool closes; piscina is handed no more jobs
 * than it has threads, because it leaves those in its own queue behind when a thread dies. Nothing is loaded and no
 * thread runs before the first job, nor a while after the last. It must never run a job on the main thread.
 */
import { randomBytes } from 'node:crypto'
import type { Piscina } from 'piscina'
import { assert } from '../base/assert.ts'
import type { Logger } from '../base/logger.ts'
import { siblingModule } from '../base/module-url.ts'
import { workerMemory } from '../base/worker-memory.ts'
import { BrokerError } from '../model/errors.ts'
import type { JobTable, Task } from './jobs.ts'

export interface PoolOptions {
  /** At least 1. */
  readonly threadsMax: number
  /** Jobs that run or wait; one more is refused. */
  readonly jobsMax: number
  readonly logger: Logger
  /** A thread without a job ends after this time. */
  readonly idleMs?: number
  /** The module that threads load; it exports `run(task: Task)`. Left out: the broker's own. */
  readonly entry?: URL
  /** Heap of one thread, MiB: one that needs more is ended. Left out: as the process has it. */
  readonly heapMb?: number
}

/** Long enough for a producer that sends one large body after another, short enough to count as idle memory. */
const IDLE_MS = 5000

/** For jobs whose cost a client decides. */
export interface JobBound {
  /** From the start of the job in a free thread, which may have to start itself; then the thread is ended. */
  readonly timeMs: number
  /** What the job rejects with. memory: its thread was ended for its heap. */
  readonly failure: (over: 'time' | 'memory') => BrokerError
}

export interface RunOptions {
  /** What the job may take once it runs. Left out: what it needs. */
  readonly bound?: JobBound
  /** Takes a job back that has not started: it rejects with the signal's reason. One that runs is not disturbed. */
  readonly signal?: AbortSignal
  /** Memory of the value that moves to the thread when the job starts; until then, and if it never does, it is here. */
  readonly moves?: readonly ArrayBuffer[]
}

interface QueuedJob {
  readonly task: Task
  readonly moves: readonly ArrayBuffer[]
  readonly resolve: (result: unknown) => void
  readonly reject: (error: unknown) => void
  readonly signal: AbortSignal | undefined
  readonly bound: JobBound | null
  /** Listens while the job waits. */
  readonly onAbort: () => void
}

export class BackgroundPool<Jobs extends JobTable> {
  readonly #options: PoolOptions
  #waiting: QueuedJob[] = []
  #runningCount = 0
  #opening: Promise<Piscina> | null = null
  #threads: Piscina | null = null
  /** Resolves when the threads of a discarded piscina have ended. */
  #discarded: Promise<void> = Promise.resolve()
  #isClosed = false

  constructor(options: PoolOptions) {
    assert(options.threadsMax >= 1, 'a pool needs a thread')
    this.#options = options
  }

  /** Threads that run now, idle ones included. */
  get threadCount(): number {
    return this.#threads?.threads.length ?? 0
  }

  /** Jobs that run or wait. */
  get jobCount(): number {
    return this.#runningCount + this.#waiting.length
  }

  /**
   * Runs a job when a thread is free; jobs start in the order in which they were given, and may end in another.
   *
   * @fails OVERLOADED the queue is full · STOPPING the pool is closed · INTERNAL the job threw or its thread died, the
   * log has the detail under the id · what its bound says. All with `written: no`: a job writes no records.
   * @cost two messages between threads, about 0.15 ms; 60 ms more where a thread has to start.
   */
  run<Name extends keyof Jobs & string>(
    job: Name,
    value: Jobs[Name]['value'],
    { signal, moves = [], bound }: RunOptions = {}
  ): Promise<Jobs[Name]['result']> {
    const { jobsMax } = this.#options
    if (this.#isClosed) return Promise.reject(new BrokerError('STOPPING'))
    if (signal?.aborted === true) return Promise.reject(reasonOf(signal))
    if (this.jobCount >= jobsMax) {
      return Promise.reject(new BrokerError('OVERLOADED', { what: 'the queue of background jobs', limit: jobsMax }))
    }
    return new Promise((resolve, reject) => {
      const onAbort = (): void => this.#takeBack(queued)
      const given = { moves, signal, bound: bound ?? null }
      const queued: QueuedJob = { task: { job, value }, ...given, resolve, reject, onAbort }
      signal?.addEventListener('abort', onAbort, { once: true })
      this.#waiting.push(queued)
      this.#startNext()
    })
  }

  /** Ends all threads; jobs that run or wait fail with STOPPING. Resolves when no thread is left. */
  async close(): Promise<void> {
    this.#isClosed = true
    for (const job of this.#waiting.splice(0)) {
      job.signal?.removeEventListener('abort', job.onAbort)
      job.reject(new BrokerError('STOPPING'))
    }
    // A load that failed has failed its job already; there is nothing to end then.
    await Promise.allSettled([this.#opening])
    await this.#threads?.destroy()
    await this.#discarded
  }

  #takeBack(job: QueuedJob): void {
    const index = this.#waiting.indexOf(job)
    if (index < 0) return
    this.#waiting.splice(index, 1)
    job.reject(reasonOf(job.signal))
  }

  #startNext(): void {
    while (this.#runningCount < this.#options.threadsMax) {
      const job = this.#waiting.shift()
      if (job === undefined) return
      job.signal?.removeEventListener('abort', job.onAbort)
      this.#runningCount++
      this.#runInThread(job).then(
        result => this.#finish(() => job.resolve(result)),
        (error: unknown) => this.#finish(() => job.reject(this.#failure(job, error)))
      )
    }
  }

  #finish(settle: () => void): void {
    this.#runningCount--
    settle()
    this.#startNext()
  }

  async #runInThread(job: QueuedJob): Promise<unknown> {
    const threads = await (this.#opening ??= this.#open())
    if (this.#isClosed) throw new BrokerError('STOPPING')
    // Given up while this job was on its way to them.
    if (threads !== this.#threads) return this.#runInThread(job)
    const options = { name: 'run', transferList: [...job.moves] }
    return job.bound === null ? threads.run(job.task, options) : this.#runBounded(threads, job.task, options, job.bound)
  }

  /** piscina ends the thread of a running task that is aborted, and no other one. */
  async #runBounded(threads: Piscina, task: Task, options: object, { timeMs, failure }: JobBound): Promise<unknown> {
    const abort = new AbortController()
    const timer = setTimeout(() => abort.abort(failure('time')), timeMs)
    try {
      return await threads.run(task, { ...options, signal: abort.signal })
    } catch (error) {
      throw abort.signal.aborted ? reasonOf(abort.signal) : isOutOfMemory(error) ? failure('memory') : error
    } finally {
      clearTimeout(timer)
    }
  }

  /** Loads piscina: about 10 ms of the main thread, once. */
  async #open(): Promise<Piscina> {
    const { threadsMax, idleMs, entry, heapMb } = this.#options
    const { Piscina } = await import('piscina')
    const threads = new Piscina({
      filename: (entry ?? siblingModule(import.meta.url, '../../workers/background/entry')).href,
      minThreads: 0,
      maxThreads: threadsMax,
      idleTimeout: idleMs ?? IDLE_MS,
      // Its default waits in Atomics.wait between jobs, and a thread that waits so hears no timer and no stream.
      atomics: 'disabled',
      recordTiming: false,
      ...(heapMb === undefined ? {} : { resourceLimits: { ...workerMemory, maxOldGenerationSizeMb: heapMb } })
    })
    this.#threads = threads
    // A thread that fails while it starts, or without a job: piscina keeps the job it was started for.
    threads.on('error', (error: unknown) => this.#discard(threads, error))
    threads.on('workerDestroy', () => {
      setImmediate(() => {
        const isStuck = threads.queueSize > 0 && threads.threads.length === 0
        if (isStuck) this.#discard(threads, 'it ended while it started')
      })
    })
    return threads
  }

  /** Gives up these threads and fails their jobs; the next job starts new ones. */
  #discard(threads: Piscina, cause: unknown): void {
    if (this.#threads !== threads || this.#isClosed) return
    this.#threads = null
    this.#opening = null
    this.#options.logger.error({ cause: describe(cause) }, 'a background thread failed')
    this.#discarded = threads.destroy()
  }

  #failure({ task: { job }, bound }: QueuedJob, error: unknown): BrokerError {
    if (this.#isClosed) return new BrokerError('STOPPING')
    if (bound !== null && error instanceof BrokerError) return error
    const id = randomBytes(4).toString('hex')
    this.#options.logger.error({ id, job, cause: describe(error) }, 'a background job failed')
    return new BrokerError('INTERNAL', { id }, { written: 'no' })
  }
}

/** Why a signal was aborted, as an Error. */
function reasonOf(signal: AbortSignal | undefined): Error {
  const reason: unknown = signal?.reason
  return reason instanceof Error ? reason : new Error('the job was taken back')
}

/** How Node ends a thread whose heap is full. */
function isOutOfMemory(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_WORKER_OUT_OF_MEMORY'
}

function describe(cause: unknown): string {
  return cause instanceof Error ? (cause.stack ?? cause.message) : String(cause)
}
