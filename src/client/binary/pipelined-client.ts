/**
 * Records one by one, sent in batches, many requests in flight. Any thread with an event loop.
 *
 * Invariants
 * - Every record that `send` took settles exactly once, and its bytes are counted from `send` until then.
 * - Records of one partition (idempotent) or one topic (otherwise) leave in the order of the calls.
 */
import { randomUUID } from 'node:crypto'
import type { ProduceRecord, ProduceResult } from '../../wire/es01/produce-frame.ts'
import { clientError, closedError } from './client-error.ts'
import { Flight } from './flight.ts'
import { BatchSize, type LaneParts } from './lane-parts.ts'
import { batchingOf, connectingOf, type Batching, type PipelinedOptions } from './options.ts'
import { OrderedLane } from './ordered-lane.ts'
import type { Outgoing } from './outgoing.ts'
import { checkedBytesOf, checkName, checkRequestBytes } from './records.ts'
import { Room } from './room.ts'
import { RoutedTopic } from './routed-topic.ts'
import { Session } from './session.ts'

const done = Promise.resolve()

/** Every promise rejects with ClientError. */
export class PipelinedClient {
  readonly #batching: Batching
  readonly #session: Session
  readonly #parts: LaneParts
  /** No two clients write under one id, so none stands in another's way. */
  readonly #producerId = randomUUID()
  readonly #topics = new Map<string, RoutedTopic | OrderedLane>()
  readonly #room: Room
  #flushCount = 0
  #isClosing = false

  /** Connects at the first record. @throws ClientError of kind invalid */
  constructor(options: PipelinedOptions) {
    this.#session = new Session(connectingOf(options))
    this.#batching = batchingOf(options)
    this.#room = new Room(this.#batching.bufferBytes)
    this.#parts = {
      batching: this.#batching,
      flight: new Flight(this.#session),
      reconnect: this.#session.options.reconnect,
      requestTimeoutMs: this.#session.options.requestTimeoutMs,
      // What waits when the client is destroyed is rejected at once.
      isHurried: () => this.#flushCount > 0 || this.#isClosing,
      batchSize: new BatchSize(this.#batching.batchBytes)
    }
  }

  /** Bytes of the records that are not settled, with what a frame adds to them. */
  get bufferedBytes(): number {
    return this.#room.bytes
  }

  /**
   * Resolves when the record is as durable as the broker promises. Its bytes must not change until then.
   * Rejects at once, with nothing sent, of kind buffer-full while there is no room: see ready().
   */
  send(topic: string, record: ProduceRecord): Promise<ProduceResult> {
    // What is thrown in there rejects the promise.
    return new Promise((resolve, reject) => this.#send(topic, record, resolve, reject))
  }

  #send(topic: string, record: ProduceRecord, resolve: Outgoing['resolve'], reject: Outgoing['reject']): void {
    if (this.#isClosing) throw closedError()
    const target = this.#topics.get(topic) ?? this.#newTopic(topic)
    const bytes = checkedBytesOf(record)
    const { bufferBytes, deliveryTimeoutMs } = this.#batching
    const { requestBytesMax } = this.#session.options
    checkRequestBytes(bytes, topic, this.#producerId, requestBytesMax)
    const room = this.#room
    if (!room.hasSpace) {
      const message = `${room.bytes} bytes wait for their answer: over the limit of ${bufferBytes} (bufferBytes)`
      throw clientError('buffer-full', 'no', message, { retryable: true })
    }
    const sentMs = performance.now()
    const deadlineMs = sentMs + deliveryTimeoutMs
    const generation = room.enter(bytes)
    target.add({ record, bytes, sentMs, deadlineMs, generation, mayBeWritten: false, resolve, reject })
  }

  /** Resolves when there is room for a record. Where several callers wait, the next `send` may find it taken again. */
  ready(): Promise<void> {
    return this.#room.hasSpace ? done : this.#spaced()
  }

  async #spaced(): Promise<void> {
    while (!this.#room.hasSpace) {
      if (this.#session.isClosed) throw closedError()
      await this.#room.spaced()
    }
  }

  /** Resolves when all records that were sent before are settled, whether they were written or not. Sends them at once. */
  async flush(): Promise<void> {
    const settled = this.#room.settled()
    this.#flushCount++
    for (const topic of this.#topics.values()) topic.hurry()
    try {
      await settled
    } finally {
      this.#flushCount--
    }
  }

  /**
   * Takes no more records; resolves when all are settled and the connection is closed, which takes `deliveryTimeoutMs` and
   * `requestTimeoutMs` at most.
   */
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
    this.#room.wake()
  }

  #newTopic(name: string): RoutedTopic | OrderedLane {
    checkName('topic', name)
    const topic = this.#batching.idempotent
      ? new RoutedTopic(name, this.#producerId, this.#parts)
      : new OrderedLane(name, this.#parts)
    this.#topics.set(name, topic)
    return topic
  }
}
