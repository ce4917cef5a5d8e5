/**
 * One request body, under the limit of its route and the budget of request memory. Main thread.
 *
 * A body that comes in one piece is lent on from the socket's memory, uncopied and uncharged. One in several pieces is
 * gathered in a buffer that grows as bytes arrive, to at most twice what has arrived: a Content-Length is a promise, not
 * a reason to allocate. What is held is charged until release(), also when its memory has moved to another thread.
 */
import { copyBytes } from '../../base/copy.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { BodySink } from './engines/engine.ts'

/** The most that a body may have, and what sets that. */
export interface BodyLimit {
  readonly bytes: number
  readonly setting: string
}

/** The limit of the settings. */
export function bodyLimitOf(maxRequestBodyBytes: number): BodyLimit {
  return { bytes: maxRequestBodyBytes, setting: '--max-request-body-bytes' }
}

/** The limit of a route whose bodies are parsed whole on the main thread. */
export function topicBodyLimitOf(maxRequestBodyBytes: number): BodyLimit {
  if (maxRequestBodyBytes <= limits.topicBodyBytesMax) return bodyLimitOf(maxRequestBodyBytes)
  return { bytes: limits.topicBodyBytesMax, setting: 'for this route' }
}

/** The refusal of a body over its limit. */
export function bodyTooLarge({ bytes, setting }: BodyLimit): BrokerError {
  return new BrokerError('BODY_TOO_LARGE', { limit: bytes, setting })
}

export interface BodyConsumer {
  /** The whole body: bytes[0, length), borrowed until return unless keep() was called. Must not throw. */
  onBody(bytes: Buffer, length: number): void
  /** Too large, or no memory for it. mustClose: its rest is not read. */
  onBodyRefused(error: BrokerError, mustClose: boolean): void
}

export class Body implements BodySink {
  readonly #limit: BodyLimit
  readonly #announcedBytes: number
  readonly #budget: ByteBudget
  readonly #consumer: BodyConsumer
  #held: Buffer<ArrayBuffer> | null = null
  /** What the budget was charged. */
  #heldBytes = 0
  #length = 0
  #isDone = false

  /** @param announcedBytes Content-Length, or −1. */
  constructor(announcedBytes: number, limit: BodyLimit, budget: ByteBudget, consumer: BodyConsumer) {
    this.#announcedBytes = announcedBytes
    this.#limit = limit
    this.#budget = budget
    this.#consumer = consumer
  }

  onBodyChunk(chunk: Buffer, isLast: boolean): void {
    if (this.#isDone) return
    const length = this.#length + chunk.length
    if (length > this.#limit.bytes) {
      this.#refuse(bodyTooLarge(this.#limit), !isLast)
      return
    }
    if (isLast && this.#held === null) {
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
    if (length > this.#heldBytes) {
      const boundBytes = this.#announcedBytes >= 0 ? this.#announcedBytes : this.#limit.bytes
      const nextBytes = Math.max(length, Math.min(length * 2, boundBytes))
      if (!this.#budget.tryReserve(nextBytes - this.#heldBytes)) return false
      this.#heldBytes = nextBytes
      const grown = Buffer.allocUnsafeSlow(nextBytes)
      if (this.#held !== null) copyBytes(this.#held, 0, this.#length, grown, 0)
      this.#held = grown
    }
    if (this.#held !== null) copyBytes(chunk, 0, chunk.length, this.#held, this.#length)
    this.#length = length
    return true
  }

  /**
   * Makes the body that onBody lends stay until release().
   * @returns the bytes to use from now on, at the start of memory of their own; null if there is no memory for them.
   */
  keep(bytes: Buffer): Buffer<ArrayBuffer> | null {
    if (this.#held !== null) return this.#held
    const length = this.#length
    if (!this.#budget.tryReserve(length)) return null
    this.#heldBytes = length
    this.#held = Buffer.allocUnsafeSlow(length)
    copyBytes(bytes, 0, length, this.#held, 0)
    return this.#held
  }

  /** Gives the bytes back; later chunks are ignored. */
  release(): void {
    this.#isDone = true
    if (this.#held === null) return
    const heldBytes = this.#heldBytes
    this.#held = null
    this.#heldBytes = 0
    this.#budget.release(heldBytes)
  }
}

/** The refusal of a request for which this budget has no room. */
export function overloaded(budget: ByteBudget): BrokerError {
  return new BrokerError('OVERLOADED', {
    what: 'the memory for requests in progress',
    limit: `${budget.limitBytes} bytes`
  })
}
