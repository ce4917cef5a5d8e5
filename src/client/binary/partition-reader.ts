/**
 * Reads one partition on and on: one read ahead of what is handled, and pauses that grow while there is nothing. Any
 * thread with an event loop; one owner.
 *
 * Invariants: at most one read is under way or waits to be taken; after stop() nothing more is told.
 */
import type { ConsumedRecord } from '../../wire/es01/consume.ts'
import type { BinaryClient } from './binary-client.ts'
import { clientErrorOf, type ClientError } from './client-error.ts'
import type { Reading } from './options.ts'
import { Bell, type Backoff } from './pauses.ts'
import { untilItSucceeds } from './retries.ts'

/** Where to begin: with the first record there is, behind the last, or at an offset. */
export type StartPlace = 'earliest' | 'latest' | number

/** A record, and the topic it is of. Key and value are the caller's. */
export interface ReceivedRecord extends ConsumedRecord {
  readonly topic: string
}

export interface ReaderParts {
  readonly client: Pick<BinaryClient, 'consume'>
  readonly reading: Reading
  /** Pauses while reading fails and may not the next time. */
  readonly reconnect: Backoff
  /** There is something to take. */
  readonly onRead: () => void
  /** What it stood behind is gone: the partition ends before its place. Nothing will come any more. */
  readonly onPlaceLost: (reader: PartitionReader, place: number, end: number) => void
  /** Nothing will come any more. */
  readonly onFailed: (error: ClientError) => void
}

/** Pauses while a partition has nothing new: a busy one is looked at often, a silent one costs little. */
const silence = { firstMs: 5, lastMs: 250 }
/** Beyond any log: a read there tells where the end is. */
const BEYOND = Number.MAX_SAFE_INTEGER

export class PartitionReader {
  readonly topic: string
  readonly partition: number
  readonly from: StartPlace
  readonly #parts: ReaderParts
  #finishedOffset: number | null = null
  #ahead: readonly ReceivedRecord[] | null = null
  #isStopped = false
  readonly #bell = new Bell()

  constructor(topic: string, partition: number, from: StartPlace, parts: ReaderParts) {
    this.topic = topic
    this.partition = partition
    this.from = from
    this.#parts = parts
  }

  /** One past the last record that the caller has finished with; null before the first. */
  get finishedOffset(): number | null {
    return this.#finishedOffset
  }

  get isStopped(): boolean {
    return this.#isStopped
  }

  /** There is something to take. */
  get hasRead(): boolean {
    return this.#ahead !== null
  }

  /** The caller has finished with that record and all before it. */
  finish({ offset }: ConsumedRecord): void {
    this.#finishedOffset = Math.max(this.#finishedOffset ?? 0, offset + 1)
  }

  start(): void {
    this.#run().catch((error: unknown) => {
      if (!this.#isStopped) this.#parts.onFailed(clientErrorOf(error))
    })
  }

  stop(): void {
    this.#isStopped = true
    this.#ahead = null
    this.#bell.ring()
  }

  /** @returns what was read ahead, which makes room for the next read; null if there is nothing. */
  take(): readonly ReceivedRecord[] | null {
    const records = this.#ahead
    if (records === null) return null
    this.#ahead = null
    this.#bell.ring()
    return records
  }

  async #run(): Promise<void> {
    let offset = this.from === 'latest' ? (await this.#read(BEYOND)).highWatermark : 0
    if (typeof this.from === 'number') offset = this.from
    let silenceMs = silence.firstMs
    while (!this.#isStopped) {
      const { records, nextOffset, highWatermark } = await this.#read(offset)
      if (this.#isStopped) return
      if (offset > highWatermark) return this.#parts.onPlaceLost(this, offset, highWatermark)
      offset = nextOffset
      if (records.length > 0) {
        silenceMs = silence.firstMs
        this.#ahead = records.map(record => ({ topic: this.topic, ...record }))
        this.#parts.onRead()
        while (this.#ahead !== null && !this.#isStopped) await this.#bell.wait(Infinity)
      } else if (nextOffset >= highWatermark) {
        await this.#bell.wait(silenceMs)
        silenceMs = Math.min(silence.lastMs, silenceMs * 2)
      }
    }
  }

  /** Until it succeeds, is stopped, or cannot succeed. */
  #read(offset: number): ReturnType<BinaryClient['consume']> {
    const { topic, partition } = this
    const { client, reading, reconnect } = this.#parts
    const request = { topic, partition, offset, maxBytes: reading.maxBytes, maxRecords: reading.maxRecords }
    return untilItSucceeds(() => client.consume(request), {
      backoff: reconnect,
      bell: this.#bell,
      isOver: () => this.#isStopped
    })
  }
}
