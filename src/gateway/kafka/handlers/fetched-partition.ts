/**
 * One partition of a fetch or of a fetch session: what is asked, what the last read brought, what was told of it, and the
 * watch while nobody reads. Main thread; owned by its session.
 */
import { assert } from '../../../base/assert.ts'
import type { BrokerError } from '../../../model/errors.ts'
import type { TopicId } from '../../../model/ids.ts'
import type { Principal } from '../../../model/principal.ts'
import type {
  Broker,
  ReadCaller,
  ReadCost,
  ReadRequest,
  SubmitOutcome,
  Watch,
  WatchCaller
} from '../../../model/requests.ts'
import { readFormats } from '../../../model/requests.ts'
import { STORED_BATCHES_AT, storedBatchesHead } from '../../../wire/batch/stored-batches.ts'
import { ZstdFence } from '../../../wire/batch/zstd-fence.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { TWO_32 } from '../../../wire/primitives/u64.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import { Pieces } from '../../shared/outbox.ts'

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

export class FetchedPartition implements ReadCaller, WatchCaller {
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
  #pieces: Pieces | null = null
  /** Of the last read, and its records. */
  #cost: ReadCost | null = null
  #recordCount = 0
  #fence: ZstdFence | null = null
  #hasHead = false
  #toldHighWatermark = -1
  #toldLogStartOffset = -1

  constructor(owner: PartitionOwner, place: PartitionPlace, fault: number) {
    this.#owner = owner
    this.place = place
    this.fault = fault
    this.errorCode = fault
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
    if (this.errorCode !== NO_ERROR || this.#pieces !== null) return true
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
    this.place = place
    this.fault = fault
    this.errorCode = fault
  }

  /** @param shareBytes 0: only its ends. */
  read(broker: Broker, who: Principal, reader: PartitionReader, shareBytes: number): SubmitOutcome {
    this.#reader = reader
    this.shareBytes = shareBytes
    this.grantedBytes = shareBytes
    const from = shareBytes === 0 ? BEYOND_ALL : this.place.offset
    const read: ReadRequest = {
      ...this.#at(from),
      maxRecords: ANY_RECORDS,
      maxBytes: Math.max(1, shareBytes),
      format: readFormats.batches
    }
    return broker.submitRead(who, read, this)
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

  onReadCost(cost: ReadCost, records: number): void {
    this.#cost = cost
    this.#recordCount = records
  }

  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void {
    let at = start
    if (!this.#hasHead) {
      this.#hasHead = true
      this.#takeHead(bytes, start, totalBytes)
      at = start + STORED_BATCHES_AT
    }
    this.#fence?.take(bytes, at, end)
    this.#pieces?.append(bytes, at, end, true)
    if (!isLast) return
    this.#hideZstd()
    this.#settle(null)
  }

  onReadFailed(error: BrokerError): void {
    this.#settle(error)
  }

  #settle(error: BrokerError | null): void {
    const reader = this.#reader
    assert(reader !== null, 'a read that comes back was sent for a fetch')
    this.#reader = null
    reader.settled(this, error)
  }

  #takeHead(bytes: Buffer, start: number, totalBytes: number): void {
    const reader = this.#reader as PartitionReader
    const { logStartOffset, highWatermark, nextOffset } = storedBatchesHead(bytes, start)
    this.logStartOffset = logStartOffset
    this.highWatermark = highWatermark
    const { offset } = this.place
    if (offset < logStartOffset || offset > highWatermark) this.errorCode = kafkaErrors.OFFSET_OUT_OF_RANGE.code
    const batchBytes = totalBytes - STORED_BATCHES_AT
    assert(batchBytes >= 0, 'an answer in batches has its head')
    if (batchBytes === 0 || this.errorCode !== NO_ERROR) return
    this.bytes = batchBytes
    this.isFull = nextOffset < highWatermark
    if (reader.hidesZstd) this.#fence = new ZstdFence()
    if (reader.accept(this, batchBytes)) this.#pieces = new Pieces(reader.pool)
    else this.grantedBytes = 0
  }

  /** What stands before the first batch of zstd is brought; if nothing does, that is the error. */
  #hideZstd(): void {
    const fence = this.#fence
    this.#fence = null
    if (fence?.isFound !== true) return
    this.isCut = true
    this.bytes = fence.clearBytes
    this.#recordCount = fence.clearRecords
    if (fence.clearBytes > 0) return this.#pieces?.cut(fence.clearBytes)
    this.dropRecords()
    this.errorCode = kafkaErrors.UNSUPPORTED_COMPRESSION_TYPE.code
  }

  /** Takes the batches, as views for a response, and notes the buffer of each: they are the caller's, and charged, from here on. */
  takeRecords(chunkOf: Map<Buffer, Buffer>): Buffer | readonly Buffer[] {
    const pieces = this.#pieces
    this.#pieces = null
    if (pieces === null) return NO_BYTES
    this.#cost?.charge(this.#recordCount, this.bytes)
    this.#cost = null
    return pieces.chunks.map((chunk, i) => {
      const view = chunk.subarray(0, pieces.lengths[i])
      chunkOf.set(view, chunk)
      return view
    })
  }

  /** Gives the batches up; how many bytes there were stays known. */
  dropRecords(): void {
    this.#pieces?.drop()
    this.#pieces = null
    this.#cost = null
  }

  /** Before another read. */
  forget(): void {
    this.dropRecords()
    this.#fence = null
    this.#hasHead = false
    this.bytes = 0
    this.isDropped = false
    this.isCut = false
    this.isFull = false
    this.errorCode = this.fault
  }
}
