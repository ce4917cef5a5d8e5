/**
 * The gates that produces go through, one of each topic. Main thread only. A gate knows how many were taken and have not
 * been answered, and can be closed while there are none: what comes then waits like a produce that finds no room.
 *
 * Invariants: each produce that enters leaves once; nothing is in hand when the gate is closed, and nothing enters until
 * it is opened.
 */
import { assert } from '../base/assert.ts'
import type { TopicId } from '../model/ids.ts'

export class ProduceGate {
  #openCount = 0
  #isClosed = false

  /** Produces that were taken and have not been answered. */
  get openCount(): number {
    return this.#openCount
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** A produce was taken. */
  enter(): void {
    assert(!this.#isClosed, 'no produce is taken while the gate is closed')
    this.#openCount++
  }

  /** It was answered. */
  leave(): void {
    assert(this.#openCount > 0, 'a produce leaves once, after it was taken')
    this.#openCount--
  }

  /** @returns false: there are produces in hand, and it stays open. */
  tryClose(): boolean {
    assert(!this.#isClosed, 'changes of a topic take turns, so one closes it at a time')
    if (this.#openCount > 0) return false
    this.#isClosed = true
    return true
  }

  open(): void {
    assert(this.#isClosed, 'only who has closed it opens it')
    this.#isClosed = false
  }
}

export class ProduceGates {
  readonly #byTopic = new Map<TopicId, ProduceGate>()

  /** The gate of a topic; open, and nothing in hand, if it is new. */
  of(topicId: TopicId): ProduceGate {
    let gate = this.#byTopic.get(topicId)
    if (gate === undefined) {
      gate = new ProduceGate()
      this.#byTopic.set(topicId, gate)
    }
    return gate
  }

  /** Of a topic that is deleted. What is still in hand for it leaves the gate that it entered: nobody asks that one. */
  forget(topicId: TopicId): void {
    this.#byTopic.delete(topicId)
  }
}
