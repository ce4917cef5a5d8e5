/**
 * The answers of one connection on their way to its socket. Main thread only, one owner: its connection.
 *
 * Answers are gathered in pooled chunks and leave in one gathered write per flush; one write is outstanding at a
 * time, of at most WRITE_BYTES, so that "no write finished for 30 s" means a client that does not read.
 *
 *   chunks:  [ being written ][ being written ][ full ][ gathering ··· room ]
 *
 * Invariants
 * - A chunk goes back to the pool only after the socket called back for it: a socket reads memory until then.
 * - The bytes reserved for an answer are released when the chunk in which it ends was written, or dropped.
 * - Frames never interleave: an answer that comes in pieces is gathered apart (Pieces) and joins as a whole.
 */
import { assert } from '../../base/assert.ts'
import { copyBytes } from '../../base/copy.ts'
import type { LentPart } from '../../model/requests.ts'
import type { BufferPool } from './buffer-pool.ts'
import { bufferSizes } from './buffer-pool.ts'
import type { ReplyShare } from './reply-share.ts'

/** Bytes handed to the socket at once: large enough for few system calls, small enough to see a client's progress. */
const WRITE_BYTES = 256 * 1024

/** What an outbox needs of a socket. `written` is called once for the whole of the buffers, also when it failed. */
export type WriteBuffers = (buffers: readonly Buffer[], written: () => void) => void

/** Chunks of the pool filled one after the other, or lent ones that were. */
export class Pieces {
  readonly chunks: Buffer[] = []
  readonly lengths: number[] = []
  bytes = 0
  readonly #pool: BufferPool

  constructor(pool: BufferPool) {
    this.#pool = pool
  }

  /** Copies bytes[start, end) to the end. @param areRecords counts them as record bytes (base/copy.ts). */
  append(bytes: Buffer, start: number, end: number, areRecords: boolean): void {
    let at = start
    while (at < end) {
      const last = this.chunks.length - 1
      const chunk = this.chunks[last]
      const length = this.lengths[last] ?? 0
      if (chunk === undefined || length === chunk.length) {
        this.chunks.push(this.#pool.take(end - at > bufferSizes.small ? bufferSizes.read : bufferSizes.small))
        this.lengths.push(0)
        continue
      }
      const part = Math.min(end - at, chunk.length - length)
      if (areRecords) copyBytes(bytes, at, at + part, chunk, length)
      else bytes.copy(chunk, length, at, at + part)
      this.lengths[last] = length + part
      at += part
    }
    this.bytes += end - start
  }

  /** Adds memory that is lent, as it is; what is appended next may stand in the rest of it. */
  adoptLent({ bytes, length, giveBack }: LentPart): void {
    this.#pool.lend(bytes, giveBack)
    this.chunks.push(bytes)
    this.lengths.push(length)
    this.bytes += length
  }

  /** Gives all chunks back. */
  drop(): void {
    this.cut(0)
  }

  /** Keeps the first `bytes`, at most those that there are, and gives back the chunks behind them. */
  cut(bytes: number): void {
    let before = 0
    let kept = 0
    for (; before < bytes; kept++) {
      const length = Math.min(this.lengths[kept] as number, bytes - before)
      this.lengths[kept] = length
      before += length
    }
    for (const chunk of this.chunks.splice(kept)) this.#pool.give(chunk)
    this.lengths.length = kept
    this.bytes = bytes
  }
}

export class Outbox {
  /** Monotonic time at which the outstanding write began, or −1. */
  writingSinceMs = -1
  readonly #pool: BufferPool
  readonly #replies: ReplyShare
  readonly #write: WriteBuffers
  readonly #onWritten: () => void
  #gathered: Pieces
  /** Bytes to release with chunk i; one entry per chunk of #gathered. */
  readonly #reserved: number[] = []
  #writing: Buffer[] = []
  #writingReserved = 0
  #writingBytes = 0
  #isDropped = false
  readonly #written: () => void

