/**
 * Records of some partitions, or of a group's share of them, one after the other. Any thread with an event loop.
 *
 *   for await ─▶ #iterate ─ take ─▶ PartitionReader ×n ─ reads ahead ─▶ BinaryClient
 *                              GroupShare ─ heartbeats, commits ─▶ which readers there are
 *                              PartitionWatch ─ without a group ─▶ which readers there are
 *
 * Invariants
 * - A record counts as finished when the loop asks for the next one.
 * - No record of a partition that went to another member is handed out, or committed; also not after it came back.
 */
import { BinaryClient } from './binary-client.ts'
import { clientError, clientErrorOf, invalidError, invalidField, type ClientError } from './client-error.ts'
import { GroupMember, type TopicPartition } from './group-member.ts'
import { GroupShare } from './group-share.ts'
import { connectingOf, readingOf, type GroupReadOptions, type ReadOptions, type Reading } from './options.ts'
import { PartitionReader, type ReceivedRecord, type StartPlace } from './partition-reader.ts'
import { PartitionWatch } from './partition-watch.ts'
import { Bell, type Backoff } from './pauses.ts'
import { checkName, checkOffset, checkPartition } from './records.ts'

/** Partitions that are read without a group. */
export interface PartitionsOptions extends ReadOptions {
  readonly topic: string
  /** Left out: all there are, also those that are added while the loop runs. */
  readonly partitions?: readonly number[]
  /**
   * Left out: earliest. If given as earliest or latest, also for places that are lost because the topic was made anew.
   * Partitions that are added are read from their first record on, wherever the others begin.
   */
  readonly from?: StartPlace
}

/** Membership of a group, which says what is read and from where. */
export interface GroupOptions extends GroupReadOptions {
  readonly group: string
  readonly topics: readonly string[]
  /** Of the broker's HTTP listener, where groups are coordinated: `http://127.0.0.1:9000`. */
  readonly http: string
  /** For partitions of which the group has committed nothing. Left out: earliest. If given, also for places that are lost. */
  readonly from?: 'earliest' | 'latest'
}

export type ConsumerOptions = PartitionsOptions | GroupOptions

/** For one loop: `for await (const record of consumer)`. Leaving the loop closes it. */
export class Consumer implements AsyncIterable<ReceivedRecord> {
  readonly #options: ConsumerOptions
  readonly #client: BinaryClient
  readonly #reading: Reading
  readonly #reconnect: Backoff
  readonly #share: GroupShare | null
  /** null: the partitions are named, or the group's matter. */
  #watch: PartitionWatch | null = null
  #readers: readonly PartitionReader[] = []
  /** Where each record comes from that was handed out: a partition that went and came back has another reader. */
  readonly #sources = new WeakMap<ReceivedRecord, PartitionReader>()
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
    this.#reconnect = connecting.reconnect
    this.#client = new BinaryClient(options)
    if (!('group' in options)) {
      checkPlaces(options)
      this.#share = null
      return
    }
    const { group, topics, http } = options
    checkGroup(options)
    const { token, tls, requestTimeoutMs: timeoutMs } = connecting
    const member = new GroupMember({ group, topics, http, token, tls, timeoutMs })
    this.#share = new GroupShare(
      member,
      { reading: this.#reading, reconnect: this.#reconnect },
      {
        readers: () => this.#readers,
        onAssigned: ({ places, committed }) => this.#assign(places, committed),
        onLost: () => this.#assign([], () => null),
        onFailed: error => this.#fail(error)
      }
    )
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
   * @param record the one in hand, or any that the loop gave: it and all before it in its partition are finished too.
   * @throws ClientError of kind invalid: the loop did not give that object
   */
  async commit(record?: ReceivedRecord): Promise<void> {
    if (record !== undefined) {
      const reader = this.#sources.get(record)
      if (reader === undefined) throw invalidField('record', record, 'commit takes a record as the loop gave it')
      if (!reader.isStopped) reader.finish(record)
    }
    await this.#share?.commit()
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
      this.#sources.set(record, reader)
      yield record
      reader.finish(record)
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
    if (this.#share !== null) return this.#share.start()
    const { topic, partitions, from = 'earliest' } = this.#options as PartitionsOptions
    if (partitions === undefined) return this.#readAll(topic, from)
    this.#assign(
      partitions.map(partition => ({ topic, partition })),
      () => from
    )
  }

