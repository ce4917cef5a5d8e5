/**
 * One partition of a fetch or of a fetch session: what is asked, what the last read brought, what was told of it, and the
 * watch, or what is read ahead, while nobody fetches. Main thread; owned by its session.
 */
import { assert } from '../../../base/assert.ts'
import { BrokerError } from '../../../model/errors.ts'
import type { TopicId } from '../../../model/ids.ts'
import type { Principal } from '../../../model/principal.ts'
import type { Broker, ReadRequest, SubmitOutcome, Watch, WatchCaller } from '../../../model/requests.ts'
import { readFormats, submitOutcomes } from '../../../model/requests.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { TWO_32 } from '../../../wire/primitives/u64.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import { AheadRead, type AheadRoom, type AheadTerms } from './ahead-read.ts'
import { BatchesRead } from './batches-read.ts'

/** What a partition is to the fetch that reads it. */
export interface PartitionReader {
  readonly pool: BufferPool
  /** Its client knows nothing of zstd. */
  readonly hidesZstd: boolean
  /** Batches of so many bytes have come: are they kept? What is not is as if there were none. */
  accept(partition: FetchedPartition, bytes: number): boolean
  /** The read is over. @param error null: it went well. */
  settled(partition: FetchedPartition, error: BrokerError | null): void
}

/** What a client's next fetch will be like. */
export interface AheadReader {
  readonly broker: Broker
  readonly who: Principal
  readonly pool: BufferPool
  readonly hidesZstd: boolean
  readonly room: AheadRoom
}

/** What a partition is to whom it belongs. Its watch is over in all three cases. */
export interface PartitionOwner {
  /** There is as much as was waited for. */
  onMore(partition: FetchedPartition): void
  /** Too many wait already: it is to be read instead. */
  onUnwatched(partition: FetchedPartition): void
  /** A read will tell what is wrong. */
  onWatchFailed(partition: FetchedPartition): void
}

/** Which partition, and what of it. */
export interface PartitionPlace {
  /** Its name, also where the client says an id; '' if there is none. */
  readonly topic: string
  /** Of a client that names topics by id: as it says it, and what it stands for. */
  readonly uuid: string
  readonly topicId: TopicId | undefined
  readonly partition: number
  readonly offset: number
  readonly maxBytes: number
}

const NO_BYTES: Buffer = Buffer.alloc(0)
const NO_ERROR = kafkaErrors.NONE.code
/** No record is there: a read from it brings the ends of the partition alone. */
const BEYOND_ALL = Number.MAX_SAFE_INTEGER
/** Of a read in batches the bytes count. */
const ANY_RECORDS = 0x7fff_ffff

export class FetchedPartition implements WatchCaller {
  place: PartitionPlace
  /** What it is refused for without being read; NONE: nothing. */
  fault: number
  /** As they are to be told; −1: not known. */
  errorCode: number
  highWatermark = -1
  logStartOffset = -1
  /** Bytes of batches that there are: kept in this round, or seen and dropped. */
  bytes = 0
  /** Were they dropped because the fetch went on waiting? */
  isDropped = false
  /** Did it stop at a batch that its client cannot read? */
  isCut = false
  /** Did its read bring what it might, while there is more? */
  isFull = false
  /** What its read was given of the fetch; 0: it is read for its ends alone. */
  shareBytes = 0
  /** That, or 0 if what it brought had no place in the answer: who got least is first next time. */
  grantedBytes = 0
  readonly #owner: PartitionOwner
  #reader: PartitionReader | null = null
  #watch: Watch | null = null
  /** The last read that was sent, and the topic that it is of; null: there is none that its client may read. */
  #sent: BatchesRead | null = null
  #topicId: TopicId | null = null
  /** What the last read brought. */
  #batches: BatchesRead | null = null
  /** Of what its client asks for next, if it goes on where it is. */
  #ahead: AheadRead | null = null
  /** Where that is; −1: it cannot go on. */
  #nextOffset: number
  #toldHighWatermark = -1
  #toldLogStartOffset = -1

  constructor(owner: PartitionOwner, place: PartitionPlace, fault: number) {
    this.#owner = owner
    this.place = place
    this.fault = fault
    this.errorCode = fault
    this.#nextOffset = place.offset
  }

