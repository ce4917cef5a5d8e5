/** Counts what a pass reads, and says when it is time to yield. Owned by one pass; any one thread. */

/** Bytes that are read between two yields: milliseconds of work, even with the smallest records. One batch may exceed it. */
export const COMPACTION_PIECE_BYTES = 256 * 1024

export class ReadMeter {
  /** Everything read so far. */
  bytes = 0
  #yieldAt = COMPACTION_PIECE_BYTES

  /** @returns whether to yield now. */
  add(bytes: number): boolean {
    this.bytes += bytes
    if (this.bytes < this.#yieldAt) return false
    this.#yieldAt = this.bytes + COMPACTION_PIECE_BYTES
    return true
  }
}
