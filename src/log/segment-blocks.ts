/**
 * Block entries: where the batches of a segment lie, by offset and by time, and the checksums of their bytes (R2).
 * A block is a run of whole batches of one partition that lie together. Pure, any thread, no disk: the settler makes
 * entries, readers look batches up in them, and both may make them again from the log (block-rebuild.ts).
 *
 *   entry, 32 bytes, big-endian
 *    at  bytes  type  field
 *     0      4  u32   position of the block's first byte, from the start of the `.log` (in a pack: of the extent)
 *     4      4  u32   bytes
 *     8      4  u32   first offset − segment base
 *    12      4  u32   last offset of the block's first batch − segment base
 *    16      8  i64   greatest timestamp in the block, ms; TIMESTAMP_NONE if none of its batches has a record
 *    24      4  u32   last offset of the first batch that has it − segment base
 *    28      4  u32   crc32c of the block's bytes, continued over bytes 0…28 of the entry
 *
 * One checksum over block and entry together: no bit of either can change unseen. The block comes first because its
 * checksum grows batch by batch, while the entry is known only at its end. Two whole entries in each other's place are
 * still right one by one, so order and gaps are looked at where a table is taken in: isPlausible.
 */
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { limits } from '../model/limits.ts'
import { BLOCK_BYTES_MIN } from '../model/topic.ts'
import { BATCH_HEADER_BYTES, MAX_TIMESTAMP_AT, RECORD_COUNT_AT } from '../wire/batch/layout.ts'
import { baseOffsetAt, batchBytesAt, lastOffsetDeltaAt } from '../wire/batch/view.ts'
import { readI32, readI64, readU32, write64, writeU32 } from '../wire/primitives/u64.ts'

export const BLOCK_ENTRY_BYTES = 32
/** Greatest timestamp of a block without records: the least there is, so no search for a real time stops there. */
export const TIMESTAMP_NONE = Number.MIN_SAFE_INTEGER

const POSITION_AT = 0
const BYTES_AT = 4
const FIRST_OFFSET_AT = 8
const FIRST_BATCH_LAST_AT = 12
const TIMESTAMP_MAX_AT = 16
const TIMESTAMP_MAX_OFFSET_AT = 24
const CRC_AT = 28
assert(CRC_AT + 4 === BLOCK_ENTRY_BYTES, 'an entry must end behind its checksum')

/** Entries of one settle job's smallest extents fit; larger ones double it. */
const FIRST_CAPACITY = 64

/**
 * Makes block entries from batches as they are written, extent after extent. One writer owns it and uses it again:
 *
 *   reset · begin · add … add · close · begin · add … close · (write entries) · reset …
 */
export class BlockBuilder {
  #entries = Buffer.alloc(FIRST_CAPACITY * BLOCK_ENTRY_BYTES)
  #count = 0
  #segmentBase = 0
  #hasBegun = false
  /** Where the next batch must lie; −1: anywhere, none was added since begin. */
  #nextPosition = -1
  /** Lowest offset that the next batch may have. */
  #nextOffset = 0
  /** Bytes of the open block; 0: none is open. */
  #bytes = 0
  #position = 0
  #firstOffset = 0
  #firstBatchLast = 0
  #timestampMax = TIMESTAMP_NONE
  #timestampMaxOffset = 0
  #crc = 0

  /** Closed blocks since the last reset. */
  get count(): number {
    return this.#count
  }

  /** Bytes of their entries. Between two extents: where the next one's entries begin in `entries`. */
  get byteLength(): number {
    return this.#count * BLOCK_ENTRY_BYTES
  }

  /** Entries of all blocks closed since the last reset: a view, good until the next add, close or reset. */
  get entries(): Buffer {
    return this.#entries.subarray(0, this.byteLength)
  }

  /** Forgets all entries, keeps the memory. */
  reset(): void {
    this.#count = 0
    this.#bytes = 0
    this.#hasBegun = false
  }

