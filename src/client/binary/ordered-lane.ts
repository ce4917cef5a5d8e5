/**
 * The records of one topic without idempotence: batches leave in the order of the calls, many in flight, and none is sent
 * again once it may have left. Any thread with an event loop.
 */
import { ClientError, clientErrorOf } from './client-error.ts'
import type { LaneParts } from './lane-parts.ts'
import { lateError, OutgoingQueue, rejectAll, type Outgoing } from './outgoing.ts'
import type { Es01Client } from '../es01/client.ts'

export class OrderedLane {
  readonly #topic: string
  readonly #parts: LaneParts
  readonly #queue: OutgoingQueue
  #isRunning = false
  /** Batches that turned out not to have left, in their order, until the lane puts them back. */
  #unsent: (readonly Outgoing[])[] = []

  constructor(topic: string, parts: LaneParts) {
    this.#topic = topic
    this.#parts = parts
    this.#queue = new OutgoingQueue(parts.batching)
  }

  add(record: Outgoing): void {
    this.#queue.add(record)
    this.#start()
  }

  /** Sends what waits for more. */
  hurry(): void {
    this.#queue.hurry()
  }

  #start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    // It settles every record; what it throws is a bug, and nobody's to catch.
    void this.#run()
  }

  async #run(): Promise<void> {
    while (!this.#queue.isEmpty || this.#unsent.length > 0) {
      this.#putBackUnsent()
      await this.#queue.gathered(this.#parts.isHurried)
      const { batchSize, batching } = this.#parts
      const batch = this.#queue.take({ bytes: batchSize.bytes, records: batching.batchRecords })
      if (batch.length > 0) await this.#send(batch)
    }
    this.#isRunning = false
  }

  /** Resolves when the batch has left, or did not. */
  #send(batch: readonly Outgoing[]): Promise<void> {
    const deadlineMs = Math.min(...batch.map(record => record.deadlineMs))
    return new Promise(left => {
      const send = (connection: Es01Client): Promise<void> => {
        // One before it did not leave, which is known only now: it goes back too, behind that one.
        if (this.#unsent.length > 0) return Promise.reject(new ClientError('connection', 'no', 'others go first'))
        const produced = connection.produce(
          this.#topic,
          batch.map(({ record: { key = null, value, partition } }) => {
            return { key, value, ...(partition === undefined ? {} : { partition }) }
          })
        )
        left()
        return produced.then(results => {
          this.#parts.batchSize.raise()
          for (const [i, record] of batch.entries()) record.resolve(results[i] as (typeof results)[number])
        })
      }
      this.#parts.flight.run(deadlineMs, send).catch((error: unknown) => {
        this.#failed(batch, clientErrorOf(error))
        left()
      })
    })
  }

  /** What never left goes back to its place, before all that was sent later; the rest is the caller's to judge. */
  #failed(batch: readonly Outgoing[], failure: ClientError): void {
    const isUnsent = failure.kind === 'connection' && failure.written === 'no'
    if (failure.retryAfterMs !== null) this.#parts.batchSize.lower(batch.reduce((sum, { bytes }) => sum + bytes, 0))
    if (!isUnsent) return rejectAll(batch, failure)
    const nowMs = performance.now()
    const late = batch.filter(record => record.deadlineMs <= nowMs)
    rejectAll(late, lateError(this.#parts.batching.deliveryTimeoutMs, 'no', `: ${failure.message}`))
    const rest = batch.filter(record => record.deadlineMs > nowMs)
    if (rest.length > 0) this.#unsent.push(rest)
    this.#start()
  }

  /** Losses come in the order in which the requests were made. */
  #putBackUnsent(): void {
    const records = this.#unsent.flat()
    this.#unsent = []
    if (records.length > 0) this.#queue.putBack(records)
  }
}
