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
  /** Copies that are on their way together may be beyond that. */
  readonly fetchesAtOnce: number
  readonly logger: Logger
}

/** What was done since the start, for metrics. */
export interface ColdReadCounts {
  fetches: number
  fetchedBytes: number
  failures: number
  evictions: number
}

/** Why a copy did not come. */
interface FetchFailure {
  /** For the log: names the bucket or the path. */
  readonly cause: string
  /** For callers, who may be anybody: a part of a sentence. */
  readonly problem: string
}

/** A failure that names nothing that is not for everybody. */
function failureForAll(problem: string): FetchFailure {
  return { cause: problem, problem }
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
  /** By name, those whose turn is still to come: room is made for each when it comes, as it is then. As many as reads wait for. */
  readonly #line = new Map<string, { readonly shard: number; readonly segment: ColdSegment }>()
  #isFailing = false

  constructor(parts: ColdReadsParts) {
    this.#parts = parts
  }

  /** What a shard says of cold segments. */
  onEvent(shard: number, event: ColdEvent): void {
    if (event.kind === 'copies-used') this.#touch(event.names)
    else this.#ask(shard, event.segment)
  }

  #ask(shard: number, segment: ColdSegment): void {
    if (this.#fetching.has(segment.name) || this.#line.has(segment.name)) return
    this.#line.set(segment.name, { shard, segment })
    this.#goOn()
  }

  #goOn(): void {
    for (const [name, { shard, segment }] of this.#line) {
      if (this.#fetching.size >= this.#parts.fetchesAtOnce) return
      this.#line.delete(name)
      void this.#fetch(shard, segment)
    }
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
    const failure = await this.#bring(segment, this.#makeRoom())
    this.#fetching.delete(name)
    if (failure === null) {
      this.counts.fetches++
      this.counts.fetchedBytes += bytes
      this.#copies.set(name, { shard, bytes })
    } else {
      this.counts.failures++
    }
    this.#note(failure, logKey)
    this.#parts.shards.tell(shard, id => ({ kind: 'fetched', id, name, problem: failure?.problem ?? null }))
    this.#goOn()
  }

  /** One line when it begins to fail, and one when it works again; the others for who looks closely. */
  #note(failure: FetchFailure | null, key: string): void {
    const { logger } = this.#parts
    if (failure === null) {
      if (this.#isFailing) logger.info({}, 'cold storage answers again')
    } else if (this.#isFailing) logger.debug({ cause: failure.cause, key }, 'a cold segment could not be fetched')
    else {
      const fields = { cause: failure.cause, key }
      logger.error(fields, 'cold storage fails: reads of what lies there are refused until it answers')
    }
    this.#isFailing = failure !== null
  }

  async #bring(segment: ColdSegment, evict: readonly string[]): Promise<FetchFailure | null> {
    const { pool, place } = this.#parts
    if (place === null) return failureForAll('no cold storage is configured')
    try {
      const { problem } = await pool.run('fetchSegment', { place, segment, evict })
      return problem === null
        ? null
        : { cause: problem, problem: 'the store refused, and the log of the broker says why' }
    } catch (error) {
      if (!(error instanceof BrokerError)) throw error
      return failureForAll(error.message)
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
