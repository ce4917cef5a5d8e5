/**
 * Requests that wait for room in a ring or for reply bytes. Main thread. First come, first served, within a lane: a lane
 * is a topic (produce) or a partition (consume), so a shard that is slow does not hold up the topics of the others.
 *
 *   rings full    that lane waits; the lanes behind it are tried
 *   bytes full    everyone behind waits: the memory is common, and a big request must not starve behind small ones
 *
 * Invariant: while someone waits, a wake-up is asked for.
 */
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'

/** taken: it is on its way, or nobody wants it any more. */
export type Attempt = 'taken' | 'rings-full' | 'bytes-full'

export interface Waiter {
  readonly lane: string
  /** Tries again. Must not throw, and must not enter a line. */
  attempt(): Attempt
}

export interface WaitLineOptions {
  /** Calls back once when rings had room. */
  readonly whenRoom: (callback: () => void) => void
  /** Calls back once when bytes were given back. */
  readonly whenReleased: (callback: () => void) => void
  /** Runs after waiters got through: there is something to publish. */
  readonly onTaken: () => void
}

export class WaitLine {
  #waiting: Waiter[] = []
  readonly #countByLane = new Map<string, number>()
  readonly #options: WaitLineOptions
  #isRoomAsked = false
  #areBytesAsked = false
  #isDraining = false
  #mustDrainAgain = false

  constructor(options: WaitLineOptions) {
    this.#options = options
  }

  /** True if a newcomer of that lane must stand behind others. */
  hasAhead(lane: string): boolean {
    return this.#areBytesAsked || this.#countByLane.has(lane)
  }

  /** Tries at once if nobody is ahead; else, or if there is no room, stands in line. @throws BrokerError OVERLOADED */
  enter(waiter: Waiter): void {
    const attempt = this.hasAhead(waiter.lane) ? 'rings-full' : waiter.attempt()
    if (attempt !== 'taken') this.wait(waiter, attempt)
  }

  /** Stands in line. @param reason what its attempt missed, if it was tried. @throws BrokerError OVERLOADED if the line is too long. */
  wait(waiter: Waiter, reason: 'rings-full' | 'bytes-full'): void {
    if (this.#waiting.length >= limits.waitingRequestsMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of waiting requests', limit: limits.waitingRequestsMax })
    }
    this.#waiting.push(waiter)
    this.#countByLane.set(waiter.lane, (this.#countByLane.get(waiter.lane) ?? 0) + 1)
    this.#ask(reason)
  }

  #ask(reason: 'rings-full' | 'bytes-full'): void {
    if (reason === 'rings-full' && !this.#isRoomAsked) {
      this.#isRoomAsked = true
      this.#options.whenRoom(this.#onRoom)
    }
    if (reason === 'bytes-full' && !this.#areBytesAsked) {
      this.#areBytesAsked = true
      this.#options.whenReleased(this.#onReleased)
    }
  }

  readonly #onRoom = (): void => {
    this.#isRoomAsked = false
    this.#drain()
  }

  readonly #onReleased = (): void => {
    this.#areBytesAsked = false
    this.#drain()
  }

  /** A waiter that gives up while it is tried releases bytes, which wakes this line inside its own drain: hence the loop. */
  #drain(): void {
    this.#mustDrainAgain = true
    if (this.#isDraining) return
    this.#isDraining = true
    let hasTaken = false
    while (this.#mustDrainAgain) {
      this.#mustDrainAgain = false
      hasTaken = this.#pass() || hasTaken
    }
    this.#isDraining = false
    if (hasTaken) this.#options.onTaken()
  }

  /** Tries everyone once, in order. @returns true if anyone got through. */
  #pass(): boolean {
    const full = new Set<string>()
    const kept: Waiter[] = []
    // Only those behind one that lacks bytes are held up: one ahead of it may hold the very bytes.
    let areBytesFull = false
    for (const waiter of this.#waiting) {
      const { lane } = waiter
      const attempt = areBytesFull || full.has(lane) ? 'rings-full' : waiter.attempt()
      if (attempt === 'taken') {
        const left = (this.#countByLane.get(lane) ?? 0) - 1
        if (left > 0) this.#countByLane.set(lane, left)
        else this.#countByLane.delete(lane)
        continue
      }
      if (attempt === 'rings-full') full.add(lane)
      else areBytesFull = true
      this.#ask(attempt)
      kept.push(waiter)
    }
    const hasTaken = kept.length < this.#waiting.length
    this.#waiting = kept
    return hasTaken
  }
}