  /** Something is there, whether or not it was brought. */
  get hasMore(): boolean {
    return this.highWatermark > this.place.offset
  }

  get isWatched(): boolean {
    return this.#watch !== null
  }

  /** Is there anything that an incremental answer has to say of it? */
  get isNews(): boolean {
    if (this.errorCode !== NO_ERROR || this.#batches?.hasRecords === true) return true
    return this.highWatermark !== this.#toldHighWatermark || this.logStartOffset !== this.#toldLogStartOffset
  }

  /** It is an answer now. After an error it is news again once that is gone. */
  noteTold(): void {
    this.#toldHighWatermark = this.errorCode === NO_ERROR ? this.highWatermark : -1
    this.#toldLogStartOffset = this.logStartOffset
  }

  /** The client asks for it anew. */
  ask(place: PartitionPlace, fault: number): void {
    this.endWatch()
    if (place.offset !== this.#ahead?.offset) this.endAhead()
    this.place = place
    this.fault = fault
    this.errorCode = fault
    this.#nextOffset = place.offset
  }

  /** @param shareBytes 0: only its ends. */
  read(broker: Broker, who: Principal, reader: PartitionReader, shareBytes: number): SubmitOutcome {
    const { pool, hidesZstd } = reader
    this.#reader = reader
    this.shareBytes = shareBytes
    this.grantedBytes = shareBytes
    this.#topicId = this.#topicIdNow(broker, who)
    if (shareBytes > 0 && this.#ahead?.fits(this.#terms(hidesZstd)) === false) this.endAhead()
    // Of what was read ahead the ends are asked for: so what may not be read any more, or is gone, is not brought.
    const ahead = shareBytes > 0 ? this.#ahead : null
    const from = shareBytes === 0 || ahead !== null ? BEYOND_ALL : this.place.offset
    const accept = (bytes: number): boolean => this.#accept(bytes)
    const settled = (read: BatchesRead, error: BrokerError | null): void => {
      if (error === null) return this.#takeEnds(read, ahead)
      this.endAhead()
      this.#settle(error)
    }
    this.#sent = new BatchesRead({ pool, hidesZstd, accept, settled }, this.place.offset)
    const outcome = broker.submitRead(who, this.#reading(from, shareBytes), this.#sent)
    if (outcome === submitOutcomes.full) this.#reader = null
    return outcome
  }

  #terms(hidesZstd: boolean): AheadTerms {
    const { shareBytes, place } = this
    return { topicId: this.#topicId, offset: place.offset, shareBytes, hidesZstd }
  }

  /**
   * Its read takes too long: it goes on for the next fetch, and this one hears nothing more of it.
   * @returns false: it is about to come, or there is no room for it, and this one waits.
   */
  leaveOut(room: AheadRoom): boolean {
    const { shareBytes } = this
    const sent = this.#sent
    // Its reader is null where it waits for room to be sent.
    if (sent === null || this.#reader === null || this.#topicId === null || shareBytes === 0) return false
    if (this.#ahead !== null) {
      // Its ends are there in no time.
      if (!this.#ahead.isAwaited) return false
      this.#ahead.endWait()
    } else {
      if (sent.isBegun || !room.memory.tryReserve(shareBytes)) return false
      this.#ahead = new AheadRead(this.#terms(this.#reader.hidesZstd), this.#reader.pool, room, sent)
    }
    this.#reader = null
    return true
  }

  /** null: there is no such topic for that client, as its next read is told. */
  #topicIdNow(broker: Broker, who: Principal): TopicId | null {
    try {
      return broker.topicIdOf(who, this.place.topic)
    } catch (error) {
      if (error instanceof BrokerError) return null
      throw error
    }
  }

  #accept(bytes: number): boolean {
    const isKept = this.#reader?.accept(this, bytes) === true
    if (!isKept) this.grantedBytes = 0
    return isKept
  }

  #takeEnds(ends: BatchesRead, ahead: AheadRead | null): void {
    this.logStartOffset = ends.logStartOffset
    this.highWatermark = ends.highWatermark
    if (ahead === null) return this.#takeBatches(ends)
    if (ends.errorCode !== NO_ERROR) {
      this.endAhead()
      return this.#takeBatches(ends)
    }
    ahead.whenOver(() => {
      this.#ahead = null
      const batches = ahead.handOver()
      if (ahead.error !== null) return this.#settle(ahead.error)
      if (batches.hasRecords && !this.#accept(batches.bytes)) batches.drop()
      this.#takeBatches(batches)
    })
  }

  #takeBatches(batches: BatchesRead): void {
    this.#batches = batches
    this.errorCode = batches.errorCode
    this.bytes = batches.bytes
    this.isCut = batches.isCut
    this.isFull = batches.bytes > 0 && batches.nextOffset < this.highWatermark
    this.#settle(null)
  }

  #settle(error: BrokerError | null): void {
    const reader = this.#reader
    assert(reader !== null, 'a read that comes back was sent for a fetch')
    this.#reader = null
    reader.settled(this, error)
  }

  /**
   * Reads what its client asks for next, if there is any. What that takes of the memory is held until the client asks, or endAhead.
   * @returns bytes that it may bring, also if it is read ahead already; 0: nothing is.
   */
  readAhead(reader: AheadReader, leftBytes: number): number {
    if (this.#ahead !== null) return this.#ahead.shareBytes
    const { broker, who, pool, hidesZstd, room } = reader
    if (this.errorCode !== NO_ERROR || this.isCut || this.#nextOffset >= this.highWatermark) return 0
    const topicId = this.#topicIdNow(broker, who)
    const shareBytes = Math.min(leftBytes, Math.max(1, this.place.maxBytes))
    if (topicId === null || !room.memory.tryReserve(shareBytes)) return 0
    const terms = { topicId, offset: this.#nextOffset, shareBytes, hidesZstd }
    const ahead = new AheadRead(terms, pool, room)
    const read = { ...this.#reading(this.#nextOffset, shareBytes), topicId }
    if (broker.submitRead(who, read, ahead.batches) === submitOutcomes.full) {
      room.memory.release(shareBytes)
      return 0
    }
    this.#ahead = ahead
    return shareBytes
  }

  /** What was read ahead is not wanted. */
  endAhead(): void {
    this.#ahead?.giveUp()
    this.#ahead = null
  }

  /** Its owner hears when there is that much at and above its offset. */
  watch(broker: Broker, who: Principal, minBytes: number): void {
    this.endWatch()
    this.#watch = broker.submitWatch(who, { ...this.#at(this.place.offset), minBytes }, this)
  }

  endWatch(): void {
    this.#watch?.cancel()
    this.#watch = null
  }

  #reading(from: number, shareBytes: number): ReadRequest {
    const maxBytes = Math.max(1, shareBytes)
    return { ...this.#at(from), maxRecords: ANY_RECORDS, maxBytes, format: readFormats.batches }
  }

  #at(offset: number) {
    const { topic, topicId, partition } = this.place
    return {
      topic,
      ...(topicId !== undefined && { topicId }),
      partition,
      offsetHigh: Math.floor(offset / TWO_32),
      offsetLow: offset % TWO_32
    }
  }

  onAvailable(): void {
    this.#watch = null
    this.#owner.onMore(this)
  }

  onWatchFailed(error: BrokerError): void {
    this.#watch = null
    if (error.code === 'OVERLOADED') this.#owner.onUnwatched(this)
    else this.#owner.onWatchFailed(this)
  }

  /** Takes the batches, as views for a response, and notes the buffer of each: they are the caller's, and charged, from here on. */
  takeRecords(chunkOf: Map<Buffer, Buffer>): Buffer | readonly Buffer[] {
    const batches = this.#batches
    this.#batches = null
    if (batches === null || !batches.hasRecords) return NO_BYTES
    this.#nextOffset = batches.nextOffset
    return batches.take(chunkOf)
  }

  /** Gives the batches up; how many bytes there were stays known. */
  dropRecords(): void {
    this.#batches?.drop()
    this.#batches = null
  }

  /** Before another read. */
  forget(): void {
    this.dropRecords()
    this.bytes = 0
    this.isDropped = false
    this.isCut = false
    this.isFull = false
    this.errorCode = this.fault
  }
}
