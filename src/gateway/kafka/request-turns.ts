/**
 * Requests that name very many things, in turns: after a share of its entries a request lets the event loop go round, and all
 * that wait so go on one after another, one in a round. So neither a long request nor many of them hold everybody else.
 * Main thread; one instance per listener.
 *
 * A share is counted, not timed: what a request does between two turns is the same on every machine.
 */

/** Entries of a request in one turn: the costliest takes some 50 µs (measured: a topic that is created for a trial). */
export const ENTRIES_A_TURN = 100
/** Entries of a request that wait for shards at once, where their order does not matter. */
const TOGETHER = 32

export class RequestTurns {
  readonly #waiting: (() => void)[] = []
  readonly #afterRound: (callback: () => void) => void
  readonly #goOn = (): void => {
    this.#waiting.shift()?.()
    if (this.#waiting.length > 0) this.#afterRound(this.#goOn)
  }

  /** @param afterRound calls back when the event loop has gone round. */
  constructor(afterRound: (callback: () => void) => void = setImmediate) {
    this.#afterRound = afterRound
  }

  /** Resolves in a later round of the event loop, in which no other request goes on. */
  next(): Promise<void> {
    return new Promise(resolve => {
      if (this.#waiting.length === 0) this.#afterRound(this.#goOn)
      this.#waiting.push(resolve)
    })
  }

  /** For one request. */
  begin(): Pace {
    return new Pace(this)
  }
}

/** How far one request may go before its next turn. */
export class Pace {
  readonly #turns: RequestTurns
  #left = ENTRIES_A_TURN
  #turn: Promise<void> | null = null

  constructor(turns: RequestTurns) {
    this.#turns = turns
  }

  /** To be awaited behind so many entries. @returns null: the request may go on at once. */
  after(count = 1): Promise<void> | null {
    // Who works on another entry of the same request waits for the same turn.
    if (this.#turn !== null) return this.#turn
    this.#left -= count
    if (this.#left > 0) return null
    this.#turn = this.#turns.next().then(() => {
      this.#left = ENTRIES_A_TURN
      this.#turn = null
    })
    return this.#turn
  }

  /** Handles entries one after the other. @returns what that returns, in their order. */
  async inOrder<Entry, Told>(
    entries: Iterable<Entry>,
    handle: (entry: Entry) => Told | Promise<Told>
  ): Promise<Told[]> {
    const told: Told[] = []
    for (const entry of entries) {
      told.push(await handle(entry))
      await this.after()
    }
    return told
  }

  /** Handles some entries at once. @returns what that returns, in the order of the entries. */
  async together<Entry, Told>(entries: readonly Entry[], handle: (entry: Entry) => Promise<Told>): Promise<Told[]> {
    const told: Told[] = []
    const waiting = entries.entries()
    const work = async (): Promise<void> => {
      for (const [index, entry] of waiting) {
        told[index] = await handle(entry)
        await this.after()
      }
    }
    await Promise.all(Array.from({ length: TOGETHER }, work))
    return told
  }
}
