/**
 * Records of some partitions, or of a group's share of them, one after the other. Any thread with an event loop.
 *
 *   for await ─▶ #iterate ─ take ─▶ PartitionReader ×n ─ reads ahead ─▶ BinaryClient
 *                              GroupShare ─ heartbeats, commits ─▶ which readers there are
 *
 * Invariants
 * - A record counts as finished when the loop asks for the next one.
 * - No record of a partition that went to another member is handed out, or committed.
 */
import { BinaryClient } from './binary-client.ts'
import { clientErrorOf, invalidError, type ClientError } from './client-error.ts'
import { GroupMember, type TopicPartition } from './group-member.ts'
import { GroupShare } from './group-share.ts'
import { connectingOf, readingOf, type GroupReadOptions, type ReadOptions, type Reading } from './options.ts'
import { PartitionReader, type ReceivedRecord, type StartPlace } from './partition-reader.ts'
import { Bell } from './pauses.ts'
import { NO_SUCH_PARTITION } from './records.ts'
import { partitionCountOf } from './refusals.ts'

/** Partitions that are read without a group. */
export interface PartitionsOptions extends ReadOptions {
  readonly topic: string
  /** Left out: all there are when the loop begins. */
  readonly partitions?: readonly number[]
  /** Left out: earliest. */
  readonly from?: StartPlace
}

/** Membership of a group, which says what is read and from where. */
export interface GroupOptions extends GroupReadOptions {
  readonly group: string
  readonly topics: readonly string[]
  /** Of the broker's HTTP listener, where groups are coordinated: `http://127.0.0.1:9000`. */
  readonly http: string
  /** For partitions of which the group has committed nothing. Left out: earliest. */
  readonly from?: 'earliest' | 'latest'
}

export type ConsumerOptions = PartitionsOptions | GroupOptions

/** For one loop: `for await (const record of consumer)`. Leaving the loop closes it. */
export class Consumer implements AsyncIterable<ReceivedRecord> {
  readonly #options: ConsumerOptions
  readonly #client: BinaryClient
  readonly #reading: Reading
  readonly #share: GroupShare | null
  #readers: readonly PartitionReader[] = []
  /** Reader that is asked first: the one behind the last that had something. */
  #turn = 0
  #failure: ClientError | null = null
  readonly #bell = new Bell()
  #isStarted = false
  #ending: Promise<void> | null = null

