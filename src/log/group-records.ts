/**
 * The records of a group by index, in order of arrival: where each lies in its source, and what its request is told. A batch
 * that a client encoded is one entry. Hot; shard thread only; owned by one encoder.
 *
 * Plain columns: the encoder fills and follows them.
 */
import { grownFloat64, grownInt32, grownUint16, grownUint32, grownUint8 } from '../base/grow.ts'
import { RESULT_BYTES } from '../model/requests.ts'
import { TWO_32 } from '../wire/primitives/u64.ts'

/** Flags of an entry. */
export const IS_DUPLICATE = 1
export const HAS_HEADERS = 2
/** The time of append counts: its batch says so. */
export const TAKES_APPEND_TIME = 4

const FIRST_RECORDS = 4096

export class GroupRecords {
  /** Place of the buffer in the group's sources, and of the record in it. */
  source = new Uint16Array(FIRST_RECORDS)
  at = new Uint32Array(FIRST_RECORDS)
  /** The next record of the same batch, or −1. */
  next = new Int32Array(FIRST_RECORDS)
  partition = new Uint32Array(FIRST_RECORDS)
  offset = new Float64Array(FIRST_RECORDS)
  /** IS_DUPLICATE, HAS_HEADERS, TAKES_APPEND_TIME. */
  flags = new Uint8Array(FIRST_RECORDS)
  /** Entries, duplicates included. */
  count = 0

  /** Makes room for `needed` entries in all. */
  reserve(needed: number): void {
    if (needed <= this.at.length) return
    const capacity = Math.max(needed, this.at.length * 2)
    this.source = grownUint16(this.source, capacity)
    this.at = grownUint32(this.at, capacity)
    this.next = grownInt32(this.next, capacity)
    this.partition = grownUint32(this.partition, capacity)
    this.offset = grownFloat64(this.offset, capacity)
    this.flags = grownUint8(this.flags, capacity)
  }

  /** One more entry. @returns its index. */
  add(partition: number, flags: number, offset: number): number {
    const record = this.count++
    this.reserve(this.count)
    this.next[record] = -1
    this.partition[record] = partition
    this.flags[record] = flags
    this.offset[record] = offset
    return record
  }

  isDuplicate(record: number): boolean {
    return ((this.flags[record] as number) & IS_DUPLICATE) !== 0
  }

  takesAppendTime(record: number): boolean {
    return ((this.flags[record] as number) & TAKES_APPEND_TIME) !== 0
  }

  /** Writes the results of `count` entries from index `first`, in order. @returns the position after them. */
  writeResults(first: number, count: number, target: Buffer, at: number): number {
    const view = new DataView(target.buffer, target.byteOffset, target.length)
    let position = at
    for (let record = first; record < first + count; record++) {
      const offset = this.offset[record] as number
      const high = Math.floor(offset / TWO_32)
      view.setUint32(position, this.partition[record] as number)
      view.setUint32(position + 4, high)
      view.setUint32(position + 8, offset - high * TWO_32)
      view.setUint8(position + 12, (this.flags[record] as number) & IS_DUPLICATE)
      position += RESULT_BYTES
    }
    return position
  }
}
