/**
 * What one connection holds of the reply memory, and the most that it may. Main thread only, one owner: its connection.
 * Without it one client that asks for much and reads nothing would hold what all others need.
 * Invariant: held ≤ share, but for a single answer that is larger, and for answers that turned out larger than reserved.
 */
import { assert } from '../../base/assert.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import { limits } from '../../model/limits.ts'

/** shareFull: answers of this connection must leave first. noReplyBytes: answers of anyone. */
export type Reservation = 'held' | 'shareFull' | 'noReplyBytes'

export class ReplyShare {
  readonly #budget: ByteBudget
  readonly #shareBytes: number
  #heldBytes = 0
  #wantedBytes = 0

  constructor(budget: ByteBudget, shareBytes: number) {
    this.#budget = budget
    this.#shareBytes = shareBytes
  }

  /** Would the share now allow what was asked for last? */
  get hasRoom(): boolean {
    return this.#heldBytes === 0 || this.#heldBytes + this.#wantedBytes <= this.#shareBytes
  }

  /** Sets bytes aside for an answer; `held`: until `release`. */
  reserve(bytes: number): Reservation {
    this.#wantedBytes = bytes
    if (!this.hasRoom) return 'shareFull'
    return this.reserveMore(bytes) ? 'held' : 'noReplyBytes'
  }

  /** Counts bytes that are here already, whatever the share. @returns false, and nothing is held, if the memory has no room. */
  reserveMore(bytes: number): boolean {
    if (!this.#budget.tryReserve(bytes)) return false
    this.#heldBytes += bytes
    return true
  }

  /** Counts bytes of an answer that was begun, whatever the share and the memory. */
  charge(bytes: number): void {
    this.#budget.charge(bytes)
    this.#heldBytes += bytes
  }

  /** Gives back what was reserved. */
  release(bytes: number): void {
    this.#heldBytes -= bytes
    assert(this.#heldBytes >= 0, 'a connection gave back more reply bytes than it held')
    this.#budget.release(bytes)
  }

  /** Calls back once when anyone gave bytes back. */
  whenReleased(callback: () => void): void {
    this.#budget.whenReleased(callback)
  }
}

/** @returns what one connection may hold of that memory: its part, and at least the largest answer. */
export function replyShareBytesOf({ limitBytes }: ByteBudget, largestAnswerBytes: number): number {
  return Math.max(largestAnswerBytes, Math.floor(limitBytes / limits.connectionReplyShare))
}