  /** Begins an extent of the segment with that base offset; the one before must be closed. */
  begin(segmentBase: number): void {
    assert(this.#bytes === 0, 'an extent ends before the next one begins')
    this.#segmentBase = segmentBase
    this.#nextOffset = segmentBase
    this.#nextPosition = -1
    this.#hasBegun = true
  }

  /**
   * Takes in bytes[start, end): one or more whole batches, checked by the caller, in order of offsets. Blocks begin and
   * end between batches only. `bytes` is borrowed until return.
   *
   * @param position where bytes[start] lies in the `.log` or in the extent: behind the batches added before.
   * @cost one checksum over the bytes; per batch some ten header fields; no allocation unless the entries grow.
   */
  add(bytes: Uint8Array, start: number, end: number, position: number): void {
    assert(this.#hasBegun, 'a segment must have begun')
    assert(this.#nextPosition < 0 || position === this.#nextPosition, 'the batches of an extent lie together')
    assert(position >= 0 && position + (end - start) <= limits.segmentBytesHard, 'a segment has 31-bit positions')
    let pieceStart = start
    let at = start
    while (at < end) {
      assert(end - at >= BATCH_HEADER_BYTES, 'only whole batches make a block')
      const batchEnd = at + batchBytesAt(bytes, at)
      assert(batchEnd >= at + BATCH_HEADER_BYTES && batchEnd <= end, 'only whole batches make a block')
      this.#take(bytes, at, batchEnd - at, position + (at - start))
      at = batchEnd
      const isFull = this.#bytes >= BLOCK_BYTES_MIN
      if (!isFull && at < end) continue
      this.#crc = crc32c(bytes, pieceStart, at, this.#crc)
      pieceStart = at
      if (isFull) this.close()
    }
    this.#nextPosition = position + (end - start)
  }

  /** Ends the open block, if there is one: an extent ends here. Further batches of the extent make a new block. */
  close(): void {
    if (this.#bytes === 0) return
    if (this.byteLength === this.#entries.length) this.#grow()
    const entries = this.#entries
    const at = this.byteLength
    writeU32(entries, at + POSITION_AT, this.#position)
    writeU32(entries, at + BYTES_AT, this.#bytes)
    writeU32(entries, at + FIRST_OFFSET_AT, this.#firstOffset - this.#segmentBase)
    writeU32(entries, at + FIRST_BATCH_LAST_AT, this.#firstBatchLast - this.#segmentBase)
    write64(entries, at + TIMESTAMP_MAX_AT, this.#timestampMax)
    writeU32(entries, at + TIMESTAMP_MAX_OFFSET_AT, this.#timestampMaxOffset - this.#segmentBase)
    writeU32(entries, at + CRC_AT, crc32c(entries, at, at + CRC_AT, this.#crc))
    this.#count++
    this.#bytes = 0
  }

  #take(bytes: Uint8Array, at: number, byteLength: number, position: number): void {
    const baseOffset = baseOffsetAt(bytes, at)
    const lastOffset = baseOffset + lastOffsetDeltaAt(bytes, at)
    assert(baseOffset >= this.#nextOffset && lastOffset >= baseOffset, 'the offsets of batches grow')
    assert(lastOffset - this.#segmentBase <= limits.segmentBytesHard, 'a segment has 31-bit offsets')
    this.#nextOffset = lastOffset + 1
    if (this.#bytes === 0) {
      this.#position = position
      this.#firstOffset = baseOffset
      this.#firstBatchLast = lastOffset
      this.#timestampMax = TIMESTAMP_NONE
      this.#timestampMaxOffset = lastOffset
      this.#crc = 0
    }
    this.#bytes += byteLength
    // A batch whose records compaction removed still names a timestamp, but none that a search could find.
    if (readI32(bytes, at + RECORD_COUNT_AT) === 0) return
    const timestampMs = readI64(bytes, at + MAX_TIMESTAMP_AT)
    assert(!Number.isNaN(timestampMs), 'a stored batch has an exact timestamp')
    if (timestampMs <= this.#timestampMax) return
    this.#timestampMax = timestampMs
    this.#timestampMaxOffset = lastOffset
  }

  #grow(): void {
    const grown = Buffer.alloc(this.#entries.length * 2)
    this.#entries.copy(grown)
    this.#entries = grown
  }
}

/**
 * Block entries as somebody wrote them. Before isPlausible said true, what they say is not to be believed: searches end,
 * but their answers mean nothing. Offsets are absolute. `i` is from 0 to count − 1, the caller's care.
 */
export class BlockTable {
  readonly segmentBase: number
  readonly count: number
  readonly #entries: Uint8Array

  /** @param entries borrowed as long as the table is in use. */
  constructor(entries: Uint8Array, segmentBase: number) {
    this.#entries = entries
    this.segmentBase = segmentBase
    this.count = Math.floor(entries.length / BLOCK_ENTRY_BYTES)
  }

  position(i: number): number {
    return this.#field(i, POSITION_AT)
  }

  bytes(i: number): number {
    return this.#field(i, BYTES_AT)
  }

  firstOffset(i: number): number {
    return this.segmentBase + this.#field(i, FIRST_OFFSET_AT)
  }

  /** Last offset of the block's first batch. */
  firstBatchLastOffset(i: number): number {
    return this.segmentBase + this.#field(i, FIRST_BATCH_LAST_AT)
  }

  /** Greatest timestamp of the block, ms; TIMESTAMP_NONE if it has no record. */
  timestampMax(i: number): number {
    return readI64(this.#entries, i * BLOCK_ENTRY_BYTES + TIMESTAMP_MAX_AT)
  }

  /** Last offset of the first batch that has this timestamp. */
  timestampMaxOffset(i: number): number {
    return this.segmentBase + this.#field(i, TIMESTAMP_MAX_OFFSET_AT)
  }

  crc(i: number): number {
    return this.#field(i, CRC_AT)
  }

  /** Last block whose first offset is at or below `offset`; −1: all begin above. The offset may lie in a gap behind it. */
  find(offset: number): number {
    let low = 0
    let high = this.count
    while (low < high) {
      const middle = (low + high) >>> 1
      if (this.firstOffset(middle) <= offset) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  /**
   * First block from `start` on with a record at or after that time; −1: none. Timestamps come from clients and need not
   * grow.
   *
   * @cost one pass over the entries: about 1 ms for a segment of 1 GiB.
   */
  findTime(timestampMs: number, start = 0): number {
    for (let i = start; i < this.count; i++) {
      if (this.timestampMax(i) >= timestampMs) return i
    }
    return -1
  }

  /** Greatest timestamp of all blocks, ms; TIMESTAMP_NONE if there is no record. @cost as findTime. */
  greatestTimestamp(): number {
    let greatest = TIMESTAMP_NONE
    for (let i = 0; i < this.count; i++) greatest = Math.max(greatest, this.timestampMax(i))
    return greatest
  }

  /**
   * True if bytes[start…] holds block i as it was written and its entry is whole, so that both may be served.
   *
   * @param bytes may end before the block does: then the answer is false.
   * @cost one pass over the block.
   */
  check(i: number, bytes: Uint8Array, start: number): boolean {
    const end = start + this.bytes(i)
    if (end > bytes.length || end - start < BATCH_HEADER_BYTES) return false
    const at = i * BLOCK_ENTRY_BYTES
    const crc = crc32c(this.#entries, at, at + CRC_AT, crc32c(bytes, start, end))
    // Blocks of another log of the same kind have right checksums too; their offsets rarely are the same.
    return crc === this.crc(i) && baseOffsetAt(bytes, start) === this.firstOffset(i)
  }

  /**
   * True if the entries can be those of that range of that many bytes: in order, without gaps, inside the bounds. Says
   * nothing about the bytes: see check. To be asked before anything else of entries that come from a disk.
   *
   * @param nextOffset behind the last offset of the range.
   * @param endPosition where the last block must end.
   * @param startPosition where the first one must begin: above 0 for a later extent of a `.log`.
   */
  isPlausible(nextOffset: number, endPosition: number, startPosition = 0): boolean {
    if (this.#entries.length !== this.count * BLOCK_ENTRY_BYTES) return false
    let position = startPosition
    let offset = this.segmentBase
    for (let i = 0; i < this.count; i++) {
      if (this.position(i) !== position || this.bytes(i) < BATCH_HEADER_BYTES) return false
      position += this.bytes(i)
      const firstBatchLast = this.firstBatchLastOffset(i)
      if (this.firstOffset(i) < offset || firstBatchLast < this.firstOffset(i)) return false
      // The batch with the greatest timestamp is the first one or a later one.
      if (this.timestampMaxOffset(i) < firstBatchLast || Number.isNaN(this.timestampMax(i))) return false
      offset = this.timestampMaxOffset(i) + 1
    }
    return position === endPosition && offset <= nextOffset
  }

  #field(i: number, at: number): number {
    return readU32(this.#entries, i * BLOCK_ENTRY_BYTES + at)
  }
}
