/**
 * What of one client is not settled: bytes against their limit, and who waits for room or for the end. Any thread with an
 * event loop; one owner.
 *
 * Invariant: each record enters one generation once and leaves it once.
 */
import { Bell } from './pauses.ts'

/** Records that were sent between two calls of flush. */
export class Generation {
  readonly #room: Room
  openCount = 0

  constructor(room: Room) {
    this.#room = room
  }

  /** One of its records is settled. */
  leave(bytes: number): void {
    this.openCount--
    this.#room.onLeft(bytes, this)
  }
}

export class Room {
  readonly #bytesMax: number
  #bytes = 0
  readonly #space = new Bell()
  /** Those before the current one with open records. */
  readonly #earlier = new Set<Generation>()
  /** The one of records that are sent now. */
  #current = new Generation(this)
  readonly #settled = new Bell()

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax
  }

  /** Of the records that are not settled. */
  get bytes(): number {
    return this.#bytes
  }

  get hasSpace(): boolean {
    return this.#bytes < this.#bytesMax
  }

  /** A record is sent. @returns what it leaves when it is settled. */
  enter(bytes: number): Generation {
    this.#bytes += bytes
    this.#current.openCount++
    return this.#current
  }

  /** Called by the generations. */
  onLeft(bytes: number, generation: Generation): void {
    const hadSpace = this.hasSpace
    this.#bytes -= bytes
    if (!hadSpace && this.hasSpace) this.#space.ring()
    if (generation.openCount === 0 && this.#earlier.delete(generation)) this.#settled.ring()
  }

  /** Resolves when there may be space again, or wake() was called. */
  spaced(): Promise<void> {
    return this.#space.wait(Infinity)
  }

  wake(): void {
    this.#space.ring()
  }

  /** Resolves when all that entered so far is settled. */
  async settled(): Promise<void> {
    if (this.#current.openCount > 0) this.#earlier.add(this.#current)
    const before = [...this.#earlier]
    this.#current = new Generation(this)
    while (before.some(generation => generation.openCount > 0)) await this.#settled.wait(Infinity)
  }
}
