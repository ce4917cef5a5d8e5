/**
 * The circular buffer in which groups are encoded, and from which the newest batches are read without touching the
 * disk (R1). Shard thread only. A place in it is counted without end; what is less than one capacity behind the head
 * still stands there.
 */
export class EncodeBuffer {
  readonly capacityBytes: number
  #ring: Buffer
  #head = 0
  /** The buffer that holds the group being encoded: the ring, or one of its own for a group too large for it. */
  current: Buffer

  /** @param memory of that size, shared with the thread that writes groups; absent: memory of this thread alone. */
  constructor(capacityBytes: number, memory?: SharedArrayBuffer) {
    this.capacityBytes = capacityBytes
    this.#ring = memory === undefined ? Buffer.allocUnsafeSlow(capacityBytes) : Buffer.from(memory, 0, capacityBytes)
    this.current = this.#ring
  }

  /** Room for a group, contiguous in `current`. @returns its index in `current`. What stood there is gone. */
  allocate(bytes: number): number {
    if (bytes > this.capacityBytes) {
      this.current = Buffer.allocUnsafeSlow(bytes)
      return 0
    }
    this.current = this.#ring
    const index = this.#head % this.capacityBytes
    const skipped = index + bytes > this.capacityBytes ? this.capacityBytes - index : 0
    this.#head += skipped + bytes
    return skipped > 0 ? 0 : index
  }

  /** The endless place of index `at` of the group allocated last, which has `bytes`; −1 if it will not stay in memory. */
  placeOf(groupIndex: number, bytes: number, at: number): number {
    return this.current === this.#ring ? this.#head - bytes + (at - groupIndex) : -1
  }

  /** Index in `bytes` of a place, or −1 if it was overwritten or never stood there. */
  indexOf(place: number): number {
    return place >= 0 && place >= this.#head - this.capacityBytes ? place % this.capacityBytes : -1
  }

  get bytes(): Buffer {
    return this.#ring
  }
}
