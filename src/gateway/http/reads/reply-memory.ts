/**
 * What HTTP reads hold of the reply memory, by party: the key that asks, or the client's address while authentication is
 * off. Main thread only. A party that neither holds nor asks takes no memory.
 *
 *   reserve(wanted) ──▶ held: wanted, or less ──▶ settle(total): the surplus goes back ──▶ take(n): as the socket takes
 *                  └──▶ share-full, bytes-full: it waits in the read line
 *
 * A read that finds too little for its max_bytes is not made to wait for the rest: it gets a part of what is free, and
 * its answer has fewer records, as a consume may. So clients that take nothing hold ever smaller answers, and those that
 * get on are served at once, also where all of them are one party.
 * Invariant: what is charged for an answer is at least what of it may still be in this process's memory.
 */
import { assert } from '../../../base/assert.ts'
import type { ByteBudget } from '../../../base/byte-budget.ts'
import { limits } from '../../../model/limits.ts'
import { ByteShare } from '../../shared/byte-share.ts'

/** What an answer needs beyond max_bytes: its frame, and the fields around the records. */
const ANSWER_MARGIN_BYTES = 64 * 1024

/** The least that is reserved for a read that asks for more. */
const LEAST_BYTES = limits.shortReadBytesMin + ANSWER_MARGIN_BYTES

/** Bytes are given back in steps of this size, so that those who wait are not called for every few bytes. */
const RELEASE_BYTES = 64 * 1024

/** share-full: answers of this party must leave first. bytes-full: answers of anyone. */
export type Reservation = 'held' | 'share-full' | 'bytes-full'

/** What a read of so many bytes reserves. */
export function answerBytesOf(maxBytes: number): number {
  return maxBytes + ANSWER_MARGIN_BYTES
}

/** What of `wantedBytes` a read gets while `roomBytes` are free; 0: nothing yet. */
export function grantOf(wantedBytes: number, roomBytes: number): number {
  if (wantedBytes <= roomBytes) return wantedBytes
  const bytes = Math.max(LEAST_BYTES, Math.floor(roomBytes / limits.shortReadShare))
  return bytes <= roomBytes ? bytes : 0
}

/** One party. Made and forgotten by ReplyMemory. */
export class ReplyParty {
  readonly name: string
  readonly #budget: ByteBudget
  readonly #share: ByteShare
  readonly #shareBytes: number
  /** What its last read wanted, up to half of the share, that did not get it because of that; 0: none. */
  #missedBytes = 0
  /** Holdings that are open. */
  holdingCount = 0

  constructor(name: string, budget: ByteBudget, shareBytes: number) {
    this.name = name
    this.#budget = budget
    this.#share = new ByteShare(budget, shareBytes)
    this.#shareBytes = shareBytes
  }

  get heldBytes(): number {
    return this.#share.heldBytes
  }

  /** Also a single read gets no more: else one client after the other could have all of a small share to itself. */
  get #roomBytes(): number {
    return Math.max(0, this.#shareBytes - this.heldBytes)
  }

  /** True while it holds so much that a read of its own was made smaller, or waits. */
  get isShort(): boolean {
    return this.#missedBytes > this.#roomBytes
  }

