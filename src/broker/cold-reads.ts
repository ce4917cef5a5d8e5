/**
 * Copies of cold segments on the local disk, for reads: fetched when a shard asks, taken away when room is needed, the one
 * unused for longest first. Main thread: it keeps the count; background threads touch the files. The shard that asked goes
 * on when it is told; a store that fails fails only the reads that wait for it.
 */
import type { ColdPlace } from '../background/cold.ts'
import type { ColdJobs } from '../background/jobs.ts'
import type { BackgroundPool } from '../background/pool.ts'
import type { Logger } from '../base/logger.ts'
import { BrokerError } from '../model/errors.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { cachedPaths, type ColdSegment } from '../wire/shard/cold.ts'
import type { ColdEvent } from '../wire/shard/messages.ts'

export interface ColdReadsParts {
  readonly shards: Pick<ShardSet, 'tell'>
  readonly pool: Pick<BackgroundPool<ColdJobs>, 'run'>
  /** null: no cold storage is configured. */
  readonly place: ColdPlace | null
  /** Bytes of all copies together; one is kept whatever its size. */
  readonly cacheBytes: number
  readonly logger: Logger
}

/** What was done since the start, for metrics. */
export interface ColdReadCounts {
  fetches: number
  fetchedBytes: number
  failures: number
  evictions: number
}

interface Copy {
  readonly shard: number
  readonly bytes: number
}

export class ColdReads {
  readonly counts: ColdReadCounts = { fetches: 0, fetchedBytes: 0, failures: 0, evictions: 0 }
  readonly #parts: ColdReadsParts
  /** By name, the one unused for longest first. */
  readonly #copies = new Map<string, Copy>()
  /** Names and bytes of those on their way. */
  readonly #fetching = new Map<string, number>()
  #isFailing = false

  constructor(parts: ColdReadsParts) {
    this.#parts = parts
  }

  /** What a shard says of cold segments. */
  onEvent(shard: number, event: ColdEvent): void {
    if (event.kind === 'copies-used') this.#touch(event.names)
    else if (!this.#fetching.has(event.segment.name)) void this.#fetch(shard, event.segment)
  }

  /** Bytes of copies that are here. */
  get cachedBytes(): number {
    return [...this.#copies.values()].reduce((sum, { bytes }) => sum + bytes, 0)
  }

  #touch(names: readonly string[]): void {
    for (const name of names) {
      const copy = this.#copies.get(name)
      if (copy === undefined) continue
      this.#copies.delete(name)
      this.#copies.set(name, copy)
    }
  }

  async #fetch(shard: number, segment: ColdSegment): Promise<void> {
    const { name, logKey } = segment
    const bytes = segment.logBytes + segment.blocksBytes
    this.#fetching.set(name, bytes)
    // Whoever asks does not have it, or has a bad one.
    this.#copies.delete(name)
    const problem = await this.#bring(segment, this.#makeRoom())
    this.#fetching.delete(name)
    if (problem === null) {
      this.counts.fetches++
      this.counts.fetchedBytes += bytes
      this.#copies.set(name, { shard, bytes })
    } else {
      this.counts.failures++
    }
    this.#note(problem, logKey)
    this.#parts.shards.tell(shard, id => ({ kind: 'fetched', id, name, problem }))
  }

  /** One line when it begins to fail, and one when it works again. */
  #note(problem: string | null, key: string): void {
    const { logger } = this.#parts
    if (problem !== null && !this.#isFailing)
      logger.error({ cause: problem, key }, 'cold storage fails: reads of what lies there are refused until it answers')
    if (problem === null && this.#isFailing) logger.info({}, 'cold storage answers again')
    this.#isFailing = problem !== null
  }

  async #bring(segment: ColdSegment, evict: readonly string[]): Promise<string | null> {
    const { pool, place } = this.#parts
    if (place === null) return 'no cold storage is configured'
    try {
      return (await pool.run('fetchSegment', { place, segment, evict })).problem
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      return error.message
    }
  }

  /** @returns names of copies that go. Their shards close them; a reader that is in the middle of one asks again. */
  #makeRoom(): string[] {
    const { cacheBytes, shards } = this.#parts
    const evicted: string[] = []
    let total = this.cachedBytes
    for (const bytes of this.#fetching.values()) total += bytes
    for (const [name, copy] of this.#copies) {
      if (total <= cacheBytes) break
      total -= copy.bytes
      this.#copies.delete(name)
      this.counts.evictions++
      evicted.push(name)
      shards.tell(copy.shard, id => ({ kind: 'files-unused', id, paths: cachedPaths(name) }))
    }
    return evicted
  }
}
