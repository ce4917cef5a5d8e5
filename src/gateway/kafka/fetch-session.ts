/**
 * The partitions of a fetch, kept from one fetch to the next if the client has a session (KIP-227). Main thread.
 *
 *   ready ──read──▶ seen: something is there       ─┐ more came, or its fetch is over: ready again
 *     ▲       └───▶ quiet: nothing is; it is watched ┘ something came: ready again
 *
 * So a fetch reads what is ready, and a thousand partitions without news cost it nothing. A fetch without a session has one
 * of its own, with id 0, that ends with it. What is ready behind an answer is read ahead, for a while.
 *
 * Invariants: what is ready has no watch. What has a fault is neither ready nor seen: it is told each time. One fetch at a
 * time. It alone changes what is asked of it, who uses it, and what its partitions are refused for.
 */
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import type { Principal } from '../../model/principal.ts'
import type { Broker } from '../../model/requests.ts'
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import {
  FetchedPartition,
  type AheadReader,
  type PartitionOwner,
  type PartitionPlace
} from './handlers/fetched-partition.ts'

/** A fetch in progress, as its session sees it. */
export interface SessionCall {
  /** Partitions are ready that were not. */
  onMore(): void
  /** It is to be answered with what there is. */
  hurry(): void
}

/** A partition that a client asks for, with what it is refused for. */
export interface AskedPartition {
  readonly place: PartitionPlace
  readonly fault: number
}

const EPOCH_MAX = 0x7fff_ffff

export class FetchSession implements PartitionOwner {
  /** 0: it is none that the client knows. */
  id = 0
  /** Does it name topics by their ids? */
  readonly isById: boolean
  /** Of the broker, when what the client believes of leaders was looked at. */
  readonly leaderEpochChanges: number
  /** In the order in which they were first asked for. */
  readonly partitions = new Map<string, FetchedPartition>()
  /** To be read, those first that waited longest for it. */
  readonly ready = new Set<FetchedPartition>()
  /** Read by the fetch in progress: there is something. */
  readonly seen = new Set<FetchedPartition>()
  readonly faulted = new Set<FetchedPartition>()
  #quietTurn: Iterator<FetchedPartition> | null = null
  #nextEpoch = 1
  #lastUsedMs = 0
  #isLeft = false
  #call: SessionCall | null = null
  /** Ends what is read ahead and not asked for. */
  #aheadTimer: NodeJS.Timeout | null = null

  constructor(isById: boolean, leaderEpochChanges: number) {
    this.isById = isById
    this.leaderEpochChanges = leaderEpochChanges
  }

  /** Of the next request. */
  get nextEpoch(): number {
    return this.#nextEpoch
  }

  /** Monotonic time at which it was asked for last, or its last fetch was answered. */
  get lastUsedMs(): number {
    return this.#lastUsedMs
  }

  /** The connection that used it is gone: nothing of it is watched until another one does. */
  get isLeft(): boolean {
    return this.#isLeft
  }

  /** A fetch is in progress. */
  get isBusy(): boolean {
    return this.#call !== null
  }

  /** That request was the next one. */
  advance(): void {
    this.#nextEpoch = this.#nextEpoch === EPOCH_MAX ? 1 : this.#nextEpoch + 1
  }

  /** A connection uses it, its first one or another. */
  use(nowMs: number): void {
    this.#isLeft = false
    this.#lastUsedMs = nowMs
  }

