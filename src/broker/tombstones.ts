/**
 * Lets deleted topics be forgotten for good. A deleted topic's handles stay tombstones in the store until no slot and no
 * manifest mentions them any more (V6): else what is found of them would be taken for data that nobody knows. Main thread.
 *
 *   deleted ─▶ on every shard: all slots that were open then are settled, by a job sent after the deletion ─▶ forgotten
 */
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import type { Tombstone } from '../control/store-image.ts'
import type { Store } from '../store/store.ts'

export interface TombstoneParts {
  readonly catalog: Catalog
  readonly store: Pick<Store, 'commit'>
  readonly shards: {
    readonly shardCount: number
    /** Sequence of the newest slot that a shard has opened; 0: none. */
    newestSlot(shard: number): number
    readonly settler: {
      /** Settle jobs sent for a shard so far. */
      settleJobs(shard: number): number
    }
    /** Has everything settled that was written so far. */
    settleAll(): Promise<void>
  }
  readonly logger: Logger
  readonly monotonicMs: () => number
}

/** What a shard has still to do before a tombstone may go: a job later than `job`, with slots up to `sequence`. */
interface Mark {
  readonly sequence: number
  readonly job: number
}

/** So many of them have open slots settled before they are full, not more often than that. */
const PATIENCE = 256
const HURRY_MS = 30_000

export class TombstoneKeeper {
  readonly #parts: TombstoneParts
  readonly #waiting: { readonly tombstone: Tombstone; readonly marks: Map<number, Mark> }[] = []
  /** The newest job of each shard that was committed and adopted. */
  readonly #settled = new Map<number, Mark>()
  #hurriedMs = Number.NEGATIVE_INFINITY

  constructor(parts: TombstoneParts) {
    this.#parts = parts
  }

  /** Takes up what earlier runs left. */
  start(): void {
    for (const tombstone of this.#parts.catalog.tombstones) this.begin(tombstone)()
  }

  /** A topic is deleted in the catalog: jobs sent from here on know it. @returns to be called when every shard has dropped it. */
  begin(tombstone: Tombstone): () => void {
    const { shards } = this.#parts
    const jobs = Array.from({ length: shards.shardCount }, (_, shard) => shards.settler.settleJobs(shard))
    return () => this.#note(tombstone, jobs)
  }

  #note(tombstone: Tombstone, jobs: readonly number[]): void {
    const { shards, monotonicMs } = this.#parts
    const marks = new Map<number, Mark>()
    jobs.forEach((job, shard) => {
      const mark = { sequence: shards.newestSlot(shard), job }
      // A job may have been through before the last shard had dropped the topic: none need follow it.
      if (!isEnough(this.#settled.get(shard), mark)) marks.set(shard, mark)
    })
    this.#waiting.push({ tombstone, marks })
    this.#forget()
    if (this.#waiting.length < PATIENCE || monotonicMs() - this.#hurriedMs < HURRY_MS) return
    this.#hurriedMs = monotonicMs()
    // A shard that is down, or a disk that refuses: they go later.
    shards
      .settleAll()
      .catch((error: unknown) => this.#parts.logger.debug({ err: error }, 'open slots were not settled'))
  }

  /** A settle job of a shard is committed and adopted. @param job its number. @param sequence slots up to it are settled. */
  settled(shard: number, job: number, sequence: number): void {
    const done = { job, sequence }
    this.#settled.set(shard, done)
    for (const { marks } of this.#waiting) {
      const mark = marks.get(shard)
      if (mark !== undefined && isEnough(done, mark)) marks.delete(shard)
    }
    this.#forget()
  }

  /** Forgets what no shard has anything of any more. */
  #forget(): void {
    const { catalog, store, logger } = this.#parts
    const ids = this.#waiting.flatMap(({ tombstone, marks }) => (marks.size === 0 ? [tombstone.id] : []))
    if (ids.length === 0) return
    const kept = this.#waiting.filter(({ marks }) => marks.size > 0)
    this.#waiting.splice(0, this.#waiting.length, ...kept)
    const change = { kind: 'tombstones-forgotten', ids } as const
    store.commit([change]).then(
      () => catalog.apply(change),
      // They stay where they are: the next start takes them up again.
      (error: unknown) => logger.warn({ err: error }, 'deleted topics could not be forgotten')
    )
  }
}

function isEnough(done: Mark | undefined, mark: Mark): boolean {
  return done !== undefined && done.job > mark.job && done.sequence >= mark.sequence
}
