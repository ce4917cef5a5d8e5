/**
 * A part of a byte budget that one party may hold at most, so that no single one holds what all others need. Main thread.
 * Invariant: held ≤ share, but for one holding that is larger than the whole share while nothing else is held, and for
 * what is here already and had to be counted.
 */
import { assert } from '../../base/assert.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'

export class ByteShare {
  readonly #budget: ByteBudget
  readonly #shareBytes: number
  #heldBytes = 0

  constructor(budget: ByteBudget, shareBytes: number) {
    this.#budget = budget
    this.#shareBytes = shareBytes
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** @returns false, and nothing is held, if the share or the budget has no room. */
  tryReserve(bytes: number): boolean {
    if (this.#heldBytes > 0 && this.#heldBytes + bytes > this.#shareBytes) return false
    if (!this.#budget.tryReserve(bytes)) return false
    this.#heldBytes += bytes
    return true
  }

  /** Counts bytes that are in memory already, whatever the share and the budget. */
  charge(bytes: number): void {
    this.#budget.charge(bytes)
    this.#heldBytes += bytes
  }

  /** Takes back what was reserved in this very step; nobody is called. */
  undo(bytes: number): void {
    this.#heldBytes -= bytes
    assert(this.#heldBytes >= 0, 'more bytes of a share undone than were reserved')
    this.#budget.undo(bytes)
  }

  release(bytes: number): void {
    this.#heldBytes -= bytes
    assert(this.#heldBytes >= 0, 'more bytes of a share released than were reserved')
    this.#budget.release(bytes)
  }

  /** Calls back once after the next release by anyone: the room may be in the share or in the budget. */
  whenReleased(callback: () => void): void {
    this.#budget.whenReleased(callback)
  }
}
