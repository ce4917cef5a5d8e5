/**
 * One request body, under the limit of the settings and the budget of request memory. Main thread.
 *
 * A body that comes in one piece is lent on from the socket's memory, uncopied and uncharged. One in several pieces is
 * gathered in a buffer that grows as bytes arrive, to at most twice what has arrived: a Content-Length is a promise, not
 * a reason to allocate. A body from sharedBytesMin on is gathered in shared memory, where another thread can read it.
 * What is held is charged until release().
 */
import { copyBytes } from '../../base/copy.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import { BrokerError } from '../../model/errors.ts'
import type { BodySink } from './engine.ts'

export interface BodyConsumer {
  /** The whole body: bytes[0, length), borrowed until return unless keep() was called. Must not throw. */
  onBody(bytes: Buffer, length: number): void
  /** Too large, or no memory for it. mustClose: its rest is not read. */
  onBodyRefused(error: BrokerError, mustClose: boolean): void
}

export class Body implements BodySink {
  readonly #limitBytes: number
  readonly #announcedBytes: number
  readonly #budget: ByteBudget
  readonly #consumer: BodyConsumer
  /** Infinity: none is shared. */
  readonly #sharedBytesMin: number
  #held: Buffer | null = null
  #length = 0
  #isDone = false

  /** @param announcedBytes Content-Length, or −1. @param sharedBytesMin bodies of that length lie in shared memory. */
  constructor(
    announcedBytes: number,
    limitBytes: number,
    budget: ByteBudget,
    consumer: BodyConsumer,
    sharedBytesMin = Infinity
  ) {
    this.#announcedBytes = announcedBytes
    this.#limitBytes = limitBytes
    this.#budget = budget
    this.#consumer = consumer
    this.#sharedBytesMin = sharedBytesMin
  }

  /** The memory that holds the body, if another thread can read it; the body is at its start. */
  get shared(): SharedArrayBuffer | null {
    const memory = this.#held?.buffer
    return memory instanceof SharedArrayBuffer ? memory : null
  }

  onBodyChunk(chunk: Buffer, isLast: boolean): void {
    if (this.#isDone) return
    const length = this.#length + chunk.length
    if (length > this.#limitBytes) {
      this.#refuse(new BrokerError('BODY_TOO_LARGE', { limit: this.#limitBytes }), !isLast)
      return
    }
    if (isLast && this.#held === null && (length === 0 || length < this.#sharedBytesMin)) {
      this.#isDone = true
      this.#length = length
      this.#consumer.onBody(chunk, length)
      return
    }
    if (!this.#append(chunk)) {
      this.#refuse(overloaded(this.#budget), !isLast && this.#announcedBytes < 0)
      return
    }
    if (!isLast || this.#held === null) return
    this.#isDone = true
    this.#consumer.onBody(this.#held, length)
  }

  #refuse(error: BrokerError, mustClose: boolean): void {
    this.release()
    this.#consumer.onBodyRefused(error, mustClose)
  }

  #append(chunk: Buffer): boolean {
    const length = this.#length + chunk.length
    const heldBytes = this.#held?.length ?? 0
    const mustShare = Math.max(length, this.#announcedBytes) >= this.#sharedBytesMin
    if (length > heldBytes || (mustShare && this.shared === null)) {
      const boundBytes = this.#announcedBytes >= 0 ? this.#announcedBytes : this.#limitBytes
      const nextBytes = Math.max(length, Math.min(length * 2, boundBytes))
      if (!this.#budget.tryReserve(nextBytes - heldBytes)) return false
      const grown = mustShare ? Buffer.from(new SharedArrayBuffer(nextBytes)) : Buffer.allocUnsafeSlow(nextBytes)
      if (this.#held !== null) copyWhole(this.#held, this.#length, grown, 0)
      this.#held = grown
    }
    if (this.#held !== null) copyWhole(chunk, chunk.length, this.#held, this.#length)
    this.#length = length
    return true
  }

  /**
   * Makes the body that onBody lends stay until release().
   * @returns the bytes to use from now on; null if there is no memory for them.
   */
  keep(bytes: Buffer): Buffer | null {
    if (this.#held !== null) return this.#held
    const length = this.#length
    if (!this.#budget.tryReserve(length)) return null
    this.#held = Buffer.allocUnsafeSlow(length)
    copyBytes(bytes, 0, length, this.#held, 0)
    return this.#held
  }

  /** Gives the bytes back; later chunks are ignored. */
  release(): void {
    this.#isDone = true
    if (this.#held === null) return
    const heldBytes = this.#held.length
    this.#held = null
    this.#budget.release(heldBytes)
  }
}

/** In two steps: a copy of a whole buffer into shared memory is slow, one of a strict part of it is not (base/copy.ts). */
function copyWhole(source: Buffer, length: number, target: Buffer, at: number): void {
  if (length === 0) return
  copyBytes(source, 1, length, target, copyBytes(source, 0, 1, target, at))
}

/** The refusal of a request for which this budget has no room. */
export function overloaded(budget: ByteBudget): BrokerError {
  return new BrokerError('OVERLOADED', {
    what: 'the memory for requests in progress',
    limit: `${budget.limitBytes} bytes`
  })
}
