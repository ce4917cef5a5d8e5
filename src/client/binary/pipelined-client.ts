/**
 * Records one by one, sent in batches, many requests in flight. Any thread with an event loop.
 *
 * Invariants
 * - Every record that `send` took settles exactly once, and its bytes are counted from `send` until then.
 * - Records of one partition (idempotent) or one topic (otherwise) leave in the order of the calls.
 */
import { randomUUID } from 'node:crypto'
import type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'
import { ClientError, closedError } from './client-error.ts'
import { Flight } from './flight.ts'
import { BatchSize, type LaneParts } from './lane-parts.ts'
import { batchingOf, connectingOf, type Batching, type PipelinedOptions } from './options.ts'
import { OrderedLane } from './ordered-lane.ts'
import type { Outgoing } from './outgoing.ts'
import { Bell } from './pauses.ts'
import { checkedBytesOf, checkTopic } from './records.ts'
import { RoutedTopic } from './routed-topic.ts'
import { Session } from './session.ts'

/** Records that were sent between two calls of flush. */
interface Generation {
  openCount: number
}

/** Every promise rejects with ClientError. */
export class PipelinedClient {
  readonly #batching: Batching
  readonly #session: Session
  readonly #parts: LaneParts
  /** No two clients write under one id, so none stands in another's way. */
  readonly #producerId = randomUUID()
  readonly #topics = new Map<string, RoutedTopic | OrderedLane>()
  #bufferedBytes = 0
  readonly #room = new Bell()
  /** Those with open records. */
  readonly #generations = new Set<Generation>()
  /** The one of records that are sent now. */
  #generation: Generation = { openCount: 0 }
  readonly #settled = new Bell()
  #flushCount = 0
  #isClosing = false

  /** Connects at the first record. @throws ClientError of kind invalid */
  constructor(options: PipelinedOptions) {
    this.#batching = batchingOf(options)
    this.#session = new Session(connectingOf(options))
    this.#parts = {
      batching: this.#batching,
      flight: new Flight(this.#session),
      reconnect: this.#session.options.reconnect,
      isHurried: () => this.#flushCount > 0,
      batchSize: new BatchSize(this.#batching.batchBytes)
    }
  }

  /** Bytes of the records that are not settled, with what a frame adds to them. */
  get bufferedBytes(): number {
    return this.#bufferedBytes
  }

  /**
   * Resolves when the record is as durable as the broker promises. Its bytes must not change until then.
   * Rejects at once, with nothing sent, of kind buffer-full while there is no room: see ready().
   */
  async send(topic: string, record: ProduceRecord): Promise<ProduceResult> {
    if (this.#isClosing) throw closedError()
    checkTopic(topic)
    const bytes = checkedBytesOf(record)
    const { bufferBytes, deliveryTimeoutMs } = this.#batching
    if (this.#bufferedBytes >= bufferBytes) {
      const message = `${this.#bufferedBytes} bytes wait for their answer: over the limit of ${bufferBytes} (bufferBytes)`
      throw new ClientError('buffer-full', 'no', message, { isRetryable: true })
    }
    const generation = this.#generation
    this.#generations.add(generation)
    generation.openCount++
    this.#bufferedBytes += bytes
    const sentMs = performance.now()
    try {
      return await new Promise<ProduceResult>((resolve, reject) => {
        const outgoing: Outgoing = { record, bytes, sentMs, deadlineMs: sentMs + deliveryTimeoutMs, resolve, reject }
        this.#topicNamed(topic).add(outgoing)
      })
    } finally {
      this.#bufferedBytes -= bytes
      this.#room.ring()
      if (--generation.openCount === 0) {
        this.#generations.delete(generation)
        this.#settled.ring()
      }
    }
  }

  /** Resolves when there is room for a record. Where several callers wait, the next `send` may find it taken again. */
  async ready(): Promise<void> {
    while (this.#bufferedBytes >= this.#batching.bufferBytes) {
      if (this.#session.isClosed) throw closedError()
      await this.#room.wait(Infinity)
    }
  }

  /** Resolves when all records that were sent before are settled, whether they were written or not. Sends them at once. */
  async flush(): Promise<void> {
    const before = [...this.#generations]
    this.#generation = { openCount: 0 }
    this.#flushCount++
    for (const topic of this.#topics.values()) topic.hurry()
    try {
      while (before.some(generation => generation.openCount > 0)) await this.#settled.wait(Infinity)
    } finally {
      this.#flushCount--
    }
  }

  /** Takes no more records; resolves when all are settled and the connection is closed. */
  async close(): Promise<void> {
    this.#isClosing = true
    await this.flush()
    await this.#session.close()
  }

  /** Closes at once: what is not settled rejects. */
  destroy(): void {
    this.#isClosing = true
    this.#session.destroy()
    for (const topic of this.#topics.values()) topic.hurry()
    this.#room.ring()
  }

  #topicNamed(name: string): RoutedTopic | OrderedLane {
    let topic = this.#topics.get(name)
    if (topic === undefined) {
      topic = this.#batching.idempotent
        ? new RoutedTopic(name, this.#producerId, this.#parts)
        : new OrderedLane(name, this.#parts)
      this.#topics.set(name, topic)
    }
    return topic
  }
}
