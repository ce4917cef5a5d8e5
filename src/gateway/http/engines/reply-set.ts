/** The replies in progress of an engine: who is late, and when all are done. Main thread, one owner: its engine. */
import type { Lateness, PaceLook } from './answer-pace.ts'
import type { HttpProbe } from '../probe.ts'

/** What the set needs of a reply. */
export interface WatchedReply {
  /** Judges how its client takes the answer. */
  lookAtPace(look: PaceLook): Lateness | null
  /** Cuts the connection. */
  abort(): void
}

export class ReplySet<Kind extends WatchedReply> {
  readonly #probe: HttpProbe
  readonly #replies = new Set<Kind>()
  #onIdle: (() => void) | null = null

  constructor(probe: HttpProbe) {
    this.#probe = probe
  }

  add(reply: Kind): void {
    this.#replies.add(reply)
  }

  /** To be called by a reply that is closed. */
  forget(reply: Kind): void {
    this.#replies.delete(reply)
    if (this.#replies.size === 0) this.#onIdle?.()
  }

  /** Cuts off who is late. @returns replies in progress. */
  cutLate(look: PaceLook): number {
    for (const reply of this.#replies) {
      const lateness = reply.lookAtPace(look)
      if (lateness === null) continue
      this.#probe.readersCut[lateness]++
      reply.abort()
    }
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
