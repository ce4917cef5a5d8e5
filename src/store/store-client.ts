/**
 * Main's face of the store thread: starts it, numbers the commits, and resolves them as their results come.
 * Main thread only. Invariant: every commit is answered exactly once, also when the thread dies.
 */
import { randomBytes } from 'node:crypto'
import { Worker } from 'node:worker_threads'
import { assert, unreachable } from '../base/assert.ts'
import { workerMemory } from '../base/worker-memory.ts'
import type { Logger } from '../base/logger.ts'
import { siblingModule } from '../base/module-url.ts'
import type { StoreChange, StoreImage } from '../control/store-image.ts'
import { BrokerError, errorCodeOf } from '../model/errors.ts'
import type { CommitResult, StoreReply, StoreRequest, StoreThreadStart } from './protocol.ts'
import { StoreOpenError } from './store-open-error.ts'
import type { Store } from './store.ts'

export interface StoreOptions {
  /** Made (0700) if missing. */
  readonly dataDir: string
  readonly logger: Logger
}

/**
 * Opens the data directory for this process: takes its lock, then the store, in a thread of its own.
 * The store keeps the process alive until close().
 *
 * @throws StoreOpenError with one clear line: in use, newer format, unusable, damaged. Then nothing is held.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const thread = new StoreThread(options)
  const image = await thread.opened
  return new StoreClient(thread, image)
}

class StoreClient implements Store {
  readonly image: StoreImage
  readonly #thread: StoreThread

  constructor(thread: StoreThread, image: StoreImage) {
    this.#thread = thread
    this.image = image
  }

  commit(changes: readonly StoreChange[]): Promise<void> {
    return this.#thread.commit(changes)
  }

  close(): Promise<void> {
    return this.#thread.close()
  }
}

interface PendingCommit {
  readonly resolve: () => void
  readonly reject: (error: BrokerError) => void
}

/** One run of the thread: starting → open → closing → ended. */
class StoreThread {
  /** Resolves once with the image, or rejects with why the directory was not opened. */
  readonly opened: Promise<StoreImage>
  readonly #ended: Promise<void>
  readonly #worker: Worker
  readonly #logger: Logger
  readonly #pending: Map<number, PendingCommit> = new Map()
  #nextId = 1
  #isClosing = false
  #isEnded = false

  constructor({ dataDir, logger }: StoreOptions) {
    this.#logger = logger
    const workerData: StoreThreadStart = { dataDir }
    const entry = siblingModule(import.meta.url, '../../workers/store/entry')
    const worker = new Worker(entry, { name: 'store', workerData, resourceLimits: workerMemory })
    this.#worker = worker
    const opening = Promise.withResolvers<StoreImage>()
    this.opened = opening.promise
    worker.on('message', (reply: StoreReply) => this.#receive(reply, opening))
    worker.on('error', error => {
      logger.error({ cause: error instanceof Error ? error.stack : String(error) }, 'the store thread died')
      opening.reject(new StoreOpenError('unusable', `data directory ${dataDir}: the store thread died`, error))
    })
    this.#ended = new Promise(resolve => {
      worker.once('exit', () => {
        this.#isEnded = true
        this.#failPending()
        resolve()
      })
    })
  }

  commit(changes: readonly StoreChange[]): Promise<void> {
    assert(changes.length > 0, 'a commit must change something')
    if (this.#isClosing) return Promise.reject(new BrokerError('STOPPING'))
    if (this.#isEnded) return Promise.reject(new BrokerError('NOT_READY', { problem: 'the store has stopped' }))
    const id = this.#nextId++
    return new Promise((resolve, reject) => {
      this.#pending.set(id, { resolve, reject })
      this.#send({ kind: 'commit', id, changes })
    })
  }

  close(): Promise<void> {
    if (!this.#isClosing && !this.#isEnded) this.#send({ kind: 'close' })
    this.#isClosing = true
    return this.#ended
  }

  #send(request: StoreRequest): void {
    this.#worker.postMessage(request)
  }

  #receive(reply: StoreReply, opening: PromiseWithResolvers<StoreImage>): void {
    switch (reply.kind) {
      case 'opened':
        return opening.resolve(reply.image)
      case 'refused': {
        // The thread ends by itself; waiting for it means that a caller who tries again finds nothing of it left.
        const refusal = new StoreOpenError(reply.code, reply.message)
        void this.#ended.then(() => opening.reject(refusal))
        return
      }
      case 'committed':
        for (const result of reply.results) this.#settle(result)
        return
      case 'log':
        return this.#logger[reply.level](reply.fields, reply.message)
      case 'closed':
        return
      default:
        unreachable(reply)
    }
  }

  #settle(result: CommitResult): void {
    const pending = this.#pending.get(result.id)
    assert(pending !== undefined, 'a result must belong to a commit that waits')
    this.#pending.delete(result.id)
    if (result.isCommitted) pending.resolve()
    else pending.reject(new BrokerError(errorCodeOf(result.wire), result.details, { written: result.written }))
  }

  #failPending(): void {
    if (this.#pending.size === 0) return
    const id = randomBytes(4).toString('hex')
    this.#logger.error({ id, count: this.#pending.size }, 'commits were in progress when the store thread ended')
    for (const pending of this.#pending.values()) {
      pending.reject(new BrokerError('INTERNAL', { id }, { written: 'unknown' }))
    }
    this.#pending.clear()
  }
}
