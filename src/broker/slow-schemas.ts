/**
 * Schemas with which matching lately took more than it may: whose patterns may never end. Main thread.
 *
 *   any other schema ─▶ a free thread
 *   a slow one       ─▶ its turn among all slow ones ─▶ a free thread
 *
 * Invariant: slow schemas have one thread at a time, however many topics have one, so others find one that is free. A new
 * version is a new schema. It must never hold records: whoever waits here holds its own.
 */
import { ChangeTurns } from '../control/change-turns.ts'
import { limits } from '../model/limits.ts'

/** All of them wait for the same turn. */
const TURN = 'slow'

export class SlowSchemas {
  /** By schema id, how many requests in a row must keep within their time until it is like any other; the latest last. */
  readonly #missing = new Map<number, number>()
  readonly #turns = new ChangeTurns()

  has(id: number): boolean {
    return this.#missing.has(id)
  }

  /** Runs it now, or, of a slow schema, when it is its turn. @returns what it returns. */
  run<T>(id: number, match: () => Promise<T>): Promise<T> {
    return this.has(id) ? this.#turns.run(TURN, match) : match()
  }

  /** Matching with it was ended for its time or its memory. */
  noteOver(id: number): void {
    this.#missing.delete(id)
    this.#missing.set(id, limits.slowSchemaRequests)
    if (this.#missing.size <= limits.slowSchemasMax) return
    for (const oldest of this.#missing.keys()) {
      this.#missing.delete(oldest)
      return
    }
  }

  /** Matching with it ended by itself, whatever it found. */
  noteWithin(id: number): void {
    const missing = this.#missing.get(id)
    if (missing === undefined) return
    if (missing > 1) this.#missing.set(id, missing - 1)
    else this.#missing.delete(id)
  }
}
