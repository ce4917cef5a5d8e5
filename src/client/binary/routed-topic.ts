/**
 * One topic of an idempotent client: which partition a record goes to, and a lane for each. A record names its partition,
 * or its key does by the broker's hash, or it goes where the last ones without key went, until those are sent. Any thread
 * with an event loop.
 *
 * How many partitions there are, and which hash the topic has, is asked of the broker
 * - when it matters for the first time, and when the topic turns out to be another one of its name: records wait for that;
 * - behind the first record that is written: until a topic has one its hash may change, from then on it may not;
 * - when what is known has become old, as partitions may be added: no record waits for that.
 *
 * Invariant: a record that is in a lane stays there through all retries, whatever is learnt meanwhile, unless its partition
 * is not there: then no copy of it was written.
 */
import { fnv1a64Modulo, type KeyHash } from '../../base/hash.ts'
import { keyHashes } from '../../model/key-hashes.ts'
import { clientError, clientErrorOf, withWritten, type ClientError } from './client-error.ts'
import type { LaneParts } from './lane-parts.ts'
import { earliestDeadlineMs, lateError, rejectAll, type Outgoing } from './outgoing.ts'
import { PartitionLane, type LaneOwner } from './partition-lane.ts'
import { backoffMs } from './pauses.ts'
import type { Spread } from './refusals.ts'
import { askSpread, SpreadRefresh, type SpreadOwner } from './spread-refresh.ts'

/** Bytes of keys, for their hash: used within one call. */
const scratch = Buffer.allocUnsafe(1024)
const UNKNOWN_HASH = 'a hash of keys that this client does not know: name the partitions, or send without idempotence'
/** UTF-8 of one unit of a string. */
const UNIT_BYTES_MAX = 3

export class RoutedTopic implements LaneOwner, SpreadOwner {
  readonly #topic: string
  readonly #producerId: string
  readonly #parts: LaneParts
  readonly #lanes = new Map<number, PartitionLane>()
  /** 0: not known. */
  #partitionCount = 0
  /** Of keys; means nothing while the count is not known. */
  #hash: KeyHash = fnv1a64Modulo
  /** Where records without key go now. */
  #sticky = 0
  /** Lanes of partitions that are not there any more, until their records have moved, how many there were, and the hash then. */
  #leaving = new Map<number, PartitionLane>()
  #formerCount = 0
  #formerHash: KeyHash = fnv1a64Modulo
  /** Records whose partition is not known yet, and all that came after the first of them, in order. */
  #unrouted: Outgoing[] = []
  #isAsking = false
  readonly #refresh: SpreadRefresh
  /** A record was written since it was last learnt that this is another topic. */
  #hasRecords = false

  constructor(topic: string, producerId: string, parts: LaneParts) {
    this.#topic = topic
    this.#producerId = producerId
    this.#parts = parts
    this.#refresh = new SpreadRefresh(topic, parts, this)
  }

