/**
 * Delivers the replies of all shards, in turn, without ever waiting for a ring. Main thread only.
 *
 * A delivery that hits its bound goes on in setImmediate with the asleep flag down; one that finds all rings empty
 * raises the flag, looks once more, then returns.
 */
import { AsleepFlag, createAsleepFlag } from '../ring/bell.ts'
import type { ShardLink } from './shard-link.ts'

/** Bytes of replies that one delivery takes from a ring before the event loop gets a turn. */
const DELIVERY_BYTES = 2 * 1024 * 1024

export class ReplyDelivery {
  readonly asleepMemory = createAsleepFlag()
  readonly #asleep = new AsleepFlag(this.asleepMemory)
  readonly #links: () => ShardLink[]
  readonly #hooks: (() => void)[] = []
  #roomWaiters: (() => void)[] = []
  #isDelivering = false
  #isDeliveryDue = false

  /** @param links of the shards that run. */
  constructor(links: () => ShardLink[]) {
    this.#links = links
  }

  /** Calls back when replies were delivered next: there may be room in a ring. */
  whenRoom(callback: () => void): void {
    this.#roomWaiters.push(callback)
  }

  /** Calls the hook after each delivery. */
  onDelivered(hook: () => void): void {
    this.#hooks.push(hook)
  }

  deliver(): void {
    if (this.#isDelivering) {
      this.#isDeliveryDue = true
      return
    }
    this.#isDelivering = true
    let isEmpty = false
    try {
      this.#asleep.lower()
      isEmpty = this.#drainAll()
      if (isEmpty) {
        this.#asleep.raise()
        // A reply published before the flag was up rang no doorbell: look once more.
        if (this.#links().some(link => !link.replies.isEmpty())) {
          this.#asleep.lower()
          isEmpty = false
        }
      }
    } finally {
      // A bug in one answer must not keep all others from being delivered.
      this.#isDelivering = false
      if (!isEmpty || this.#isDeliveryDue) {
        this.#isDeliveryDue = false
        setImmediate(() => this.deliver())
      }
    }
    this.#runHooks()
  }

  #drainAll(): boolean {
    let isEmpty = true
    for (const link of this.#links()) if (!link.drain(DELIVERY_BYTES)) isEmpty = false
    return isEmpty
  }

  #runHooks(): void {
    if (this.#roomWaiters.length > 0) {
      const waiters = this.#roomWaiters
      this.#roomWaiters = []
      for (const waiter of waiters) waiter()
    }
    // What they submitted, and control messages that waited for room: nothing else in this tick would publish it.
    for (const link of this.#links()) link.publish()
    for (const hook of this.#hooks) hook()
  }
}
