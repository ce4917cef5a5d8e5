/**
 * Keeps the produces of one connection to one topic in the order in which they came while the scan of one of them is
 * away on another thread. Main thread.
 *
 *   a lane   [ready] [away] [ready] [ready]        the first is run; the others wait for the scan of the second
 *
 * A lane is a topic, over all connections: engines do not tell connections apart. Where a connection has one request at a
 * time there is nothing to keep, and nobody waits for anybody.
 * Invariant: the first step of a lane is not ready, or is about to run.
 */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'

/** One produce between its body and its submit. */
export interface Step {
  readonly lane: string
  /** True once only its turn is missing. Set before settle(). */
  readonly isReady: boolean
  /** Goes on. Called once. Must not throw. */
  proceed(): void
}

export class ScanOrder {
  readonly #isOrdered: boolean
  readonly #lanes = new Map<string, Step[]>()
  #count = 0

  /** @param isOrdered false: a connection has one request at a time. */
  constructor(isOrdered: boolean) {
    this.#isOrdered = isOrdered
  }

  /** True if a newcomer of that lane must stand behind others. */
  hasAhead(lane: string): boolean {
    return this.#lanes.has(lane)
  }

  /** Stands last in its lane; settle() once it is ready, also if nobody wants it any more. @throws BrokerError OVERLOADED */
  enter(step: Step): void {
    if (!this.#isOrdered) return
    if (this.#count >= limits.waitingRequestsMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of waiting requests', limit: limits.waitingRequestsMax })
    }
    const steps = this.#lanes.get(step.lane)
    if (steps === undefined) this.#lanes.set(step.lane, [step])
    else steps.push(step)
    this.#count++
  }

  /** A step has become ready: runs all that are ready up to the first that is not. */
  settle(step: Step): void {
    if (!this.#isOrdered) return step.proceed()
    const steps = this.#lanes.get(step.lane) ?? []
    const away = steps.findIndex(other => !other.isReady)
    const ready = away < 0 ? steps.splice(0) : steps.splice(0, away)
    if (steps.length === 0) this.#lanes.delete(step.lane)
    this.#count -= ready.length
    for (const next of ready) next.proceed()
  }
}
