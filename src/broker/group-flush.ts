/**
 * Writes committed offsets to the store, once a second and at shutdown (spec 6): a crash loses the last second of them at
 * most; who wants to hear when they are on disk has them written at once. Main thread. In slices of some rows: between two of them others get their turn, here and in the store.
 */
import type { Logger } from '../base/logger.ts'
import type { GroupTable } from '../control/groups/group-table.ts'
import { toBrokerError, type BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import type { Store } from '../store/store.ts'

export interface GroupFlushParts {
  readonly table: GroupTable
  readonly store: Store
  readonly logger: Logger
}

export class GroupFlush {
  readonly #parts: GroupFlushParts
  #timer: NodeJS.Timeout | null = null
  #flushing: Promise<void> | null = null
  /** The flush after the one that runs, where somebody waits for it. */
  #next: Promise<void> | null = null
  /** Of the last flush. */
  #failure: BrokerError | null = null
  #problem: string | null = null

  constructor(parts: GroupFlushParts) {
    this.#parts = parts
  }

  /** What is tried again in vain, one sentence; null: all is well. */
  get problem(): string | null {
    return this.#problem
  }

  /** Once: from now on, until stop(). */
  start(): void {
    this.#timer = setInterval(() => {
      // One that takes longer than the time between two is not joined by another.
      if (this.#flushing === null) void this.flush()
    }, limits.groupFlushMs)
    this.#timer.unref()
  }

  /** Ends the timer and writes what is left. */
  async stop(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
    await this.#flushing
    await this.flush()
    if (this.#parts.table.isChanged) {
      this.#parts.logger.error({}, 'committed offsets of the last second could not be stored: they are lost')
    }
  }

  /** Writes all that changed, or as much as the store takes: what it does not is tried again later. */
  flush(): Promise<void> {
    this.#flushing ??= this.#writeAll().finally(() => {
      this.#flushing = null
    })
    return this.#flushing
  }

  /**
   * Resolves when all that was committed until now is on disk: those who ask while a flush runs share the next one.
   * @fails what the store fails with; the offsets stay committed, and are tried again
   */
  async stored(): Promise<void> {
    // What runs may have taken its rows before.
    this.#next ??= (this.#flushing ?? Promise.resolve()).then(() => {
      this.#next = null
      return this.flush()
    })
    await this.#next
    if (this.#failure !== null) throw this.#failure
  }

  async #writeAll(): Promise<void> {
    const { table, store, logger } = this.#parts
    for (;;) {
      const rows = table.takeChanged(limits.groupFlushRows)
      if (rows === null) break
      try {
        await store.commit([{ kind: 'group-offsets', rows }])
      } catch (error) {
        table.giveBack(rows)
        this.#failure = toBrokerError(error)
        // Told once, until it works again.
        if (this.#problem === null) logger.warn({ err: error }, 'committed offsets could not be stored; tried again')
        this.#problem = 'committed offsets of consumer groups are not stored: a crash now would lose them'
        return
      }
    }
    this.#failure = null
    if (this.#problem !== null) logger.info({}, 'committed offsets are stored again')
    this.#problem = null
  }
}
