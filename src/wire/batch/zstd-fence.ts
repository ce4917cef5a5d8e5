/**
 * Finds the first batch that is compressed with zstd among batches that come in pieces: old readers are to see none.
 * Pure, any thread; one instance a run of batches. It looks at their headers alone, and copies only those that are cut.
 */
import { assert } from '../../base/assert.ts'
import { codecOf } from './client-batch.ts'
import { BATCH_HEADER_BYTES, BATCH_LENGTH_AT, BATCH_LENGTH_BASE, RECORD_COUNT_AT, ZSTD_CODEC } from './layout.ts'

export class ZstdFence {
  /** Bytes of whole batches before the first of zstd. */
  clearBytes = 0
  /** Records of those. */
  clearRecords = 0
  isFound = false
  readonly #head = Buffer.alloc(BATCH_HEADER_BYTES)
  #headBytes = 0
  /** Of the batch in hand, after its head. */
  #restBytes = 0

  /** The next piece is bytes[start, end), borrowed until return. */
  take(bytes: Buffer, start: number, end: number): void {
    let at = start
    while (at < end && !this.isFound) {
      const part = Math.min(this.#restBytes, end - at)
      this.#restBytes -= part
      at += part
      if (this.#restBytes === 0) at = this.#takeHead(bytes, at, end)
    }
  }

  #takeHead(bytes: Buffer, start: number, end: number): number {
    const part = Math.min(BATCH_HEADER_BYTES - this.#headBytes, end - start)
    bytes.copy(this.#head, this.#headBytes, start, start + part)
    this.#headBytes += part
    if (this.#headBytes === BATCH_HEADER_BYTES) this.#open()
    return start + part
  }

  #open(): void {
    this.#headBytes = 0
    this.isFound = codecOf(this.#head, 0) === ZSTD_CODEC
    if (this.isFound) return
    const batchBytes = BATCH_LENGTH_BASE + this.#head.readInt32BE(BATCH_LENGTH_AT)
    assert(batchBytes >= BATCH_HEADER_BYTES, 'a stored batch has a whole header')
    this.clearBytes += batchBytes
    this.clearRecords += this.#head.readInt32BE(RECORD_COUNT_AT)
    this.#restBytes = batchBytes - BATCH_HEADER_BYTES
  }
}