  /** What was added since is new to this loop: it begins with its first record, also where the others began at their end. */
  async #readAll(topic: string, from: StartPlace): Promise<void> {
    const { metadataMaxAgeMs } = this.#reading
    const watch = new PartitionWatch(topic, { client: this.#client, reconnect: this.#reconnect, metadataMaxAgeMs })
    this.#watch = watch
    const count = await watch.count()
    this.#assign(allOf(topic, count), () => from)
    const onMore = (more: number): void => this.#assign(allOf(topic, more), () => 'earliest')
    watch.follow(count, onMore, error => this.#fail(error))
  }

  /** Readers of partitions that stay go on where they are. */
  #assign(places: readonly TopicPartition[], from: (place: TopicPartition) => StartPlace | null): void {
    const fallback = this.#options.from ?? 'earliest'
    const kept = this.#readers.filter(reader => places.some(isOf(reader)) && !isOvertaken(reader, from(reader)))
    for (const reader of this.#readers) if (!kept.includes(reader)) reader.stop()
    const added = this.#ending === null ? places : []
    const made = added
      .filter(place => !kept.some(isOf(place)))
      .map(place => new PartitionReader(place.topic, place.partition, from(place) ?? fallback, this.#readerParts()))
    this.#readers = [...kept, ...made]
    for (const reader of made) reader.start()
  }

  /** The topic was made anew, or a broker that lost power ends before what it gave. */
  #replace(reader: PartitionReader, place: number, end: number): void {
    const { topic, partition } = reader
    const { from } = this.#options
    if (from !== 'earliest' && from !== 'latest') {
      const reason = `partition ${partition} of topic ${topic} ends at ${end}, before offset ${place}: was it made anew?`
      return this.#fail(clientError('out-of-range', 'no', reason))
    }
    reader.stop()
    const anew = new PartitionReader(topic, partition, from, this.#readerParts())
    this.#readers = this.#readers.map(other => (other === reader ? anew : other))
    anew.start()
  }

  #readerParts() {
    return {
      client: this.#client,
      reading: this.#reading,
      reconnect: this.#reconnect,
      onRead: () => this.#bell.ring(),
      onPlaceLost: (reader: PartitionReader, place: number, end: number) => this.#replace(reader, place, end),
      onFailed: (error: ClientError) => this.#fail(error)
    }
  }

  #fail(error: ClientError): void {
    this.#failure ??= error
    this.#bell.ring()
  }

  async #end(): Promise<void> {
    this.#bell.ring()
    this.#watch?.stop()
    for (const reader of this.#readers) reader.stop()
    try {
      await this.#share?.end()
    } finally {
      this.#client.destroy()
    }
  }
}

function allOf(topic: string, count: number): TopicPartition[] {
  return Array.from({ length: count }, (_, partition) => ({ topic, partition }))
}

function checkPlaces({ topic, partitions, from }: PartitionsOptions): void {
  checkName('topic', topic)
  if (partitions !== undefined && !Array.isArray(partitions)) {
    throw invalidField('partitions', partitions, 'it must be an array')
  }
  for (const partition of partitions ?? []) checkPartition(partition)
  if (new Set(partitions).size !== (partitions ?? []).length) throw invalidError('partitions are named twice')
  if (typeof from === 'number') checkOffset('from', from)
  else checkFrom(from, "allowed are 'earliest', 'latest', or an offset")
}

function checkGroup({ group, topics, http, from }: GroupOptions): void {
  checkName('group', group)
  if (!Array.isArray(topics) || topics.length === 0) throw invalidError('topics must name at least one')
  for (const topic of topics) checkName('topic', topic)
  if (typeof http !== 'string' || !/^https?:\/\//.test(http)) {
    throw invalidField('http', http, 'it must be an address like http://127.0.0.1:9000')
  }
  checkFrom(from, "allowed are 'earliest' and 'latest'")
}

function checkFrom(from: unknown, allowed: string): void {
  if (from !== undefined && from !== 'earliest' && from !== 'latest') throw invalidField('from', from, allowed)
}

/**
 * Whether the group is behind more of that partition than its reader is: it went to another member and came back between
 * two beats, or somebody else has committed for the group.
 */
function isOvertaken({ finishedOffset, from }: PartitionReader, committed: StartPlace | null): boolean {
  if (typeof committed !== 'number') return false
  return committed > (finishedOffset ?? (typeof from === 'number' ? from : 0))
}

function isOf(place: TopicPartition): (other: TopicPartition) => boolean {
  return other => other.topic === place.topic && other.partition === place.partition
}
