/**
 * The memory in which large gzip frames are inflated. It stands beside the request memory, so half-received frames cannot
 * take it: a frame that came whole waits only for frames that are being inflated. Main thread only; one per gateway.
 *
 * Room is given in turn: one address after the other, and the frames of an address in the order in which they asked.
 *
 * Invariants
 * - held ≤ limit, and of one address ≤ its share, but for one frame that is larger while nothing else is held of it.
 * - Nobody overtakes a frame for which the whole is too full: it empties until that one fits. An address that holds its share is passed
 *   over meanwhile.
 * - Who holds room asks for no more before that is given back. So nobody waits in a circle.
 */
import { assert } from '../../base/assert.ts'

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

export class InflatingRoom {
  readonly #limitBytes: number
  readonly #addressBytesMax: number
  #heldBytes = 0
  readonly #lines = new Map<string, Line>()
  /** Those in which somebody waits; whose turn it is stands in front. */
  readonly #turns = new Set<Line>()

  /** @param addressBytesMax of which one address may hold so much. */
  constructor(limitBytes: number, addressBytesMax: number) {
    this.#limitBytes = limitBytes
    this.#addressBytesMax = addressBytesMax
  }

  get heldBytes(): number {
    return this.#heldBytes
  }

  /** Does anybody wait? */
  get isShort(): boolean {
    return this.#turns.size > 0
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
    this.#heldBytes -= asked.bytes - bytes
    asked.line.heldBytes -= asked.bytes - bytes
    asked.bytes = bytes
    this.#grant(null)
  }

  /** Gives all back, or asks for it no more. */
  leave(place: Place): void {
    const { isGranted, bytes, line } = place as Asked
    if (isGranted) {
      this.#heldBytes -= bytes
      line.heldBytes -= bytes
    } else {
      assert(line.waiting.delete(place as Asked), 'who has no room waits for it')
      if (line.waiting.size === 0) this.#turns.delete(line)
    }
    assert(line.heldBytes >= 0 && this.#heldBytes >= line.heldBytes, 'more room given back than was held')
    if (line.heldBytes === 0 && line.waiting.size === 0) this.#lines.delete(line.address)
    this.#grant(null)
  }

  /** @param caller who sees by itself whether it was granted. */
  #grant(caller: Asked | null): void {
    for (const line of this.#turns) {
      const [first] = line.waiting
      assert(first !== undefined, 'in a line that has a turn somebody waits')
      if (line.heldBytes > 0 && line.heldBytes + first.bytes > this.#addressBytesMax) continue
      if (this.#heldBytes > 0 && this.#heldBytes + first.bytes > this.#limitBytes) return
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
