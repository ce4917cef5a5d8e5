/**
 * One read of batches that a client will ask for next: made while it works on those before, or too late for the fetch that asked for
 * them. Main thread; owned by its partition. Its memory is its own until an answer takes it over, or it is given up.
 */
import { assert } from '../../../base/assert.ts'
import type { ByteBudget } from '../../../base/byte-budget.ts'
import type { BrokerError } from '../../../model/errors.ts'
import type { TopicId } from '../../../model/ids.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import { BatchesRead, type BatchesTaker } from './batches-read.ts'

/** What a read ahead brings. */
export interface AheadTerms {
  /** null: none that could be read; nothing fits that. */
  readonly topicId: TopicId | null
  readonly offset: number
  /** That it may bring, but for a first batch that is larger. */
  readonly shareBytes: number
  /** Its client knows nothing of zstd. */
  readonly hidesZstd: boolean
}

/** Bytes of batches that were read ahead, since the start. */
export interface AheadCounts {
  /** Their clients asked for them. */
  used: number
  dropped: number
}

/** Of all that is read ahead. */
export interface AheadRoom {
  readonly memory: ByteBudget
  readonly counts: AheadCounts
}

export class AheadRead implements BatchesTaker {
  readonly batches: BatchesRead
  readonly pool: BufferPool
  /** Why there are no batches; null: there are, or it is not over. */
  error: BrokerError | null = null
  readonly #terms: AheadTerms
  readonly #room: AheadRoom
  #heldBytes: number
  #isOver = false
  #isGivenUp = false
  #onOver: (() => void) | null = null

  /** @param room whose memory has reserved its share. @param begun a read on those terms of which nothing has come; left out: it is to be sent. */
  constructor(terms: AheadTerms, pool: BufferPool, room: AheadRoom, begun?: BatchesRead) {
    this.#terms = terms
    this.pool = pool
    this.#room = room
    this.#heldBytes = terms.shareBytes
    this.batches = begun ?? new BatchesRead(this, terms.offset)
    begun?.giveTo(this)
  }

  get hidesZstd(): boolean {
    return this.#terms.hidesZstd
  }

  get shareBytes(): number {
    return this.#terms.shareBytes
  }

  get offset(): number {
    return this.#terms.offset
  }

  /** Would a read on those terms bring the same, or the same in portions of another size? */
  fits({ topicId, offset, shareBytes, hidesZstd }: AheadTerms): boolean {
    const own = this.#terms
    if (topicId === null || topicId !== own.topicId || offset !== own.offset || hidesZstd !== own.hidesZstd)
      return false
    return own.shareBytes <= shareBytes || (this.#isOver && this.batches.bytes <= shareBytes)
  }

  accept(bytes: number): boolean {
    if (this.#isGivenUp) return false
    const excess = bytes - this.#heldBytes
    if (excess > 0) {
      this.#room.memory.charge(excess)
      this.#heldBytes += excess
    }
    return true
  }

  settled(_: BatchesRead, error: BrokerError | null): void {
    this.#isOver = true
    this.error = error
    if (this.#isGivenUp) this.#drop()
    else this.#onOver?.()
  }

  /** Calls back when it is over, maybe at once. */
  whenOver(callback: () => void): void {
    assert(this.#onOver === null && !this.#isGivenUp, 'one fetch waits for a read ahead')
    if (this.#isOver) callback()
    else this.#onOver = callback
  }

  /** A fetch waits for it. */
  get isAwaited(): boolean {
    return this.#onOver !== null
  }

  /** Nobody waits for it any more; it may still be asked for. */
  endWait(): void {
    this.#onOver = null
  }

  /** Its batches are memory of the caller from here on. */
  handOver(): BatchesRead {
    assert(this.#isOver, 'a read ahead is handed over when it has come')
    this.#room.counts.used += this.batches.bytes
    this.#release()
    return this.batches
  }

  /** Nobody wants it. */
  giveUp(): void {
    this.#isGivenUp = true
    if (this.#isOver) this.#drop()
  }

  #drop(): void {
    this.#room.counts.dropped += this.batches.bytes
    this.batches.drop()
    this.#release()
  }

  #release(): void {
    this.#room.memory.release(this.#heldBytes)
    this.#heldBytes = 0
  }
}
