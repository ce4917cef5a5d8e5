/**
 * One topic of an idempotent client: which partition a record goes to, and a lane for each. A record names its partition,
 * or its key does by the broker's hash, or it goes where the last ones without key went, until those are sent. Any thread
 * with an event loop.
 *
 * How many partitions there are is asked of the broker when it matters for the first time, and again when the topic
 * turns out to be another one of its name.
 */
import { fnv1a64Modulo } from '../../base/hash.ts'
import { clientErrorOf, ClientError } from './client-error.ts'
import type { LaneParts } from './lane-parts.ts'
import { lateError, rejectAll, type Outgoing } from './outgoing.ts'
import { PartitionLane, type LaneOwner } from './partition-lane.ts'
import { backoffMs } from './pauses.ts'
import { keyBytesOf, NO_SUCH_PARTITION } from './records.ts'
import { partitionCountOf } from './refusals.ts'

export class RoutedTopic implements LaneOwner {
  readonly #topic: string
  readonly #producerId: string
  readonly #parts: LaneParts
  readonly #lanes = new Map<number, PartitionLane>()
  /** 0: not known. */
  #partitionCount = 0
  /** Where records without key go now. */
  #sticky = 0
  /** Records whose partition is not known yet, in order. */
  #unrouted: Outgoing[] = []
  #isAsking = false

  constructor(topic: string, producerId: string, parts: LaneParts) {
    this.#topic = topic
    this.#producerId = producerId
    this.#parts = parts
  }

  add(record: Outgoing): void {
    const { partition } = record.record
    if (partition !== undefined) return this.#laneOf(partition).add(record)
    if (this.#partitionCount > 0 && this.#unrouted.length === 0) return this.#laneOf(this.#route(record)).add(record)
    this.#unrouted.push(record)
    if (this.#isAsking) return
    this.#isAsking = true
    // It settles every record; what it throws is a bug, and nobody's to catch.
    void this.#ask()
  }

  hurry(): void {
    for (const lane of this.#lanes.values()) lane.hurry()
  }

  onTaken(partition: number): void {
    if (partition === this.#sticky) this.#sticky = (partition + 1) % Math.max(1, this.#partitionCount)
  }

  onOutOfRange(partitionCount: number, records: readonly Outgoing[], error: ClientError): void {
    this.#partitionCount = partitionCount
    for (const record of records) {
      if (record.record.partition === undefined) this.add(record)
      else record.reject(error)
    }
  }

  onMadeAnew(): void {
    this.#partitionCount = 0
    for (const lane of this.#lanes.values()) lane.forget()
  }

  #laneOf(partition: number): PartitionLane {
    let lane = this.#lanes.get(partition)
    if (lane === undefined) {
      lane = new PartitionLane(this.#topic, partition, this.#producerId, this.#parts, this)
      this.#lanes.set(partition, lane)
    }
    return lane
  }

  #route({ record: { key = null } }: Outgoing): number {
    if (key === null) {
      if (this.#sticky >= this.#partitionCount) this.#sticky = 0
      return this.#sticky
    }
    const bytes = keyBytesOf(key)
    return fnv1a64Modulo(bytes, 0, bytes.length, this.#partitionCount)
  }

  /** Asks until the count is known, then routes what waited; or rejects it. */
  async #ask(): Promise<void> {
    for (let attempt = 1; this.#unrouted.length > 0; attempt++) {
      const deadlineMs = Math.min(...this.#unrouted.map(record => record.deadlineMs))
      try {
        this.#partitionCount = await this.#askOnce(deadlineMs)
        for (const record of this.#unrouted.splice(0)) this.#laneOf(this.#route(record)).add(record)
      } catch (error) {
        const failure = clientErrorOf(error)
        if (!failure.retryable) rejectAll(this.#unrouted.splice(0), failure.withWritten('no'))
        else await this.#waitAfter(failure, attempt)
      }
    }
    this.#isAsking = false
  }

  async #waitAfter(failure: ClientError, attempt: number): Promise<void> {
    await this.#parts.flight.pause(failure.retryAfterMs ?? backoffMs(attempt, this.#parts.reconnect, Math.random()))
    const nowMs = performance.now()
    const late = this.#unrouted.filter(record => record.deadlineMs <= nowMs)
    this.#unrouted = this.#unrouted.filter(record => record.deadlineMs > nowMs)
    rejectAll(late, lateError(this.#parts.batching.deliveryTimeoutMs, 'no', `: ${failure.message}`))
  }

  /**
   * A record to a partition that no topic has is refused with the number there is. Whoever may produce may ask that, and
   * nothing is written.
   */
  async #askOnce(deadlineMs: number): Promise<number> {
    const records = [{ value: '', partition: NO_SUCH_PARTITION }]
    try {
      await this.#parts.flight.run(deadlineMs, connection => connection.produce(this.#topic, records))
    } catch (error) {
      const failure = clientErrorOf(error)
      const count = partitionCountOf(failure.message)
      if (count === null || count === 0) throw failure
      return count
    }
    throw new ClientError('protocol', 'no', `the broker took a record for partition ${NO_SUCH_PARTITION}`)
  }
}
