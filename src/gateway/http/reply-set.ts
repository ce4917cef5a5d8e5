/** The replies in progress of an engine: who is late, and when all are done. Main thread, one owner: its engine. */
import type { Clock } from '../../base/clock.ts'

/** What the set needs of a reply. */
export interface WatchedReply {
  /** Cuts the connection if the client has taken nothing of the answer since then (monotonic). */
  cutIfStalled(sinceMs: number): void
}

export class ReplySet<Kind extends WatchedReply> {
  readonly #clock: Clock
  readonly #replies = new Set<Kind>()
  #onIdle: (() => void) | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(reply: Kind): void {
    this.#replies.add(reply)
  }

  /** To be called by a reply that is closed. */
  forget(reply: Kind): void {
    this.#replies.delete(reply)
    if (this.#replies.size === 0) this.#onIdle?.()
  }

  /** @returns replies in progress. */
  cutStalled(afterMs: number): number {
    const sinceMs = this.#clock.monotonicMs() - afterMs
    for (const reply of this.#replies) reply.cutIfStalled(sinceMs)
    return this.#replies.size
  }

  /** Resolves when no reply is in progress, or at the deadline. */
  async whenIdle(deadlineMs: number): Promise<void> {
    if (this.#replies.size === 0) return
    await new Promise<void>(resolve => {
      const timer = setTimeout(resolve, deadlineMs)
      this.#onIdle = () => {
        clearTimeout(timer)
        // Not at once: the reply that closed last is still inside a callback of its server.
        setImmediate(resolve)
      }
    })
    this.#onIdle = null
  }
}
