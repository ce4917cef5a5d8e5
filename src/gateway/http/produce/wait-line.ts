/**
 * Requests that wait for room in a ring. Main thread. First come, first served, within a lane: a lane is a topic, so a
 * shard that is slow does not hold up the topics of the others.
 *
 * Invariant: while someone waits, a wake-up is asked for.
 */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'

/** taken: it is on its way, or nobody wants it any more. */
export type Attempt = 'taken' | 'rings-full'

export interface Waiter {
  readonly lane: string
  /** Tries again. Must not throw, and must not enter a line. */
  attempt(): Attempt
}

export interface WaitLineOptions {
  /** Calls back once when rings had room. */
  readonly whenRoom: (callback: () => void) => void
  /** Runs after waiters got through: there is something to publish. */
  readonly onTaken: () => void
}

export class WaitLine {
  #waiting: Waiter[] = []
  readonly #countByLane = new Map<string, number>()
  readonly #options: WaitLineOptions
  #isRoomAsked = false

  constructor(options: WaitLineOptions) {
    this.#options = options
  }

  /** True if a newcomer of that lane must stand behind others. */
  hasAhead(lane: string): boolean {
    return this.#countByLane.has(lane)
  }

  /** Tries at once if nobody is ahead; else, or if there is no room, stands in line. @throws BrokerError OVERLOADED */
  enter(waiter: Waiter): void {
    if (this.hasAhead(waiter.lane) || waiter.attempt() !== 'taken') this.wait(waiter)
  }

  /** Stands in line. @throws BrokerError OVERLOADED if the line is too long. */
  wait(waiter: Waiter): void {
    if (this.#waiting.length >= limits.waitingRequestsMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of waiting requests', limit: limits.waitingRequestsMax })
    }
    this.#waiting.push(waiter)
    this.#countByLane.set(waiter.lane, (this.#countByLane.get(waiter.lane) ?? 0) + 1)
    this.#ask()
  }

  #ask(): void {
    if (this.#isRoomAsked) return
    this.#isRoomAsked = true
    this.#options.whenRoom(this.#onRoom)
  }

  /** Tries everyone once, in order. */
  readonly #onRoom = (): void => {
    this.#isRoomAsked = false
    const full = new Set<string>()
    const kept: Waiter[] = []
    for (const waiter of this.#waiting) {
      const { lane } = waiter
      if (full.has(lane) || waiter.attempt() !== 'taken') {
        full.add(lane)
        kept.push(waiter)
        continue
      }
      const left = (this.#countByLane.get(lane) ?? 0) - 1
      if (left > 0) this.#countByLane.set(lane, left)
      else this.#countByLane.delete(lane)
    }
    const hasTaken = kept.length < this.#waiting.length
    this.#waiting = kept
    if (kept.length > 0) this.#ask()
    if (hasTaken) this.#options.onTaken()
  }
}
