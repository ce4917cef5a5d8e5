/**
 * The records of one topic without idempotence: batches leave in the order of the calls, many in flight, and none is sent
 * again once it may have left. Any thread with an event loop.
 */
import { clientError, clientErrorOf, type ClientError } from './client-error.ts'
import type { ProduceResult } from '../../wire/es01/produce-frame.ts'
import type { LaneParts } from './lane-parts.ts'
import { earliestDeadlineMs, lateError, OutgoingQueue, rejectAll, settle, sumBytes, type Outgoing } from './outgoing.ts'
import type { Send } from './session.ts'

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
    const deadlineMs = earliestDeadlineMs(batch)
    return new Promise(left => {
      let isBegun = false
      const send: Send<void> = (connection, timeoutMs) => {
        isBegun = true
        // One before it did not leave, which is known only now: it goes back too, behind that one.
        if (this.#unsent.length > 0) return Promise.reject(clientError('connection', 'no', 'others go first'))
        const records = batch.map(({ record }) => record)
        const produced = connection.produce(this.#topic, records, undefined, { timeoutMs })
        left()
        return produced.then(results => {
          this.#parts.batchSize.raise()
          for (let i = 0; i < batch.length; i++) settle(batch[i] as Outgoing, results[i] as ProduceResult)
        })
      }
      this.#parts.flight.run(deadlineMs, send).catch((error: unknown) => {
        this.#failed(batch, clientErrorOf(error), isBegun)
        left()
      })
    })
  }

  /** What never left goes back to its place, before all that was sent later; the rest is the caller's to judge. */
  #failed(batch: readonly Outgoing[], failure: ClientError, isBegun: boolean): void {
    // What timed out while it was being deflated had others behind it, and goes back no more.
    const mayGoAgain = failure.kind === 'connection' || (failure.kind === 'timeout' && !isBegun)
    const isUnsent = mayGoAgain && failure.written === 'no'
    if (failure.retryAfterMs !== null) this.#parts.batchSize.lower(sumBytes(batch))
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
