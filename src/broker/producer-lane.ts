/**
 * The order of one producer's requests on their way to the shards. Main thread only.
 *
 * A request to one shard shares the lane: the ring keeps the order. What must not meet others of its producer (a request
 * over several shards, a change of the producer itself) waits until all before it are answered, and is alone.
 *
 *   shared shared shared │ alone │ shared …
 *
 * Invariant: who is alone is the only one; while somebody waits, nobody overtakes.
 */
import { assert } from '../base/assert.ts'
import type { BrokerError } from '../model/errors.ts'

/** Somebody who waits for the lane. */
export interface LaneTask {
  /** Needs all before it to be answered; else only to be dispatched. */
  readonly isAlone: boolean
  /** The lane is its own until giveBack(); or, if it is not alone, until share(), and leave() follows. */
  start(): void
  /** Instead of start(): the producer is gone, or could not be stored, for that reason. */
  closed(cause: BrokerError | null): void
}

export class ProducerLane {
  #sharing = 0
  #isTaken = false
  readonly #waiting: LaneTask[] = []

  /** True if nobody is in it or waits. */
  get isEmpty(): boolean {
    return this.#sharing === 0 && !this.#isTaken && this.#waiting.length === 0
  }

  /** Enters at once for a request to one shard. @returns false if it must wait. leave() follows. */
  tryShare(): boolean {
    if (this.#isTaken || this.#waiting.length > 0) return false
    this.#sharing++
    return true
  }

  /** Starts the task now, or when it is its turn. */
  enter(task: LaneTask): void {
    this.#waiting.push(task)
    this.#advance()
  }

  /** The task that has the lane is dispatched: others may follow it. leave() follows. */
  share(): void {
    assert(this.#isTaken, 'only who has the lane can share it')
    this.#isTaken = false
    this.#sharing++
    this.#advance()
  }

  /** A request that shares the lane is done. */
  leave(): void {
    assert(this.#sharing > 0, 'only who shares the lane leaves it')
    this.#sharing--
    this.#advance()
  }

  /** The task that has the lane is done. */
  giveBack(): void {
    assert(this.#isTaken, 'only who has the lane gives it back')
    this.#isTaken = false
    this.#advance()
  }

  /** The task that has the lane ends it: nobody enters it any more. Those who waited are told, in order. */
  close(cause: BrokerError | null): void {
    assert(this.#isTaken, 'only who has the lane can close it')
    for (const task of this.#waiting.splice(0)) task.closed(cause)
  }

  #advance(): void {
    for (let next = this.#waiting[0]; next !== undefined; next = this.#waiting[0]) {
      if (this.#isTaken || (next.isAlone && this.#sharing > 0)) return
      this.#waiting.shift()
      this.#isTaken = true
      next.start()
    }
  }
}
