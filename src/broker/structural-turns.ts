/**
 * Passes that change which segments partitions have, compaction and tiering, one after another: a partition never has two
 * such jobs at once (durability, S2). Main thread.
 */
export class StructuralTurns {
  #last: Promise<void> = Promise.resolve()

  /** Runs a pass when all before it have ended. */
  run(pass: () => Promise<void>): Promise<void> {
    const mine = this.#last.then(pass)
    this.#last = mine.catch(() => undefined)
    return mine
  }

  /** Resolves when none runs or waits. */
  idle(): Promise<void> {
    return this.#last
  }
}
