/**
 * Turns of what belongs to one key: one at a time, in order. Main thread. A key with a quota reads by it: what is read is
 * charged when it has come, so that a hundred connections that read at once would each go beyond the quota.
 */
export class KeyTurns {
  /** Who waits, by key; a key with nobody in its turn has no line. */
  readonly #lines = new Map<string, ((end: () => void) => void)[]>()

  /** Runs when it is the key's turn, maybe at once. @param run is given what ends the turn, to be called once. */
  take(keyId: string, run: (end: () => void) => void): void {
    const line = this.#lines.get(keyId)
    if (line !== undefined) {
      line.push(run)
      return
    }
    this.#lines.set(keyId, [run])
    this.#goOn(keyId)
  }

  /** Runs who is next, and after them whoever follows a turn that ended at once: a long line makes no deep stack. */
  #goOn(keyId: string): void {
    const line = this.#lines.get(keyId) ?? []
    let isFree = true
    while (isFree) {
      const next = line.shift()
      if (next === undefined) return void this.#lines.delete(keyId)
      isFree = false
      let isRunning = true
      next(() => {
        if (isRunning) isFree = true
        else this.#goOn(keyId)
      })
      isRunning = false
    }
  }
}
