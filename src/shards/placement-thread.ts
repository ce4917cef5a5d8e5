/**
 * Main's face of the placement thread: one task at a time, each in a thread of its own. Main thread only.
 * Ended anywhere, a task leaves what counts as it was, and may be done again.
 */
import { Worker } from 'node:worker_threads'
import { assert } from '../base/assert.ts'
import { siblingModule } from '../base/module-url.ts'
import {
  createPlacementProgress,
  readPlacementProgress,
  type PlacementProgress,
  type PlacementReply,
  type PlacementTask,
  type PlacementThreadStart
} from '../wire/shard/placement.ts'

export class PlacementThread {
  readonly #dataDirectory: string
  readonly #progress = createPlacementProgress()
  #worker: Worker | null = null
  #isStopped = false

  /** @param dataDirectory absolute. */
  constructor(dataDirectory: string) {
    this.#dataDirectory = dataDirectory
  }

  /** How far the task is; zeros before the first. */
  get progress(): PlacementProgress {
    return readPlacementProgress(this.#progress)
  }

  /**
   * @param faults armed by a test, or null.
   * @returns what went wrong, a part of a sentence for an operator; null: it is done. @throws what a bug threw.
   */
  async run(task: PlacementTask, faults: string | null): Promise<string | null> {
    assert(this.#worker === null, 'one task at a time')
    if (this.#isStopped) return 'the broker stops'
    const workerData: PlacementThreadStart = {
      dataDirectory: this.#dataDirectory,
      task,
      progress: this.#progress,
      faults
    }
    const entry = siblingModule(import.meta.url, '../../workers/placement/entry')
    const worker = new Worker(entry, { workerData, name: 'placement' })
    this.#worker = worker
    try {
      return await outcomeOf(worker)
    } finally {
      this.#worker = null
    }
  }

  /** Ends the thread where it stands. */
  async stop(): Promise<void> {
    this.#isStopped = true
    await this.#worker?.terminate()
  }
}

function outcomeOf(worker: Worker): Promise<string | null> {
  return new Promise((resolve, reject) => {
    let problem: string | null = 'its thread was ended'
    worker.on('message', (reply: PlacementReply) => {
      problem = reply.kind === 'done' ? null : reply.problem
    })
    worker.on('error', reject)
    // Only when it has ended does nothing touch the directory any more.
    worker.on('exit', () => resolve(problem))
  })
}
