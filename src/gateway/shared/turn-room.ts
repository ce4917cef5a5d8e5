/**
 * Memory that frames get in turn: one client address after the other, and the frames of an address in the order in which
 * they asked. Main thread only.
 *
 * Invariants
 * - held ≤ limit, and of one address ≤ its share, but for one frame that is larger while nothing else is held of it.
 * - Nobody overtakes a frame for which the whole, or the budget that it is part of, is too full: it empties until that one fits. An
 *   address that holds its share is passed over meanwhile.
 * - Who holds room asks for no more before that is given back. So nobody waits in a circle.
 */
import { assert } from '../../base/assert.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'

/** A frame's place: in the line of its address, and in the room once it is granted. */
export interface Place {
  readonly isGranted: boolean
  /** What was asked for, or is still held. */
  readonly bytes: number
}

interface Asked {
  isGranted: boolean
  bytes: number
  readonly line: Line
  readonly onGranted: () => void
}

/** Of one address: what it holds, and who waits, first in front. */
interface Line {
  readonly address: string
  heldBytes: number
  readonly waiting: Set<Asked>
}

export class TurnRoom {
  readonly #limitBytes: number
  readonly #addressBytesMax: number
  readonly #budget: ByteBudget | null
  #heldBytes = 0
  /** Does whose turn it is wait for what others hold? */
  #isFull = false
  #isBudgetAsked = false
  readonly #lines = new Map<string, Line>()
  /** Those in which somebody waits; whose turn it is stands in front. */
  readonly #turns = new Set<Line>()

  /**
   * @param addressBytesMax of which one address may hold so much.
   * @param budget what is held is part of; null: it stands beside all others.
   */
  constructor(limitBytes: number, addressBytesMax: number, budget: ByteBudget | null = null) {
    this.#limitBytes = limitBytes
    this.#addressBytesMax = addressBytesMax
    this.#budget = budget
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Does anybody wait? */
  get isShort(): boolean {
    return this.#turns.size > 0
  }

  /** Does anybody wait for what that address holds? */
  isShortFor(address: string): boolean {
    return this.#isFull || (this.#lines.get(address)?.waiting.size ?? 0) > 0
  }

  /** @param onGranted called when it is, unless it is so on return. It must not come back here. */
  ask(address: string, bytes: number, onGranted: () => void): Place {
    let line = this.#lines.get(address)
    if (line === undefined) {
      line = { address, heldBytes: 0, waiting: new Set() }
      this.#lines.set(address, line)
    }
    const asked: Asked = { isGranted: false, bytes, line, onGranted }
    line.waiting.add(asked)
    this.#turns.add(line)
    this.#grant(asked)
    return asked
  }

  /** Gives back all but so many bytes. */
  keep(place: Place, bytes: number): void {
    const asked = place as Asked
    assert(asked.isGranted && bytes <= asked.bytes, 'no more is kept than was granted')
    const spareBytes = asked.bytes - bytes
    asked.bytes = bytes
    this.#giveBack(asked.line, spareBytes)
    this.#grant(null)
  }

  /** Gives all back, or asks for it no more. */
  leave(place: Place): void {
    const { isGranted, bytes, line } = place as Asked
    if (isGranted) {
      this.#giveBack(line, bytes)
    } else {
      assert(line.waiting.delete(place as Asked), 'who has no room waits for it')
      if (line.waiting.size === 0) this.#turns.delete(line)
    }
    if (line.heldBytes === 0 && line.waiting.size === 0) this.#lines.delete(line.address)
    this.#grant(null)
  }

  #giveBack(line: Line, bytes: number): void {
    this.#heldBytes -= bytes
    line.heldBytes -= bytes
    assert(line.heldBytes >= 0 && this.#heldBytes >= line.heldBytes, 'more room given back than was held')
    this.#budget?.release(bytes)
  }

  /** Is there room for so much, of whomever? It is reserved in the budget then. */
  #tryReserve(bytes: number): boolean {
    if (this.#heldBytes > 0 && this.#heldBytes + bytes > this.#limitBytes) return false
    if (this.#budget === null || this.#budget.tryReserve(bytes)) return true
    if (this.#isBudgetAsked) return false
    this.#isBudgetAsked = true
    this.#budget.whenReleased(() => {
      this.#isBudgetAsked = false
      this.#grant(null)
    })
    return false
  }

  /** @param caller who sees by itself whether it was granted. */
  #grant(caller: Asked | null): void {
    this.#isFull = false
    for (const line of this.#turns) {
      const [first] = line.waiting
      assert(first !== undefined, 'in a line that has a turn somebody waits')
      if (line.heldBytes > 0 && line.heldBytes + first.bytes > this.#addressBytesMax) continue
      if (!this.#tryReserve(first.bytes)) {
        this.#isFull = true
        return
      }
      line.waiting.delete(first)
      // Behind the others, where this loop comes by once more.
      this.#turns.delete(line)
      if (line.waiting.size > 0) this.#turns.add(line)
      line.heldBytes += first.bytes
      this.#heldBytes += first.bytes
      first.isGranted = true
      if (first !== caller) first.onGranted()
    }
  }
}
