/** One partition of a fetch: what was asked, and what one round of reads brought. Main thread; owned by its fetch. */
import { assert } from '../../../base/assert.ts'
import type { BrokerError } from '../../../model/errors.ts'
import type { TopicId } from '../../../model/ids.ts'
import type { ReadCaller, ReadRequest } from '../../../model/requests.ts'
import { readFormats } from '../../../model/requests.ts'
import { STORED_BATCHES_AT, storedBatchesHead } from '../../../wire/batch/stored-batches.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import { Pieces } from '../../shared/outbox.ts'

/** What a partition is to its fetch. */
export interface PartitionOwner {
  readonly pool: BufferPool
  /** Batches of so many bytes have come: are they kept? What is not is as if there were none. */
  accept(partition: FetchedPartition, bytes: number): boolean
  /** The read is over. @param error null: it went well. */
  settled(partition: FetchedPartition, error: BrokerError | null): void
}

/** Which partition, by what name the request has it. */
export interface PartitionPlace {
  readonly topic: string
  /** Of a request that names topics by id. */
  readonly topicId: TopicId | undefined
  readonly partition: number
  readonly offset: number
  readonly maxBytes: number
}

const NO_BYTES: Buffer = Buffer.alloc(0)
const TWO_32 = 2 ** 32
/** No record is there: a read from it brings the ends of the partition alone. */
const BEYOND_ALL = Number.MAX_SAFE_INTEGER
/** Of a read in batches the bytes count. */
const ANY_RECORDS = 0x7fff_ffff

export class FetchedPartition implements ReadCaller {
  readonly place: PartitionPlace
  /** As they are to be told; −1: not known. */
  errorCode: number = kafkaErrors.NONE.code
  highWatermark = -1
  logStartOffset = -1
  /** Bytes of batches that there are: kept in this round, or seen and dropped. */
  bytes = 0
  /** What its read was given of the fetch. */
  shareBytes = 0
  readonly #owner: PartitionOwner
  #pieces: Pieces | null = null
  #hasHead = false

  /** @param errorCode what it is refused for without being read; NONE: nothing. */
  constructor(owner: PartitionOwner, place: PartitionPlace, errorCode: number) {
    this.#owner = owner
    this.place = place
    this.errorCode = errorCode
  }

  get isRefused(): boolean {
    return this.errorCode !== kafkaErrors.NONE.code
  }

  /** What to ask the broker. @param shareBytes 0: only for its ends. */
  readOf(shareBytes: number): ReadRequest {
    const { topic, topicId, partition, offset } = this.place
    const from = shareBytes === 0 ? BEYOND_ALL : offset
    return {
      topic,
      ...(topicId !== undefined && { topicId }),
      partition,
      offsetHigh: Math.floor(from / TWO_32),
      offsetLow: from % TWO_32,
      maxRecords: ANY_RECORDS,
      maxBytes: Math.max(1, shareBytes),
      format: readFormats.batches
    }
  }

  onReadChunk(bytes: Buffer, start: number, end: number, totalBytes: number, isLast: boolean): void {
    let at = start
    if (!this.#hasHead) {
      this.#hasHead = true
      this.#takeHead(bytes, start, totalBytes)
      at = start + STORED_BATCHES_AT
    }
    this.#pieces?.append(bytes, at, end, true)
    if (isLast) this.#owner.settled(this, null)
  }

  onReadFailed(error: BrokerError): void {
    this.#owner.settled(this, error)
  }

  #takeHead(bytes: Buffer, start: number, totalBytes: number): void {
    const { logStartOffset, highWatermark } = storedBatchesHead(bytes, start)
    this.logStartOffset = logStartOffset
    this.highWatermark = highWatermark
    const { offset } = this.place
    if (offset < logStartOffset || offset > highWatermark) this.errorCode = kafkaErrors.OFFSET_OUT_OF_RANGE.code
    const batchBytes = totalBytes - STORED_BATCHES_AT
    assert(batchBytes >= 0, 'an answer in batches has its head')
    if (batchBytes === 0 || this.isRefused) return
    this.bytes = batchBytes
    if (this.#owner.accept(this, batchBytes)) this.#pieces = new Pieces(this.#owner.pool)
  }

  /** Takes the batches, as views for a response, and notes the buffer of each: they are the caller's from here on. */
  takeRecords(chunkOf: Map<Buffer, Buffer>): Buffer | readonly Buffer[] {
    const pieces = this.#pieces
    this.#pieces = null
    if (pieces === null) return NO_BYTES
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
  }

  /** Before another round. */
  forget(): void {
    this.dropRecords()
    this.#hasHead = false
    this.bytes = 0
  }
}
