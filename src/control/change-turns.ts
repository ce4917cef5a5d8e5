/**
 * One change of a topic at a time, in the order of arrival; changes of different topics do not wait for each other.
 * Main thread only. Whoever changes a topic runs from decision to answer inside of its turn.
 */
export class ChangeTurns {
  /** The end of the last turn taken per name; absent when nobody has or waits for one. */
  readonly #lastByName: Map<string, Promise<void>> = new Map()

  /** Names under which a change runs or waits. */
  get busyCount(): number {
    return this.#lastByName.size
  }

  /** Runs `change` once all turns of `name` taken before are over, however they ended. @returns what it returns. */
  async run<T>(name: string, change: () => Promise<T>): Promise<T> {
    const before = this.#lastByName.get(name)
    const { promise: end, resolve: endTurn } = Promise.withResolvers<void>()
    this.#lastByName.set(name, end)
    try {
      await before
      return await change()
    } finally {
      if (this.#lastByName.get(name) === end) this.#lastByName.delete(name)
      endTurn()
    }
  }
}
