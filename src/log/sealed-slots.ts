/**
 * The slots of a journal that get no more groups: sealed and to be settled, or ended by a failed write and still without
 * their footer. Shard thread only; owned by the journal.
 */
import type { SlotToSettle } from '../wire/shard/settle.ts'
import type { SlotFiles } from './slot-files.ts'

/** A slot whose groups are settled next: nothing is added to it any more. */
export interface SealedSlot extends SlotToSettle {
  readonly ordinal: number
  /** Of its file. */
  readonly capacityBytes: number
  /** Up to the end of its last group. */
  readonly usedBytes: number
  /** Monotonic clock, ms. */
  readonly sealedAtMs: number
}

export class SealedSlots {
  readonly #slots: SealedSlot[] = []

  /** Oldest first. */
  get all(): readonly SealedSlot[] {
    return this.#slots
  }

  get bytes(): number {
    return this.#slots.reduce((sum, slot) => sum + slot.capacityBytes, 0)
  }

  /** One that an error kept from being sealed in its turn goes to its place. */
  add(slot: SealedSlot): void {
    const at = this.#slots.findIndex(other => other.sequence > slot.sequence)
    this.#slots.splice(at < 0 ? this.#slots.length : at, 0, slot)
  }

  /** Slots up to that sequence are settled: their files may be used again. */
  freeUpTo(sequence: number, files: SlotFiles, slotBytes: number): void {
    for (let slot = this.#slots[0]; slot !== undefined && slot.sequence <= sequence; slot = this.#slots[0]) {
      this.#slots.shift()
      files.free(slot.ordinal, slot.capacityBytes, slotBytes)
    }
  }
}
