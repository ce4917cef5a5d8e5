/**
 * Requests that a shard has not answered yet, by id. Main thread only; one table per shard incarnation.
 * Ids are slots of the table, used again once free: a ring keeps order and each request gets one last reply.
 */
import { assert } from '../base/assert.ts'
import type { BrokerError } from '../model/errors.ts'

/** One request in progress. */
export interface PendingRequest {
  /** Mark in the requests ring behind the request: tells at a death whether the shard had taken it. −1: not a produce. */
  endPosition: number
  /**
   * A reply of the request: bytes[start, end), borrowed until return.
   * @param isLast no further call comes.
   */
  onReply(type: number, bytes: Buffer, start: number, end: number, isLast: boolean): void
  /** The request failed: FAILED from the shard, or the shard died. No further call comes. */
  onFailure(error: BrokerError): void
}

/** A question of the reads ring that has numbers alone: u32 each, in the order of its layout (wire/shard/messages). */
export interface Question {
  readonly type: 'describe' | 'producers' | 'partitions'
  readonly numbers: readonly number[]
}

export class PendingTable {
  readonly #entries: (PendingRequest | null)[] = []
  readonly #free: number[] = []

  get count(): number {
    return this.#entries.length - this.#free.length
  }

  add(request: PendingRequest): number {
    const id = this.#free.pop()
    if (id !== undefined) {
      this.#entries[id] = request
      return id
    }
    this.#entries.push(request)
    return this.#entries.length - 1
  }

  get(id: number): PendingRequest {
    const request = this.#entries[id]
    assert(request !== undefined && request !== null, 'a reply answers a request in progress')
    return request
  }

  remove(id: number): void {
    this.#entries[id] = null
    this.#free.push(id)
  }

  /** Takes everything out, oldest id first. */
  takeAll(): PendingRequest[] {
    const all = this.#entries.filter(entry => entry !== null)
    this.#entries.length = 0
    this.#free.length = 0
    return all
  }
}