  /** Connects when the loop begins. @throws ClientError of kind invalid */
  constructor(options: ConsumerOptions) {
    const connecting = connectingOf(options)
    this.#options = options
    this.#reading = readingOf(options)
    this.#client = new BinaryClient(options)
    if (!('group' in options)) {
      checkPlaces(options)
      this.#share = null
      return
    }
    const { group, topics, http } = options
    if (!Array.isArray(topics) || topics.length === 0) throw invalidError('topics must name at least one')
    if (!/^https?:\/\//.test(http)) throw invalidError('http must be an address like http://127.0.0.1:9000')
    const { token, tls, requestTimeoutMs: timeoutMs } = connecting
    this.#share = new GroupShare(new GroupMember({ group, topics, http, token, tls, timeoutMs }), this.#reading, {
      onAssigned: ({ places, committed }) => this.#assign(places, committed),
      onLost: () => this.#assign([], () => null),
      onFailed: error => this.#fail(error)
    })
  }

  /** @throws ClientError of kind invalid: it was asked for before */
  [Symbol.asyncIterator](): AsyncGenerator<ReceivedRecord, void, void> {
    if (this.#isStarted) throw invalidError('a consumer is for one loop: make another')
    this.#isStarted = true
    return this.#iterate()
  }

  /**
   * Has the group go on behind what the loop has finished with. Records of partitions that went to another member are left
   * out. Of a consumer without a group it does nothing.
   * @param record the one in hand, or any of its loop: it and all before it in its partition are finished too.
   */
  async commit(record?: ReceivedRecord): Promise<void> {
    if (record !== undefined) {
      const reader = this.#readers.find(isOf(record))
      if (reader !== undefined) reader.finishedOffset = Math.max(reader.finishedOffset ?? 0, record.offset + 1)
    }
    await this.#share?.commit(this.#readers)
  }

  /** Ends the loop before its next record. Resolves when what was finished is committed and the group is left. */
  close(): Promise<void> {
    this.#ending ??= this.#end()
    return this.#ending
  }

  async *#iterate(): AsyncGenerator<ReceivedRecord, void, void> {
    let hasFailed = false
    try {
      await this.#begin()
      while (this.#ending === null) {
        if (this.#failure !== null) throw this.#failure
        const reader = this.#readyReader()
        if (reader === null) await this.#bell.wait(Infinity)
        else yield* this.#recordsOf(reader)
      }
    } catch (error) {
      // close() while the loop was about to begin: it ends like any other.
      if (this.#ending !== null && clientErrorOf(error).kind === 'closed') return
      hasFailed = true
      throw error
    } finally {
      const closed = this.close()
      // What the loop hears is the first failure; that closing failed too mostly follows from it.
      await (hasFailed ? closed.catch(() => undefined) : closed)
    }
  }

  *#recordsOf(reader: PartitionReader): Generator<ReceivedRecord, void, void> {
    for (const record of reader.take() ?? []) {
      if (this.#ending !== null || reader.isStopped) return
      yield record
      reader.finishedOffset = Math.max(reader.finishedOffset ?? 0, record.offset + 1)
    }
  }

  /** The next in turn that has something. */
  #readyReader(): PartitionReader | null {
    const { length } = this.#readers
    for (let i = 0; i < length; i++) {
      const index = (this.#turn + i) % length
      const reader = this.#readers[index]
      if (reader?.hasRead !== true) continue
      this.#turn = index + 1
      return reader
    }
    return null
  }

  async #begin(): Promise<void> {
    if (this.#ending !== null) return
    if (this.#share !== null) return this.#share.start(() => this.#readers)
    const { topic, partitions, from = 'earliest' } = this.#options as PartitionsOptions
    const numbers = partitions ?? Array.from({ length: await this.#partitionCount(topic) }, (_, i) => i)
    const places = numbers.map(partition => ({ topic, partition }))
    this.#assign(places, () => from)
  }

  /** A read of a partition that no topic has is refused with the number there is. */
  async #partitionCount(topic: string): Promise<number> {
    try {
      await this.#client.consume({ topic, partition: NO_SUCH_PARTITION, offset: 0 })
    } catch (error) {
      const failure = clientErrorOf(error)
      const count = partitionCountOf(failure.message)
      if (count === null) throw failure
      return count
    }
    throw invalidError(`topic ${topic} has a partition ${NO_SUCH_PARTITION}`)
  }

  /** Readers of partitions that stay go on where they are. */
  #assign(places: readonly TopicPartition[], from: (place: TopicPartition) => StartPlace | null): void {
    if (this.#ending !== null) return
    const fallback = this.#options.from ?? 'earliest'
    const kept = this.#readers.filter(reader => places.some(isOf(reader)))
    for (const reader of this.#readers) if (!kept.includes(reader)) reader.stop()
    const made = places
      .filter(place => !kept.some(isOf(place)))
      .map(place => new PartitionReader(place.topic, place.partition, from(place) ?? fallback, this.#readerParts()))
    this.#readers = [...kept, ...made]
    for (const reader of made) reader.start()
  }

  #readerParts() {
    return {
      client: this.#client,
      reading: this.#reading,
      onRead: () => this.#bell.ring(),
      onFailed: (error: ClientError) => this.#fail(error)
    }
  }

  #fail(error: ClientError): void {
    this.#failure ??= error
    this.#bell.ring()
  }

  async #end(): Promise<void> {
    const readers = this.#readers
    this.#bell.ring()
    for (const reader of readers) reader.stop()
    try {
      await this.#share?.end(readers)
    } finally {
      this.#client.destroy()
    }
  }
}

function checkPlaces({ topic, partitions, from }: PartitionsOptions): void {
  if (typeof topic !== 'string' || topic === '') throw invalidError('topic must be a name')
  for (const partition of partitions ?? []) {
    if (!Number.isInteger(partition) || partition < 0) throw invalidError(`partition is ${partition}: whole, from 0`)
  }
  if (new Set(partitions).size !== (partitions ?? []).length) throw invalidError('partitions are named twice')
  const isOffset = typeof from === 'number' && Number.isSafeInteger(from) && from >= 0
  if (from !== undefined && from !== 'earliest' && from !== 'latest' && !isOffset) {
    throw invalidError(`from is ${from}: earliest, latest, or an offset`)
  }
}

function isOf(place: TopicPartition): (other: TopicPartition) => boolean {
  return other => other.topic === place.topic && other.partition === place.partition
}
