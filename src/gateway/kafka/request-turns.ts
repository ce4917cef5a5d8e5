/**
 * Requests that name very many things, in turns: after a share of its entries a request lets the event loop go round, and all
 * that wait so go on one after another, one in a round. So neither a long request nor many of them hold everybody else. What a
 * request has found out stays in memory until its answer is written: so few are long at once, each the first of its
 * connection, and the others wait with what they found in one share.
 * Main thread; one instance per listener.
 *
 * A share is counted, not timed: what a request does between two turns is the same on every machine.
 */

/** Entries of a request in one turn: the costliest takes some 50 µs (measured: a topic that is created for a trial). */
export const ENTRIES_A_TURN = 100
/** Entries of a request that wait for shards at once, where their order does not matter. */
const TOGETHER = 32
/** Requests that are beyond their first share at once: what they found out is in memory until it is answered. */
export const LONG_AT_ONCE = 8

export class RequestTurns {
  readonly #waiting: (() => void)[] = []
  readonly #line: (() => void)[] = []
  #longCount = 0
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
    return new Promise(resolve => this.whenNext(resolve))
  }

  /** Calls back then. */
  whenNext(callback: () => void): void {
    if (this.#waiting.length === 0) this.#afterRound(this.#goOn)
    this.#waiting.push(callback)
  }

  /** Resolves when one more request may be long: `leave` ends that. */
  enter(): Promise<void> {
    if (this.#longCount < LONG_AT_ONCE) {
      this.#longCount++
      return Promise.resolve()
    }
    return new Promise(resolve => this.#line.push(resolve))
  }

  /** A request that was long is over: the next one may be, in its place. */
  leave(): void {
    const next = this.#line.shift()
    if (next === undefined) this.#longCount--
    else next()
  }

  /** For one request. @param whenFirst calls back when none before it on its connection is in progress. */
  begin(whenFirst: (callback: () => void) => void = callback => callback()): Pace {
    return new Pace(this, whenFirst)
  }
}

/** How far one request may go before its next turn. */
export class Pace {
  readonly #turns: RequestTurns
  readonly #whenFirst: (callback: () => void) => void
  #left = ENTRIES_A_TURN
  #turn: Promise<void> | null = null
  #isLong = false
  #isOver = false

  constructor(turns: RequestTurns, whenFirst: (callback: () => void) => void) {
    this.#turns = turns
    this.#whenFirst = whenFirst
  }

  /** To be awaited behind so many entries. @returns null: the request may go on at once. */
  after(count = 1): Promise<void> | null {
    // Who works on another entry of the same request waits for the same turn.
    if (this.#turn !== null) return this.#turn
    this.#left -= count
    return this.#left > 0 ? null : this.next()
  }

  /** To be awaited before what may be as much as a share by itself. */
  next(): Promise<void> {
    this.#turn ??= this.#takeTurn()
    return this.#turn
  }

  /** The request is answered, or never will be. */
  end(): void {
    this.#isOver = true
    if (this.#isLong) this.#turns.leave()
    this.#isLong = false
  }

  async #takeTurn(): Promise<void> {
    if (!this.#isLong && !this.#isOver) await this.#becomeLong()
    await this.#turns.next()
    this.#left = ENTRIES_A_TURN
    this.#turn = null
  }

  async #becomeLong(): Promise<void> {
    // First of its connection, then long: else those that are could wait for one that may not be.
    await new Promise<void>(resolve => this.#whenFirst(resolve))
    await this.#turns.enter()
    this.#isLong = true
    // Another of its entries has failed meanwhile.
    if (this.#isOver) this.end()
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
