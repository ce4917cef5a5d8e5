/**
 * One read of batches of a partition, as they are stored: what it says of the partition, and the batches, in chunks of the pool or lent ones.
 * Main thread; used once, and owned by its taker.
 */
import type { BrokerError } from '../../../model/errors.ts'
import type { LentAnswer, ReadCaller, ReadCost } from '../../../model/requests.ts'
import { STORED_BATCHES_AT, storedBatchesHead } from '../../../wire/batch/stored-batches.ts'
import { ZstdFence } from '../../../wire/batch/zstd-fence.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { assert } from '../../../base/assert.ts'
import type { BufferPool } from '../../shared/buffer-pool.ts'
import { Pieces } from '../../shared/outbox.ts'

/** Who waits for a read. */
export interface BatchesTaker {
  readonly pool: BufferPool
  /** Its client knows nothing of zstd. */
  readonly hidesZstd: boolean
  /** Batches of so many bytes come: are they kept? */
  accept(bytes: number): boolean
  /** The read is over. @param error null: it went well. */
  settled(read: BatchesRead, error: BrokerError | null): void
}

export class BatchesRead implements ReadCaller {
  logStartOffset = -1
  highWatermark = -1
  /** Behind the batches. */
  nextOffset = -1
  /** Of its offset, or of batches that its client cannot read. */
  errorCode: number = kafkaErrors.NONE.code
  /** Of batches that there are, kept or not. */
  bytes = 0
  /** Did it stop at a batch that its client cannot read? */
  isCut = false
  #taker: BatchesTaker
  readonly #offset: number
  #pieces: Pieces | null = null
  #cost: ReadCost | null = null
  #recordCount = 0
  #fence: ZstdFence | null = null
  #hasHead = false

  /** @param offset that its client asks from, whatever the read does. */
  constructor(taker: BatchesTaker, offset: number) {
    this.#taker = taker
    this.#offset = offset
  }

  /** Something of it has come. */
  get isBegun(): boolean {
    return this.#hasHead
  }

  /** It is another's from here on. Nothing of it has come. */
  giveTo(taker: BatchesTaker): void {
    assert(!this.#hasHead, 'a read changes hands before it comes')
    this.#taker = taker
  }

  /** There are batches in it. */
  get hasRecords(): boolean {
    return this.#pieces !== null
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
    if (isLast) this.#end()
  }

  onReadLent({ bytes, headAt, totalBytes, parts }: LentAnswer): void {
    this.#hasHead = true
    this.#takeHead(bytes, headAt, totalBytes)
    for (const part of parts) {
      this.#fence?.take(part.bytes, 0, part.length)
      if (this.#pieces === null) part.giveBack()
      else this.#pieces.adoptLent(part)
    }
    this.#end()
  }

  #end(): void {
    this.#hideZstd()
    this.#taker.settled(this, null)
  }

  onReadFailed(error: BrokerError): void {
    this.#taker.settled(this, error)
  }

  #takeHead(bytes: Buffer, start: number, totalBytes: number): void {
    const { logStartOffset, highWatermark, nextOffset } = storedBatchesHead(bytes, start)
    this.logStartOffset = logStartOffset
    this.highWatermark = highWatermark
    this.nextOffset = nextOffset
    if (this.#offset < logStartOffset || this.#offset > highWatermark) {
      this.errorCode = kafkaErrors.OFFSET_OUT_OF_RANGE.code
    }
    const batchBytes = totalBytes - STORED_BATCHES_AT
    assert(batchBytes >= 0, 'an answer in batches has its head')
    if (batchBytes === 0 || this.errorCode !== kafkaErrors.NONE.code) return
    this.bytes = batchBytes
    if (this.#taker.hidesZstd) this.#fence = new ZstdFence()
    if (this.#taker.accept(batchBytes)) this.#pieces = new Pieces(this.#taker.pool)
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
    this.drop()
    this.errorCode = kafkaErrors.UNSUPPORTED_COMPRESSION_TYPE.code
  }

  /** Takes the batches, as views for a response, and notes the buffer of each: they are the caller's, and charged, from here on. */
  take(chunkOf: Map<Buffer, Buffer>): readonly Buffer[] {
    const pieces = this.#pieces
    this.#pieces = null
    if (pieces === null) return []
    this.#cost?.charge(this.#recordCount, this.bytes)
    this.#cost = null
    return pieces.chunks.map((chunk, i) => {
      const view = chunk.subarray(0, pieces.lengths[i])
      chunkOf.set(view, chunk)
      return view
    })
  }

  /** Gives the batches up; how many bytes there were stays known. */
  drop(): void {
    this.#pieces?.drop()
    this.#pieces = null
    this.#cost = null
  }
}
