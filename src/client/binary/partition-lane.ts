/**
 * The records of an idempotent producer for one partition: one batch in flight, sequences without gaps, through every
 * loss. Any thread with an event loop.
 *
 * Invariants
 * - A sequence is given to a record when its batch is first sent, and counts once the broker took it: a batch that is
 *   refused leaves no gap.
 * - After an outcome that is unknown the lane goes on under a new producer id: what it sends then can neither double nor
 *   stand behind a gap.
 */
import { randomUUID } from 'node:crypto'
import { limits } from '../../model/limits.ts'
import type { ProduceResult } from '../../wire/es01/produce-frame.ts'
import { clientError, clientErrorOf, withWritten, type ClientError } from './client-error.ts'
import { attemptCount, newDelivery, stepAfterAnswer, stepAfterFailure, type Delivery, type Step } from './delivery.ts'
import type { LaneParts } from './lane-parts.ts'
import { earliestDeadlineMs, lateError, OutgoingQueue, rejectAll, settle, sumBytes, type Outgoing } from './outgoing.ts'
import { backoffMs } from './pauses.ts'
import { isTopicMissing, type Spread } from './refusals.ts'

const FORGOTTEN =
  'the broker has forgotten this producer: whether the first records of the batch were written is not known'

/** What a lane tells the owner of its topic. */
export interface LaneOwner {
  /** A batch was taken: records without a key go elsewhere from now on. */
  onTaken(partition: number): void
  /** The partition is not there; the topic has others. The records, all that its lane had, were not written. */
  onOutOfRange(partition: number, spread: Spread, records: readonly Outgoing[], error: ClientError): void
  /** What the lane knew of the topic no longer holds: it is another topic of that name. */
  onMadeAnew(): void
  /** The topic has records. */
  onWritten(): void
  /** Records were rejected: perhaps the topic has none yet. */
  onRejected(): void
}

export class PartitionLane {
  readonly #topic: string
  readonly #partition: number
  readonly #parts: LaneParts
  readonly #owner: LaneOwner
  readonly #queue: OutgoingQueue
  /** This client's id, and this lane's after it had to begin anew. */
  #producerId: string
  #next = 0n
  /** The broker has records of this id: it refuses sequences that do not follow. */
  #isKnown = false
  /** One past the last offset that the lane was told. */
  #nextOffset = 0
  #isRunning = false

  constructor(topic: string, partition: number, producerId: string, parts: LaneParts, owner: LaneOwner) {
    this.#topic = topic
    this.#partition = partition
    this.#producerId = producerId
    this.#parts = parts
    this.#owner = owner
    this.#queue = new OutgoingQueue(parts.batching)
  }

  /** Records wait in it, or for their answer. */
  get isRunning(): boolean {
    return this.#isRunning
  }

  add(record: Outgoing): void {
    this.#queue.add(record)
    if (this.#isRunning) return
    this.#isRunning = true
    // It settles every record; what it throws is a bug, and nobody's to catch.
    void this.#run()
  }

  /** Sends what waits for more. */
  hurry(): void {
    this.#queue.hurry()
  }

  /** The topic is gone, or another one of its name: the broker takes any sequence there, and offsets begin anew. */
  forget(): void {
    this.#isKnown = false
    this.#nextOffset = 0
  }

  async #run(): Promise<void> {
    while (!this.#queue.isEmpty) {
      await this.#queue.gathered(this.#parts.isHurried)
      const { batchSize, batching } = this.#parts
      const records = this.#isKnown ? batching.batchRecords : Math.min(batching.batchRecords, limits.producerWindow)
      const batch = this.#queue.take({ bytes: batchSize.bytes, records })
      if (batch.length === 0) continue
      this.#owner.onTaken(this.#partition)
      await this.#deliver(batch)
    }
    this.#isRunning = false
  }

  /** Settles the records of the batch, or puts them back. */
  async #deliver(batch: readonly Outgoing[]): Promise<void> {
    const delivery = newDelivery(this.#next, batch.length)
    const deadlineMs = earliestDeadlineMs(batch)
    for (let attempt = 1; ; attempt++) {
      const { step, failure } = await this.#attempt(delivery, batch, deadlineMs)
      if ('waitMs' in step) {
        const restMs = deadlineMs - performance.now()
        await this.#parts.flight.pause(Math.max(0, Math.min(step.waitMs ?? this.#pauseMs(attempt), restMs)))
        if (performance.now() >= deadlineMs) return this.#giveUp(batch, delivery, failure)
      }
      if (step.kind !== 'again') return this.#finish(batch, step, delivery.mayBeWritten, failure)
    }
  }

