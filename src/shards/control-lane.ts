/**
 * The sending end of a shard's control ring: messages in order, those that found no room first. Main thread only.
 * Invariant: whatever waits fits into the empty ring, so the lane always gets on.
 */
import { assert } from '../base/assert.ts'
import { RingProducer } from '../ring/spsc-ring.ts'

export class ControlLane {
  readonly #ring: RingProducer
  /** Messages that found no room; sent in order before any other. */
  readonly #waiting: Buffer[] = []

  /** @param memory of the ring. */
  constructor(memory: SharedArrayBuffer) {
    this.#ring = new RingProducer(memory)
  }

  /** Takes a message, which goes with the next move(). @throws BugError it could never go; nothing is taken. */
  add(message: Buffer): void {
    // What came behind it would wait for ever too.
    assert(message.length <= this.#ring.frameBytesMax, 'a control message must fit in a quarter of its ring')
    this.#waiting.push(message)
  }

  /** Publishes what there is room for. @returns false: some waits for room, which was asked for. */
  move(): boolean {
    let moved = 0
    for (const message of this.#waiting) {
      const at = this.#ring.reserve(message.length)
      if (at < 0) {
        this.#ring.askForRoom()
        break
      }
      message.copy(this.#ring.buffer, at)
      moved++
    }
    this.#waiting.splice(0, moved)
    if (moved > 0) this.#ring.publish()
    return this.#waiting.length === 0
  }
}
