/**
 * Records that wait for their answer: one each, in queues of lanes, with what the caller of `send` waits for. Any thread
 * with an event loop; one owner at a time: the queue, then the batch.
 */
import type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'
import { clientError, withWritten, type ClientError } from './client-error.ts'
import type { Batching } from './options.ts'
import { Bell } from './pauses.ts'
import type { Generation } from './room.ts'

/** A record between `send` and its answer. */
export interface Outgoing {
  readonly record: ProduceRecord
  /** What it takes of a frame. */
  readonly bytes: number
  readonly sentMs: number
  readonly deadlineMs: number
  /** Where it is counted until it is settled. */
  readonly generation: Generation
  /** A copy of it under a former producer id may have reached the broker. */
  mayBeWritten: boolean
  /** Called by `settle` and `rejectAll` alone. */
  readonly resolve: (result: ProduceResult) => void
  readonly reject: (error: ClientError) => void
}

/** A record is written. */
export function settle(outgoing: Outgoing, result: ProduceResult): void {
  outgoing.generation.leave(outgoing.bytes)
  outgoing.resolve(result)
}

/** Rejects all of them with one error. */
export function rejectAll(records: readonly Outgoing[], error: ClientError): void {
  for (const { generation, bytes, mayBeWritten, reject } of records) {
    generation.leave(bytes)
    reject(mayBeWritten && error.written === 'no' ? withWritten(error, 'unknown') : error)
  }
}

/** @returns when the time of the first of them is over. Not by spreading: there are more than a call can have arguments. */
export function earliestDeadlineMs(records: readonly Outgoing[]): number {
  let earliestMs = Infinity
  for (const { deadlineMs } of records) if (deadlineMs < earliestMs) earliestMs = deadlineMs
  return earliestMs
}

/** @returns what they take of a frame. */
export function sumBytes(records: readonly Outgoing[]): number {
  return records.reduce((sum, { bytes }) => sum + bytes, 0)
}

/** The error of a record whose time is over. */
export function lateError(deliveryTimeoutMs: number, written: 'no' | 'unknown', reason: string): ClientError {
  return clientError('timeout', written, `not delivered in ${deliveryTimeoutMs} ms${reason}`, { retryable: true })
}

/** What a batch may hold. */
export interface BatchBounds {
  readonly bytes: number
  readonly records: number
}

/** Records in the order in which they were sent, cut into batches. Wakes who waits in `gathered`. */
export class OutgoingQueue {
  readonly #batching: Batching
  #records: Outgoing[] = []
  /** Records before it are taken. */
  #head = 0
  #bytes = 0
  readonly #bell = new Bell()

  constructor(batching: Batching) {
    this.#batching = batching
  }

  get isEmpty(): boolean {
    return this.#head === this.#records.length
  }

  add(record: Outgoing): void {
    this.#records.push(record)
    this.#bytes += record.bytes
    if (this.#isFull()) this.#bell.ring()
  }

  /** Before all others: what was taken and did not leave. */
  putBack(records: readonly Outgoing[]): void {
    this.#records = [...records, ...this.#records.slice(this.#head)]
    this.#head = 0
    for (const record of records) this.#bytes += record.bytes
  }

  /** @returns all of them, in order; none is left. */
  takeAll(): Outgoing[] {
    const records = this.#records.slice(this.#head)
    this.#records = []
    this.#head = 0
    this.#bytes = 0
    return records
  }

  /** Ends the wait in `gathered`. */
  hurry(): void {
    this.#bell.ring()
  }

  /** Resolves when there is a batch to take: full, or its first record has waited as long as it should. */
  async gathered(isHurried: () => boolean): Promise<void> {
    const { lingerMs } = this.#batching
    // Records that are sent in one go share a request also without a linger.
    if (lingerMs === 0) return new Promise(resolve => setImmediate(resolve))
    for (;;) {
      const first = this.#records[this.#head]
      if (first === undefined || this.#isFull() || isHurried()) return
      const restMs = first.sentMs + lingerMs - performance.now()
      if (restMs <= 0) return
      await this.#bell.wait(restMs)
    }
  }

  /** @returns the next batch: at least one record if there is any. Those whose time is over reject. */
  take(bounds: BatchBounds): Outgoing[] {
    const nowMs = performance.now()
    const batch: Outgoing[] = []
    const late: Outgoing[] = []
    let bytes = 0
    for (let next = this.#records[this.#head]; next !== undefined; next = this.#records[this.#head]) {
      const isLate = next.deadlineMs <= nowMs
      const isFull = batch.length >= bounds.records || (batch.length > 0 && bytes + next.bytes > bounds.bytes)
      if (!isLate && isFull) break
      this.#head++
      this.#bytes -= next.bytes
      if (isLate) late.push(next)
      else {
        batch.push(next)
        bytes += next.bytes
      }
    }
    this.#dropTaken()
    rejectAll(late, lateError(this.#batching.deliveryTimeoutMs, 'no', ': others were in front of it'))
    return batch
  }

  #isFull(): boolean {
    const { batchBytes, batchRecords } = this.#batching
    return this.#bytes >= batchBytes || this.#records.length - this.#head >= batchRecords
  }

  /** Half of the array at least, so that dropping costs little per record. */
  #dropTaken(): void {
    if (this.#head * 2 < this.#records.length) return
    this.#records = this.#records.slice(this.#head)
    this.#head = 0
  }
}
