/**
 * Turns of what belongs to one key: one at a time, in order. Main thread. A key with a quota reads by it: what is read is
 * charged when it has come, so that a hundred connections that read at once would each go beyond the quota. A turn may take
 * long (a read from cold storage), so nobody waits for one without an end.
 */

/** Who wants a turn. Exactly one of the two runs, once. */
export interface TurnTaker {
  /** @param end ends the turn; to be called once. */
  onTurn(end: () => void): void
  /** It has waited as long as it would, or gave up. */
  onLate(): void
}

interface Waiting {
  readonly taker: TurnTaker
  readonly timer: NodeJS.Timeout
}

interface Line {
  readonly waiting: Set<Waiting>
  /** Where it has come to. One for the whole line: to begin anew each time would pass over all that have left it. */
  readonly order: Iterator<Waiting>
}

export class KeyTurns {
  /** Who waits, by key, in order; a key with nobody in its turn has no line. */
  readonly #lines = new Map<string, Line>()

  /**
   * The turn comes when it is the key's, maybe at once.
   * @param waitMs until it is too late. @returns what gives up waiting for it; it does nothing once that is over.
   */
  take(keyId: string, waitMs: number, taker: TurnTaker): () => void {
    const line = this.#lines.get(keyId)
    if (line === undefined) {
      const waiting = new Set<Waiting>()
      this.#lines.set(keyId, { waiting, order: waiting.values() })
      this.#run(keyId, taker)
      return () => undefined
    }
    const giveUp = (): void => {
      if (!line.waiting.delete(waiting)) return
      clearTimeout(waiting.timer)
      taker.onLate()
    }
    const waiting: Waiting = { taker, timer: setTimeout(giveUp, waitMs) }
    line.waiting.add(waiting)
    return giveUp
  }

  /** Runs a turn, and after it whoever follows one that ended at once: a long line makes no deep stack. */
  #run(keyId: string, first: TurnTaker): void {
    let next: TurnTaker | null = first
    while (next !== null) {
      let isRunning = true
      let isFree = false
      next.onTurn(() => {
        if (isRunning) isFree = true
        else this.#runNext(keyId)
      })
      isRunning = false
      next = isFree ? this.#shift(keyId) : null
    }
  }

  #runNext(keyId: string): void {
    const next = this.#shift(keyId)
    if (next !== null) this.#run(keyId, next)
  }

  /** Takes the first of the line; without any the key is free. */
  #shift(keyId: string): TurnTaker | null {
    const line = this.#lines.get(keyId)
    const first = line?.order.next().value as Waiting | undefined
    if (line === undefined || first === undefined) {
      this.#lines.delete(keyId)
      return null
    }
    line.waiting.delete(first)
    clearTimeout(first.timer)
    return first.taker
  }
}
