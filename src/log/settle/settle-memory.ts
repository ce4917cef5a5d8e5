/**
 * Memory of a settler, used for job after job: stagings for the logs that are being written at once, one for the pack,
 * and the last blocks of the logs it will go on with. One job uses it at a time, on the thread that made it.
 *
 * Invariants: a job begins only when nothing of the job before is under way (`landed`): what that one wrote too late
 * could else lie over bytes of this one.
 */
import { assert } from '../../base/assert.ts'
import { alignedBuffer } from '../../disk/aligned-memory.ts'
import { AlignedAppender } from '../aligned-appender.ts'
import { TailBlocks } from '../tail-blocks.ts'

/** Of one write that bypasses the page cache (measured: 512 KiB to 1 MiB). */
const STAGING_BYTES = 1024 * 1024
/** Logs written at once, where that is done off the settler's thread: its pool has as many threads. */
const LOGS_MAX = 4
/** Stagings of each: three writes of a large log are under way while one fills (12 partitions: 10 % faster than one). */
const STAGINGS = 4

export class SettleMemory {
  readonly pack: AlignedAppender
  readonly tails = new TailBlocks()
  readonly #logs: readonly AlignedAppender[]

  /** @param stagingBytes of whole blocks: the length of a write. */
  constructor(stagingBytes = STAGING_BYTES) {
    // One piece: each has guard pages of its own. It takes memory only where it is written to.
    const memory = alignedBuffer(stagingBytes * (1 + STAGINGS * LOGS_MAX))
    const stagingAt = (i: number): Buffer => memory.subarray(i * stagingBytes, (i + 1) * stagingBytes)
    this.pack = new AlignedAppender(stagingAt(0))
    this.#logs = Array.from({ length: LOGS_MAX }, (_, log) => {
      const first = 1 + log * STAGINGS
      const more = Array.from({ length: STAGINGS - 1 }, (_, i) => stagingAt(first + 1 + i))
      return new AlignedAppender(stagingAt(first), ...more)
    })
  }

  /** An appender for one more log; it is free again when it was finished and has landed. */
  takeLog(): AlignedAppender {
    const log = this.#logs.find(({ landed }) => landed === null)
    assert(log !== undefined, 'there is memory for another log')
    return log
  }

  /** Resolves when there is memory for another log; null: there is. */
  get busy(): Promise<void> | null {
    if (this.#logs.some(({ landed }) => landed === null)) return null
    return Promise.race(this.#logs.map(({ landed }) => landed as Promise<void>))
  }

  /** Resolves when no write is under way; null: none is. */
  get landed(): Promise<void> | null {
    const flights = this.#logs.flatMap(({ landed }) => landed ?? [])
    return flights.length === 0 ? null : Promise.all(flights).then(() => undefined)
  }
}