  /** Its connection is gone. */
  leave(): void {
    this.#isLeft = true
    if (this.#call === null) this.rest()
  }

  /** A fetch reads it from here on, alone. */
  begin(call: SessionCall): void {
    assert(this.#call === null, 'a session has one fetch at a time')
    this.#call = call
    this.#stopAheadTimer()
  }

  /** Adds a partition, or asks anew for one that it has. */
  ask({ place, fault }: AskedPartition): void {
    const key = keyOf(this.isById ? place.uuid : place.topic, place.partition)
    let partition = this.partitions.get(key)
    if (partition === undefined) {
      partition = new FetchedPartition(this, place, fault)
      this.partitions.set(key, partition)
    } else {
      partition.ask(place, fault)
    }
    const isFine = fault === kafkaErrors.NONE.code
    this.faulted[isFine ? 'delete' : 'add'](partition)
    this.ready[isFine ? 'add' : 'delete'](partition)
  }

  /** Reads begin with this one of those that are ready. */
  beginAt(index: number): void {
    for (const partition of [...this.ready].slice(0, index)) {
      this.ready.delete(partition)
      this.ready.add(partition)
    }
  }

  /** The client wants nothing more of it. @param topic as it names topics. */
  forget(topic: string, partition: number): void {
    const key = keyOf(topic, partition)
    const found = this.partitions.get(key)
    if (found === undefined) return
    found.endWatch()
    found.endAhead()
    this.partitions.delete(key)
    for (const set of [this.ready, this.seen, this.faulted]) set.delete(found)
  }

  /** Up to so many quiet ones, others each time: what becomes of their ends is seen by no watch. */
  someQuiet(most: number): FetchedPartition[] {
    const found: FetchedPartition[] = []
    for (let i = 0; i < Math.min(most, this.partitions.size); i++) {
      this.#quietTurn ??= this.partitions.values()
      const { done, value } = this.#quietTurn.next()
      if (done === true) this.#quietTurn = null
      else if (value.isWatched && !this.seen.has(value)) found.push(value)
    }
    return found
  }

  /** A read went well. */
  noteRead(partition: FetchedPartition): void {
    this.ready.delete(partition)
    if (partition.hasMore) this.seen.add(partition)
  }

  /** A read went wrong: it is tried again by the next fetch. @param errorCode what is to be told; null: what is known of it. */
  noteFailed(partition: FetchedPartition, errorCode: number | null): void {
    if (errorCode !== null) partition.errorCode = errorCode
    partition.endWatch()
    this.seen.delete(partition)
    this.ready.add(partition)
  }

  /** What was read is given up while its fetch waits. */
  noteDropped(): void {
    for (const partition of this.seen) partition.isDropped = partition.bytes > 0
  }

  /** All that there is something in is read again: first what got least, or it would get nothing but rests for ever. */
  readAgain(): void {
    for (const partition of [...this.seen].sort((one, other) => one.grantedBytes - other.grantedBytes)) {
      partition.endWatch()
      this.ready.add(partition)
    }
    this.seen.clear()
  }

  /** Its fetch is answered. @param read the partitions that it has read: what is quiet is watched from here on. */
  endCall(broker: Broker, who: Principal, read: Iterable<FetchedPartition>, nowMs: number): void {
    this.#call = null
    this.#lastUsedMs = nowMs
    this.readAgain()
    if (this.id === 0 || this.#isLeft) return this.rest()
    if (this.ready.size > 0) {
      this.#aheadTimer = setTimeout(() => this.#endAhead(), limits.kafkaFetchAheadMs).unref()
    }
    for (const partition of read) {
      const isQuiet = !this.ready.has(partition) && !this.faulted.has(partition)
      if (isQuiet && !partition.isWatched) partition.watch(broker, who, 1)
    }
  }

  /**
   * Its fetch is answered: what its client asks for next, if it goes on, is read now. As much as a fetch may bring, by as many reads as
   * one has at once.
   */
  readAhead(reader: AheadReader, fetchBytes: number): void {
    if (this.id === 0 || this.#isLeft) return
    let leftBytes = fetchBytes
    let count = 0
    for (const partition of this.ready) {
      if (leftBytes <= 0 || count >= limits.kafkaFetchReadsMax) break
      const bytes = partition.readAhead(reader, leftBytes)
      leftBytes -= bytes
      if (bytes > 0) count++
    }
  }

  #endAhead(): void {
    this.#stopAheadTimer()
    for (const partition of this.ready) partition.endAhead()
  }

  #stopAheadTimer(): void {
    if (this.#aheadTimer !== null) clearTimeout(this.#aheadTimer)
    this.#aheadTimer = null
  }

  /** Nothing of it is watched any more, or read ahead: all is to be read by the next fetch. */
  rest(): void {
    this.#stopAheadTimer()
    for (const partition of this.partitions.values()) {
      partition.endWatch()
      partition.endAhead()
      if (!this.faulted.has(partition)) this.ready.add(partition)
    }
    this.seen.clear()
  }

  /** It is nobody's any more: a fetch in progress is answered now. */
  close(): void {
    this.id = 0
    if (this.#call === null) this.rest()
    else this.#call.hurry()
  }

  onMore(partition: FetchedPartition): void {
    this.seen.delete(partition)
    this.ready.add(partition)
    this.#call?.onMore()
  }

  onUnwatched(partition: FetchedPartition): void {
    this.seen.delete(partition)
    this.ready.add(partition)
  }

  onWatchFailed(partition: FetchedPartition): void {
    this.onUnwatched(partition)
    this.#call?.hurry()
  }
}

function keyOf(topic: string, partition: number): string {
  return `${partition} ${topic}`
}
