/**
 * The answer of a read of whole batches: gathered in chunks of shared memory, which main sends from where they lie, as long
 * as any are free; else, or if it is small, it goes through the ring as any other. Shard thread only. One answer at a time.
 */
import { assert } from '../../src/base/assert.ts'
import { copyBytes } from '../../src/base/copy.ts'
import { limits } from '../../src/model/limits.ts'
import type { ChunkTaker } from '../../src/ring/lent-chunks.ts'
import { STORED_BATCHES_AT } from '../../src/wire/batch/stored-batches.ts'
import { write64, writeU32 } from '../../src/wire/primitives/u64.ts'
import { LENT_ENTRY_BYTES } from '../../src/wire/shard/messages.ts'
import { AnswerBuffer } from './answer-buffer.ts'

const { lentChunkBytes: CHUNK_BYTES, lentAnswerBytesMin: LENT_BYTES_MIN } = limits

export class BatchAnswer {
  readonly #chunks: ChunkTaker
  /** Room for the head, then the batches: while they are few, and of an answer that goes through the ring. */
  readonly #out = new AnswerBuffer()
  readonly #head = Buffer.alloc(STORED_BATCHES_AT)
  readonly #taken: number[] = []
  /** Bytes of batches. */
  #bytes = 0
  /** It found no chunks when it became large. */
  #isForRing = false

  constructor(chunks: ChunkTaker) {
    this.#chunks = chunks
  }

  /** Forgets an answer that was not sent. */
  begin(): void {
    for (const chunk of this.#taken) this.#chunks.giveBack(chunk)
    this.#taken.length = 0
    this.#bytes = 0
    this.#isForRing = false
    this.#out.clear()
    this.#out.length = STORED_BATCHES_AT
  }

  /** Adds a batch: bytes[start, end), as it is. @returns false, and nothing is added: there is no chunk for it now. */
  add(bytes: Buffer, start: number, end: number): boolean {
    const length = end - start
    if (this.#taken.length === 0 && !this.#isMoved(length)) {
      this.#out.reserve(length)
      this.#out.copy(bytes, start, end)
      this.#bytes += length
      return true
    }
    if (!this.#takeFor(length)) return false
    this.#append(bytes, start, end)
    return true
  }

  /** With so many more bytes it is large: what there is goes to chunks if they have room for all of it. */
  #isMoved(moreBytes: number): boolean {
    const gathered = this.#bytes
    const isLarge = gathered + moreBytes >= LENT_BYTES_MIN
    if (!isLarge || this.#isForRing) return false
    if (gathered + moreBytes > this.#chunks.count * CHUNK_BYTES || !this.#takeFor(moreBytes)) {
      this.#isForRing = true
      return false
    }
    this.#bytes = 0
    this.#append(this.#out.bytes, STORED_BATCHES_AT, STORED_BATCHES_AT + gathered)
    return true
  }

  #append(bytes: Buffer, start: number, end: number): void {
    for (let at = start; at < end;) {
      const chunk = this.#taken[Math.floor(this.#bytes / CHUNK_BYTES)] as number
      const used = this.#bytes % CHUNK_BYTES
      const part = Math.min(end - at, CHUNK_BYTES - used)
      copyBytes(bytes, at, at + part, this.#chunks.view(chunk), used)
      this.#bytes += part
      at += part
    }
  }

  /** Takes as many chunks as so many more bytes need; all or none. */
  #takeFor(bytes: number): boolean {
    const wanted = Math.ceil((this.#bytes + bytes) / CHUNK_BYTES) - this.#taken.length
    const had = this.#taken.length
    while (this.#taken.length < had + wanted) {
      const chunk = this.#chunks.take()
      if (chunk < 0) {
        for (const taken of this.#taken.splice(had)) this.#chunks.giveBack(taken)
        return false
      }
      this.#taken.push(chunk)
    }
    return true
  }

  finish(logStartOffset: number, highWatermark: number, nextOffset: number): void {
    write64(this.#head, 0, logStartOffset)
    write64(this.#head, 8, highWatermark)
    write64(this.#head, 16, nextOffset)
  }

  /** Bytes of the whole answer: head and batches. */
  get length(): number {
    return STORED_BATCHES_AT + this.#bytes
  }

  /** Does it lie in chunks? */
  get isLent(): boolean {
    return this.#taken.length > 0
  }

  /** @returns head and batches, in memory of this thread. Only where isLent is false. */
  whole(): Buffer {
    assert(!this.isLent, 'what is lent stays where it is')
    this.#head.copy(this.#out.bytes)
    return this.#out.bytes
  }

  /** Bytes that lend() writes. */
  get lentBytes(): number {
    return STORED_BATCHES_AT + this.#taken.length * LENT_ENTRY_BYTES
  }

  /** Writes the head and which chunks the batches are in, to target[at…]: they are the reader's from here on. */
  lend(target: Buffer, at: number): void {
    this.#head.copy(target, at)
    let left = this.#bytes
    let entryAt = at + STORED_BATCHES_AT
    for (const chunk of this.#taken) {
      const bytes = Math.min(left, CHUNK_BYTES)
      writeU32(target, entryAt, chunk)
      writeU32(target, entryAt + 4, bytes)
      entryAt += LENT_ENTRY_BYTES
      left -= bytes
    }
    this.#taken.length = 0
  }
}
