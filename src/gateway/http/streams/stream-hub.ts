/**
 * All streams of a gateway: how many there are, the places where their followers wait, the one clock of them all, and
 * their common end. Main thread; one instance per gateway.
 *
 * Invariants: followers that wait for the same wait at one place, so that a thousand streams at the end of a partition
 * cost one watch, one read and one text. Nothing of a stream outlives it: what it knows is in its events and its group.
 */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import type { Principal } from '../../../model/principal.ts'
import type { ReadFormat, ReadRequest } from '../../../model/requests.ts'
import type { ReplyHolding } from '../reads/reply-memory.ts'
import { halvesOf } from '../reads/start-offset.ts'
import type { Follower, Lender } from './follower.ts'
import { Place, type PlaceHost, type StreamServices } from './place.ts'

/** How a stream reads; streams that read alike share their reads. */
export interface StreamForm {
  readonly format: ReadFormat
  readonly maxRecords: number
  readonly maxBytes: number
}

/** What the hub does with an open stream. */
export interface HubStream {
  readonly partitionCount: number
  /** A while has passed. @param nowMs monotonic. */
  look(nowMs: number): void
  end(error: BrokerError): void
}

/** Times that a test makes short. */
export interface StreamTimes {
  readonly heartbeatMs: number
  readonly retryMs: number
}

/** A silent stream is noticed so much later at most, as a share of the time between two heartbeats. */
const LOOKS_PER_HEARTBEAT = 15

export class StreamHub implements PlaceHost, Lender {
  readonly services: StreamServices
  readonly heartbeatMs: number
  readonly retryMs: number
  readonly #streams = new Set<HubStream>()
  readonly #places = new Map<string, Place>()
  /** Followers that wait for a time, monotonic ms, with what they read by then. */
  readonly #later = new Map<Follower, { readonly form: StreamForm; readonly dueMs: number }>()
  readonly #forms = new WeakMap<Follower, StreamForm>()
  #partitionCount = 0
  #clock: NodeJS.Timeout | null = null
  #wakeUp: NodeJS.Timeout | null = null
  /** When it wakes, monotonic ms. */
  #wakeAtMs = Infinity
  #isStopping = false

  constructor(services: StreamServices, times: Partial<StreamTimes> = {}) {
    this.services = services
    this.heartbeatMs = times.heartbeatMs ?? limits.streamHeartbeatMs
    this.retryMs = times.retryMs ?? limits.streamRetryMs
  }

  /** Places where somebody waits: for tests and metrics. */
  get placeCount(): number {
    return this.#places.size
  }

  /** Whether a stream may read that partition: one over its quota waits until it may. @throws BrokerError as of refusalOfRead */
  checkReader(who: Principal, place: Pick<ReadRequest, 'topic' | 'partition'>): void {
    const refusal = this.services.broker.refusalOfRead(who, place)
    if (refusal !== null && refusal.code !== 'RATE_LIMITED') throw refusal
  }

  /** Whether one more stream, of so many partitions, may open. @throws BrokerError OVERLOADED, STOPPING */
  checkRoom(partitionCount: number): void {
    if (this.#isStopping) throw new BrokerError('STOPPING')
    const { streamsMax } = limits
    if (this.#streams.size >= streamsMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of streams', limit: streamsMax })
    }
    this.checkPartitionRoom(partitionCount)
  }

  /** Whether streams may follow so many more partitions. @throws BrokerError OVERLOADED */
  checkPartitionRoom(partitionCount: number): void {
    const { streamedPartitionsMax } = limits
    if (this.#partitionCount + partitionCount > streamedPartitionsMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of partitions of streams', limit: streamedPartitionsMax })
    }
  }

  add(stream: HubStream): void {
    this.#streams.add(stream)
    this.#partitionCount += stream.partitionCount
    this.services.probe.streams++
    this.#clock ??= setInterval(() => this.#look(), Math.max(1, this.heartbeatMs / LOOKS_PER_HEARTBEAT))
  }

  /** Of a stream that was added: it is closed. */
  forget(stream: HubStream): void {
    if (!this.#streams.delete(stream)) return
    this.#partitionCount -= stream.partitionCount
    this.services.probe.streams--
    if (this.#streams.size > 0) return
    if (this.#clock !== null) clearInterval(this.#clock)
    this.#clock = null
  }

  /** A stream follows more partitions than before, or fewer. */
  recount(change: number): void {
    this.#partitionCount += change
  }

  /** Has the follower wait at its position. @param isAvailable there is something to read. */
  follow(follower: Follower, form: StreamForm, isAvailable: boolean): void {
    const { topic, topicId, partition, position, isFromStart } = follower
    const { maxRecords, maxBytes, format } = form
    const key = `${topicId}/${partition}/${position}/${format}/${maxRecords}/${maxBytes}/${isFromStart}`
    let place = this.#places.get(key)
    if (place === undefined) {
      place = new Place(this, key, {
        topic,
        topicId,
        partition,
        ...halvesOf(position),
        maxRecords,
        maxBytes,
        format,
        isFromStart
      })
      this.#places.set(key, place)
    }
    follower.place = place
    this.#forms.set(follower, form)
    place.add(follower, isAvailable)
  }

  forgetPlace(place: Place): void {
    if (this.#places.get(place.key) === place) this.#places.delete(place.key)
  }

  /** It waits nowhere any more. */
  leave(follower: Follower): void {
    this.#later.delete(follower)
    follower.place?.remove(follower)
    follower.place = null
  }

  retryLater(follower: Follower, afterMs: number): void {
    const form = this.#forms.get(follower)
    if (form === undefined) return
    follower.place = null
    const dueMs = performance.now() + afterMs
    this.#later.set(follower, { form, dueMs })
    this.#wakeAt(dueMs)
  }

  /** One timer for whoever is due first. */
  #wakeAt(dueMs: number): void {
    if (dueMs >= this.#wakeAtMs) return
    if (this.#wakeUp !== null) clearTimeout(this.#wakeUp)
    this.#wakeAtMs = dueMs
    this.#wakeUp = setTimeout(() => this.#retry(), Math.max(1, dueMs - performance.now()))
  }

  #retry(): void {
    this.#wakeUp = null
    this.#wakeAtMs = Infinity
    const nowMs = performance.now()
    for (const [follower, { form, dueMs }] of this.#later) {
      if (dueMs > nowMs) continue
      this.#later.delete(follower)
      if (!follower.isGone && !follower.stream.isClosed) this.follow(follower, form, false)
    }
    let nextMs = Infinity
    for (const { dueMs } of this.#later.values()) nextMs = Math.min(nextMs, dueMs)
    this.#wakeAt(nextMs)
  }

  lend(party: string, bytes: number): ReplyHolding | null {
    const holding = this.services.replyMemory.open(party)
    if (holding.tryKeep(bytes)) return holding
    holding.close()
    return null
  }

  #look(): void {
    const nowMs = performance.now()
    for (const stream of this.#streams) stream.look(nowMs)
  }

  /** Ends all streams, and takes no more. */
  stop(): void {
    this.#isStopping = true
    for (const stream of this.#streams) stream.end(new BrokerError('STOPPING'))
    if (this.#wakeUp !== null) clearTimeout(this.#wakeUp)
    this.#later.clear()
  }
}