  async #attempt(
    delivery: Delivery,
    batch: readonly Outgoing[],
    deadlineMs: number
  ): Promise<{ step: Step; failure: ClientError | null }> {
    try {
      return { step: stepAfterAnswer(delivery, await this.#send(delivery, batch, deadlineMs)), failure: null }
    } catch (error) {
      const failure = clientErrorOf(error)
      return { step: stepAfterFailure(delivery, failure), failure }
    }
  }

  #send(delivery: Delivery, batch: readonly Outgoing[], deadlineMs: number): Promise<ProduceResult[]> {
    const skipped = batch.length - attemptCount(delivery)
    const records = (skipped === 0 ? batch : batch.slice(skipped)).map(({ record }) => record)
    const run = { partition: this.#partition, firstSequence: Number(delivery.first) + skipped }
    return this.#parts.flight.run(deadlineMs, (connection, timeoutMs) => {
      return connection.produce(this.#topic, records, this.#producerId, { run, timeoutMs })
    })
  }

  /** The first time again comes at once. */
  #pauseMs(attempt: number): number {
    return attempt === 1 ? 0 : backoffMs(attempt - 1, this.#parts.reconnect, Math.random())
  }

  #finish(
    batch: readonly Outgoing[],
    step: Exclude<Step, { kind: 'again' }>,
    mayBeWritten: boolean,
    failure: ClientError | null
  ): void {
    switch (step.kind) {
      case 'done':
        return this.#settle(batch, step.results)
      case 'partly':
        return this.#settlePartly(batch, step.last)
      case 'renew':
        this.#renew()
        for (const record of batch) record.mayBeWritten ||= mayBeWritten
        return this.#queue.putBack(batch)
      case 'smaller':
        this.#parts.batchSize.lower(sumBytes(batch))
        return this.#queue.putBack(batch)
      case 'reroute':
        // All at once: what is sent later under the same keys goes to another lane, and stays behind them there.
        return this.#owner.onOutOfRange(
          this.#partition,
          step.spread,
          [...batch, ...this.#queue.takeAll()],
          failure as ClientError
        )
      case 'reject':
        if (step.written === 'unknown') this.#renew()
        if (isTopicMissing((failure as ClientError).message)) this.#owner.onMadeAnew()
        else this.#owner.onRejected()
        return rejectAll(batch, withWritten(failure as ClientError, step.written))
    }
  }

  #settle(batch: readonly Outgoing[], results: readonly ProduceResult[]): void {
    this.#isKnown = true
    this.#next += BigInt(batch.length)
    this.#parts.batchSize.raise()
    if ((results[0] as ProduceResult).offset < this.#nextOffset) this.#owner.onMadeAnew()
    this.#nextOffset = (results.at(-1) as ProduceResult).offset + 1
    this.#owner.onWritten()
    for (let i = 0; i < batch.length; i++) settle(batch[i] as Outgoing, results[i] as ProduceResult)
  }

  /** The broker had forgotten the producer, and took the last records of the batch for its first. */
  #settlePartly(batch: readonly Outgoing[], last: readonly ProduceResult[]): void {
    this.#renew()
    this.#owner.onMadeAnew()
    const rest = batch.slice(0, batch.length - last.length)
    rejectAll(rest, clientError('refused', 'unknown', FORGOTTEN))
    for (const [i, result] of last.entries()) settle(batch[rest.length + i] as Outgoing, result)
  }

  /** Its first record is late. What may be written goes as a whole; else the others have time left. */
  #giveUp(batch: readonly Outgoing[], { mayBeWritten }: Delivery, failure: ClientError | null): void {
    const nowMs = performance.now()
    const late = mayBeWritten ? batch : batch.filter(record => record.deadlineMs <= nowMs)
    const reason = failure === null ? '' : `: ${failure.message}`
    if (mayBeWritten) this.#renew()
    else this.#queue.putBack(batch.filter(record => record.deadlineMs > nowMs))
    this.#owner.onRejected()
    rejectAll(late, lateError(this.#parts.batching.deliveryTimeoutMs, mayBeWritten ? 'unknown' : 'no', reason))
  }

  #renew(): void {
    this.#producerId = randomUUID()
    this.#next = 0n
    this.#isKnown = false
  }
}