  /** @param onWritten called after each write, when the outbox can take more. */
  constructor(pool: BufferPool, replies: ReplyShare, write: WriteBuffers, onWritten: () => void) {
    this.#pool = pool
    this.#replies = replies
    this.#write = write
    this.#onWritten = onWritten
    this.#gathered = new Pieces(pool)
    this.#written = () => this.#afterWrite()
  }

  /** Bytes that the socket has not taken yet. */
  get unsentBytes(): number {
    return this.#gathered.bytes + this.#writingBytes
  }

  /**
   * Adds a copy of bytes[start, end): a part of one frame, whose other parts follow before anything else is added.
   * @param areRecords counts them as record bytes (base/copy.ts).
   */
  append(bytes: Buffer, start: number, end: number, areRecords = false): void {
    if (this.#isDropped) return
    this.#gathered.append(bytes, start, end, areRecords)
    while (this.#reserved.length < this.#gathered.chunks.length) this.#reserved.push(0)
  }

  /** Adds the rest of a frame as it was gathered; the pieces are empty afterwards. */
  adopt(pieces: Pieces): void {
    if (this.#isDropped) return pieces.drop()
    for (const chunk of pieces.chunks) {
      this.#gathered.chunks.push(chunk)
      this.#reserved.push(0)
    }
    for (const length of pieces.lengths) this.#gathered.lengths.push(length)
    this.#gathered.bytes += pieces.bytes
    pieces.chunks.length = 0
    pieces.lengths.length = 0
    pieces.bytes = 0
  }

  /** Adds chunk[0, length) as it is, the next part of a frame: the chunk is of the pool, and no longer the caller's. */
  adoptChunk(chunk: Buffer, length: number): void {
    if (this.#isDropped) return this.#pool.give(chunk)
    this.#gathered.chunks.push(chunk)
    this.#gathered.lengths.push(length)
    this.#gathered.bytes += length
    this.#reserved.push(0)
  }

  /** The answer that was added last is whole: its reservation ends when it was written. */
  finishAnswer(reservedBytes: number): void {
    const last = this.#reserved.length - 1
    if (this.#isDropped || last < 0) this.#replies.release(reservedBytes)
    else this.#reserved[last] = (this.#reserved[last] as number) + reservedBytes
  }

  /** Hands what was gathered to the socket, unless a write is outstanding: then it follows that one. */
  flush(nowMs: number): void {
    if (this.#isDropped || this.writingSinceMs >= 0 || this.#gathered.bytes === 0) return
    const { chunks, lengths } = this.#gathered
    const views: Buffer[] = []
    let count = 0
    for (; count < chunks.length && this.#writingBytes < WRITE_BYTES; count++) {
      const length = lengths[count] as number
      views.push((chunks[count] as Buffer).subarray(0, length))
      this.#writingBytes += length
      this.#writingReserved += this.#reserved[count] as number
    }
    this.#writing = chunks.splice(0, count)
    lengths.splice(0, count)
    this.#reserved.splice(0, count)
    this.#gathered.bytes -= this.#writingBytes
    this.writingSinceMs = nowMs
    this.#write(views, this.#written)
  }

  /** The connection is gone: drops what was not handed to the socket and takes nothing any more. */
  drop(): void {
    if (this.#isDropped) return
    this.#isDropped = true
    this.#gathered.drop()
    const reserved = this.#reserved.reduce((sum, bytes) => sum + bytes, 0)
    this.#reserved.length = 0
    if (reserved > 0) this.#replies.release(reserved)
  }

  #afterWrite(): void {
    assert(this.writingSinceMs >= 0, 'a socket called back for a write that was not outstanding')
    for (const chunk of this.#writing) this.#pool.give(chunk)
    this.#writing = []
    this.#writingBytes = 0
    this.writingSinceMs = -1
    const reserved = this.#writingReserved
    this.#writingReserved = 0
    if (reserved > 0) this.#replies.release(reserved)
    this.#onWritten()
  }
}
