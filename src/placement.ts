/**
 * The number of shards of a data directory: chosen at the first start, changed when somebody asks for another (durability,
 * V7). Main thread; part of the composition: it ties the store, the catalog and the placement thread together.
 *
 *   store   stable(n, e) ─▶ draining(n → m, e) ────────────▶ clearing(m, e + 1, left n) ─▶ stable(m, e + 1)
 *   files                   settle n, write those of e + 1   remove those of e
 *
 * Invariants: the files of an epoch are removed only when the store says that another counts, or that it never came to
 * count; shards start after the commit and before nothing else of this; a start killed anywhere is repeated without harm.
 */
import { existsSync, readdirSync } from 'node:fs'
import type { Logger } from './base/logger.ts'
import type { Catalog } from './control/catalog.ts'
import { decidePlacement, type PlacementDecision } from './control/placement-decision.ts'
import type { CatalogChange } from './control/store-image.ts'
import type { StartReport } from './model/requests.ts'
import { PlacementThread } from './shards/placement-thread.ts'
import { describeChange, shareChanged } from './shards/start-progress.ts'
import type { Store } from './store/store.ts'
import type { TopicPlace } from './wire/shard/settle.ts'

export interface PlacementParts {
  readonly catalog: Catalog
  readonly store: Store
  /** Absolute. */
  readonly dataDirectory: string
  /** What was asked for; null: nothing was. */
  readonly wanted: number | null
  /** Of a new directory. */
  readonly initial: number
  /** Live and deleted topics, by first handle. */
  readonly topicPlaces: () => TopicPlace[]
  /** Faults armed by a test for the change, and for the removal of what it leaves; null: none. */
  readonly faultsOf: (task: 'change' | 'remove') => string | null
  readonly logger: Logger
}

export class PlacementOfShards {
  /** What the shards that are started have. */
  readonly shardCount: number
  readonly epoch: number
  /** By shard: newest slot known to have been durable; of a placement that is still to be made, none. */
  readonly newestSlots: ReadonlyMap<number, number>
  readonly #parts: PlacementParts
  readonly #decision: PlacementDecision
  readonly #thread: PlacementThread
  #isPrepared = false

  /** Decides; changes nothing. @throws Error with one line for the person who started it. */
  constructor(parts: PlacementParts) {
    this.#parts = parts
    const { placement } = parts.catalog
    this.#decision = decidePlacement(placement, parts.wanted, parts.initial)
    this.#thread = new PlacementThread(parts.dataDirectory)
    // The journal is made after the choice is stored: one without it means that the store was lost, and with it all names.
    if (this.#decision.kind === 'choose' && hasLog(`${parts.dataDirectory}/journal`)) {
      throw new Error(
        `${parts.dataDirectory} has a journal but its store.db is new: bring back the store.db that belongs to it`
      )
    }
    const isChange = this.#decision.kind === 'change'
    this.shardCount = isChange ? this.#decision.nextShardCount : this.#decision.shardCount
    this.epoch = isChange || this.#decision.kind === 'choose' ? placement.epoch + 1 : placement.epoch
    this.newestSlots = new Map(
      isChange ? [] : parts.store.image.newestSlots.map(({ shard, sequence }) => [shard, sequence])
    )
  }

  /** What keeps the shards from starting; null: nothing does any more. */
  report(): StartReport | null {
    const decision = this.#decision
    if (this.#isPrepared || decision.kind !== 'change') return null
    const counts = { from: decision.shardCount, to: decision.nextShardCount }
    const { progress } = this.#thread
    return { message: describeChange(counts, progress), progress: shareChanged(counts, progress) }
  }

  /** True if this start changes the number: what the shards do is only the rest of it. */
  get isChange(): boolean {
    return this.#decision.kind === 'change'
  }

  /** On return the placement is in the store and its files are there: shards may start. @throws Error in one line. */
  async prepare(): Promise<void> {
    const { shardCount, epoch } = this
    const decision = this.#decision
    if (decision.kind === 'choose') await this.#commit({ kind: 'placement', shardCount, epoch })
    const isCleared = await this.#clear()
    if (decision.kind === 'give-up') await this.#giveUp()
    if (decision.kind === 'change') {
      if (!isCleared) throw new Error('the files of the number of shards before this one could not be removed')
      await this.#change(decision.shardCount, decision.nextShardCount)
      await this.#clear()
    }
    this.#isPrepared = true
  }

  /** Ends what is under way; nothing may be prepared afterwards. */
  stop(): Promise<void> {
    return this.#thread.stop()
  }

  async #change(from: number, to: number): Promise<void> {
    const { catalog, store, topicPlaces, faultsOf, logger } = this.#parts
    const { epoch } = catalog.placement
    logger.info({ from, to }, 'changing the number of shards')
    await this.#commit({ kind: 'placement', shardCount: from, epoch, nextShardCount: to })
    const problem = await this.#thread.run(
      {
        kind: 'change',
        from: { shardCount: from, placementEpoch: epoch },
        to: { shardCount: to, placementEpoch: epoch + 1 },
        newestSlots: store.image.newestSlots.map(({ shard, sequence }) => [shard, sequence]),
        topics: topicPlaces()
      },
      faultsOf('change')
    )
    if (problem !== null) {
      throw new Error(
        `the number of shards cannot be changed from ${from} to ${to}: ${problem}; nothing is lost: ` +
          `set shards to ${from} to go on as before`
      )
    }
    await this.#commit({ kind: 'placement', shardCount: to, epoch: epoch + 1, previousShardCount: from })
    logger.info({ from, to }, 'the number of shards is changed')
  }

  /** The files of the attempt go first: the next one begins afresh. */
  async #giveUp(): Promise<void> {
    const { catalog, faultsOf, logger } = this.#parts
    const { epoch } = catalog.placement
    const problem = await this.#thread.run(
      { kind: 'remove', placementEpoch: epoch + 1, shardCount: null },
      faultsOf('remove')
    )
    if (problem !== null) {
      logger.warn({ cause: problem }, 'the files of a change of shards that was given up could not be removed')
      return
    }
    await this.#commit({ kind: 'placement', shardCount: this.shardCount, epoch })
    logger.info({ shards: this.shardCount }, 'the change of the number of shards is given up')
  }

  /** Removes what the epoch before left. @returns false: some of it is left; it is tried again by the next start. */
  async #clear(): Promise<boolean> {
    const { catalog, faultsOf, logger } = this.#parts
    const { shardCount, epoch, previousShardCount, nextShardCount } = catalog.placement
    if (previousShardCount === null || shardCount === null) return true
    const problem = await this.#thread.run(
      { kind: 'remove', placementEpoch: epoch - 1, shardCount: previousShardCount },
      faultsOf('remove')
    )
    if (problem !== null) {
      logger.warn({ cause: problem }, 'files of the number of shards before this one could not be removed')
      return false
    }
    const stable = { kind: 'placement', shardCount, epoch } as const
    await this.#commit(nextShardCount === null ? stable : { ...stable, nextShardCount })
    return true
  }

  async #commit(change: Extract<CatalogChange, { kind: 'placement' }>): Promise<void> {
    await this.#parts.store.commit([change])
    this.#parts.catalog.apply(change)
  }
}

/** True if a shard ever wrote below that directory. */
function hasLog(journal: string): boolean {
  if (!existsSync(journal)) return false
  return readdirSync(journal, { recursive: true }).some(name => /(\.slot|(^|\/)manifest)$/.test(String(name)))
}