  add(record: Outgoing): void {
    // Whoever names a partition does not overtake who waits for the count, as that may go to the same one.
    this.#refresh.askIfDue(record.sentMs)
    const isFirst = this.#unrouted.length === 0
    if (isFirst && (this.#partitionCount > 0 || record.record.partition !== undefined)) return this.#route(record)
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

  onOutOfRange(partition: number, spread: Spread, records: readonly Outgoing[], error: ClientError): void {
    this.onSpread(spread)
    if (spread.partitioner === null) return rejectAll(records, error)
    this.#leaving.delete(partition)
    for (const record of records) {
      if (record.record.partition === undefined) this.add(record)
      else rejectAll([record], error)
    }
  }

  /** Partitions were added, or it is another topic of that name: that cannot be told apart, so lanes go on as after the second. */
  onSpread(spread: Spread): void {
    const { partitionCount, partitioner } = spread
    // The next record hears of it.
    if (partitioner === null) return this.onMadeAnew()
    const formerCount = this.#partitionCount
    const formerHash = this.#hash
    if (formerCount !== partitionCount || formerHash !== keyHashes[partitioner]) {
      if (formerCount > 0) this.onMadeAnew()
      this.#formerCount = formerCount
      this.#formerHash = formerHash
      const isLeaving = ([number, lane]: [number, PartitionLane]): boolean => number >= partitionCount && lane.isRunning
      this.#leaving = new Map([...this.#lanes].filter(isLeaving))
    }
    this.#know(partitionCount, keyHashes[partitioner])
  }

  onMadeAnew(): void {
    this.#forgetSpread()
    this.#hasRecords = false
    for (const lane of this.#lanes.values()) lane.forget()
  }

  onWritten(): void {
    if (this.#hasRecords) return
    this.#hasRecords = true
    this.#refresh.hasten()
  }

  onRejected(): void {
    // Whoever mends what was wrong with the first records may change the hash too.
    if (!this.#hasRecords) this.#forgetSpread()
  }

  #know(partitionCount: number, hash: KeyHash): void {
    this.#partitionCount = partitionCount
    this.#hash = hash
    this.#refresh.onLearnt(performance.now())
  }

  #forgetSpread(): void {
    this.#partitionCount = 0
    this.#refresh.onForgotten()
  }

  #laneOf(partition: number): PartitionLane {
    let lane = this.#lanes.get(partition)
    if (lane === undefined) {
      lane = new PartitionLane(this.#topic, partition, this.#producerId, this.#parts, this)
      this.#lanes.set(partition, lane)
    }
    return lane
  }

  /** The count is known, or the record names its partition. */
  #route(outgoing: Outgoing): void {
    const { partition } = outgoing.record
    this.#laneOf(partition ?? this.#partitionOf(outgoing.record.key ?? null)).add(outgoing)
  }

  #partitionOf(key: Uint8Array | string | null): number {
    const count = this.#partitionCount
    if (key === null) {
      if (this.#sticky >= count) this.#sticky = 0
      return this.#sticky
    }
    if (this.#leaving.size > 0) {
      // Records of this key may still be in a lane that is about to move: behind those.
      const former = partitionOf(key, this.#formerCount, this.#formerHash)
      if (this.#leaving.get(former)?.isRunning === true) return former
    }
    return partitionOf(key, count, this.#hash)
  }

  /** Asks until the count is known, then routes what waited; or rejects what needs it. */
  async #ask(): Promise<void> {
    for (let attempt = 1; this.#unrouted.length > 0; attempt++) {
      try {
        const deadlineMs = earliestDeadlineMs(this.#unrouted)
        const { partitionCount, partitioner } = await askSpread(this.#topic, this.#parts, deadlineMs)
        if (partitioner === null) throw clientError('protocol', 'no', `topic '${this.#topic}' has ${UNKNOWN_HASH}`)
        this.#know(partitionCount, keyHashes[partitioner])
        for (const record of this.#takeUnrouted()) this.#route(record)
      } catch (error) {
        const failure = clientErrorOf(error)
        if (failure.retryable) await this.#waitAfter(failure, attempt)
        else this.#giveUp(withWritten(failure, 'no'))
      }
    }
    this.#isAsking = false
  }

  #takeUnrouted(): Outgoing[] {
    const records = this.#unrouted
    this.#unrouted = []
    return records
  }

  /** There will be no count. Who names a partition hears what the broker says of that. */
  #giveUp(failure: ClientError): void {
    const records = this.#takeUnrouted()
    const isNamed = ({ record }: Outgoing): boolean => record.partition !== undefined
    rejectAll(
      records.filter(record => !isNamed(record)),
      failure
    )
    for (const record of records.filter(isNamed)) this.#route(record)
  }

  async #waitAfter(failure: ClientError, attempt: number): Promise<void> {
    const waitMs = failure.retryAfterMs ?? backoffMs(attempt, this.#parts.reconnect, Math.random())
    await this.#parts.flight.pause(Math.min(waitMs, earliestDeadlineMs(this.#unrouted) - performance.now()))
    const nowMs = performance.now()
    const late = this.#unrouted.filter(record => record.deadlineMs <= nowMs)
    this.#unrouted = this.#unrouted.filter(record => record.deadlineMs > nowMs)
    rejectAll(late, lateError(this.#parts.batching.deliveryTimeoutMs, 'no', `: ${failure.message}`))
  }
}

/** Where the broker puts a key. */
function partitionOf(key: Uint8Array | string, count: number, hash: KeyHash): number {
  if (typeof key !== 'string') return hash(key, 0, key.length, count)
  if (key.length * UNIT_BYTES_MAX <= scratch.length) return hash(scratch, 0, scratch.write(key), count)
  const bytes = Buffer.from(key, 'utf8')
  return hash(bytes, 0, bytes.length, count)
}