  /** @returns bytes reserved, at most `wantedBytes`; 0: none; and why. */
  reserve(wantedBytes: number): { readonly bytes: number; readonly outcome: Reservation } {
    const roomBytes = this.#roomBytes
    if (wantedBytes > roomBytes) this.#missedBytes = Math.min(wantedBytes, Math.floor(this.#shareBytes / 2))
    if (grantOf(wantedBytes, roomBytes) === 0) return { bytes: 0, outcome: 'share-full' }
    const bytes = grantOf(wantedBytes, Math.min(roomBytes, this.#budget.roomBytes))
    if (bytes === 0) return { bytes, outcome: 'bytes-full' }
    const isHeld = this.#share.tryReserve(bytes)
    assert(isHeld, 'a grant fits the share and the memory')
    return { bytes, outcome: 'held' }
  }

  /** Counts bytes of an answer that is larger than what was reserved: it is here, and it is sent. */
  charge(bytes: number): void {
    this.#share.charge(bytes)
  }

  undo(bytes: number): void {
    this.#share.undo(bytes)
  }

  release(bytes: number): void {
    this.#share.release(bytes)
  }
}

export class ReplyMemory {
  readonly #budget: ByteBudget
  readonly #shareBytes: number
  readonly #parties = new Map<string, ReplyParty>()

  constructor(budget: ByteBudget) {
    this.#budget = budget
    this.#shareBytes = Math.max(LEAST_BYTES, Math.floor(budget.limitBytes / limits.partyReplyShare))
  }

  /** Parties that hold or ask. */
  get partyCount(): number {
    return this.#parties.size
  }

  /** Opens what one answer will hold. It must be closed, once. */
  open(partyName: string): ReplyHolding {
    let party = this.#parties.get(partyName)
    if (party === undefined) {
      party = new ReplyParty(partyName, this.#budget, this.#shareBytes)
      this.#parties.set(partyName, party)
    }
    return new ReplyHolding(this, party)
  }

  /** To be called by a holding that is closed. */
  forget(party: ReplyParty): void {
    party.holdingCount--
    if (party.holdingCount > 0) return
    assert(party.heldBytes === 0, 'a party without answers holds nothing')
    this.#parties.delete(party.name)
  }
}

/** What one answer holds, from before its read to its last byte. Owned by the exchange. */
export class ReplyHolding {
  readonly party: ReplyParty
  readonly #memory: ReplyMemory
  #heldBytes = 0
  /** Taken by the socket, and not given back yet. */
  #takenBytes = 0
  #isSettled = false
  #isClosed = false

  /** Made by ReplyMemory.open. */
  constructor(memory: ReplyMemory, party: ReplyParty) {
    this.#memory = memory
    this.party = party
    party.holdingCount++
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** True while reads of the same party want what its answers hold. */
  get isShort(): boolean {
    return this.party.isShort
  }

  /**
   * Reserves for a read of up to so many bytes, or of fewer if so many are not free. Nothing may be held yet.
   * @returns held: readBytesMax says for how much the read may ask.
   */
  reserve(maxBytes: number): Reservation {
    assert(this.#heldBytes === 0 && !this.#isClosed, 'a holding reserves once')
    const { bytes, outcome } = this.party.reserve(answerBytesOf(maxBytes))
    this.#heldBytes = bytes
    return outcome
  }

  /** Reserves for bytes that are here, and are kept. @returns false: so many are not free, and nothing is held. */
  tryKeep(bytes: number): boolean {
    assert(this.#heldBytes === 0 && !this.#isClosed, 'a holding reserves once')
    const granted = this.party.reserve(bytes).bytes
    if (granted < bytes) this.party.undo(granted)
    else this.#heldBytes = bytes
    return granted === bytes
  }

  /** What is kept of the answer has so many bytes: the rest goes back, or what it has more is counted. */
  keep(bytes: number): void {
    this.#holdExactly(bytes)
  }

  #holdExactly(bytes: number): void {
    const surplusBytes = this.#heldBytes - bytes
    this.#heldBytes = bytes
    if (surplusBytes > 0) this.party.release(surplusBytes)
    else this.party.charge(-surplusBytes)
  }

  /** What the read may ask for. */
  get readBytesMax(): number {
    return this.#heldBytes - ANSWER_MARGIN_BYTES
  }

  /** The read could not be made after all, in the step in which it was reserved for. */
  undo(): void {
    this.party.undo(this.#heldBytes)
    this.#heldBytes = 0
  }

  /** The answer has so many bytes: what is held beyond goes back; what it has more, one record larger than max_bytes, is counted. */
  settle(totalBytes: number): void {
    if (this.#isSettled || this.#isClosed) return
    this.#isSettled = true
    this.#holdExactly(totalBytes)
  }

  /** The socket took so many bytes more of a settled answer. May call those who wait for memory. */
  take(bytes: number): void {
    if (!this.#isSettled || this.#isClosed) return
    this.#takenBytes += bytes
    assert(this.#takenBytes <= this.#heldBytes, 'no more of an answer is taken than there is')
    if (this.#takenBytes < RELEASE_BYTES) return
    const takenBytes = this.#takenBytes
    this.#takenBytes = 0
    this.#heldBytes -= takenBytes
    this.party.release(takenBytes)
  }

  /** Gives everything back. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    const bytes = this.#heldBytes
    this.#heldBytes = 0
    if (bytes > 0) this.party.release(bytes)
    this.#memory.forget(this.party)
  }
}
