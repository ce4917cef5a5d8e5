/**
 * The batches of a group by index: what each will hold, and the next one of its partition. Hot; shard thread only; owned
 * by one encoder.
 *
 * Plain columns: the encoder fills and follows them.
 */
import { grownFloat64, grownInt32, grownUint32, grownUint8 } from '../base/grow.ts'

/** Flags of a batch: it begins a segment; a client encoded it; and the time of append is that of its records. */
export const BATCH_ROLLS = 1
export const BATCH_IS_GIVEN = 2
export const BATCH_TAKES_APPEND_TIME = 4

const NONE = -1
export const FIRST_BATCHES = 256

export class GroupBatches {
  /** Offsets that it takes. */
  records = new Uint32Array(FIRST_BATCHES)
  /** First and last record of it; of one that a client encoded, where it lies. */
  head = new Int32Array(FIRST_BATCHES)
  tail = new Int32Array(FIRST_BATCHES)
  /** The next batch of the same partition, or −1. */
  next = new Int32Array(FIRST_BATCHES)
  bytes = new Uint32Array(FIRST_BATCHES)
  base = new Float64Array(FIRST_BATCHES)
  flags = new Uint8Array(FIRST_BATCHES)
  count = 0

  /** A new one, empty. @returns its index. */
  add(baseOffset: number, flags: number): number {
    const batch = this.count++
    if (batch === this.head.length) this.#grow()
    this.next[batch] = NONE
    this.head[batch] = NONE
    this.tail[batch] = NONE
    this.records[batch] = 0
    this.bytes[batch] = 0
    this.base[batch] = baseOffset
    this.flags[batch] = flags
    return batch
  }

  rolls(batch: number): boolean {
    return ((this.flags[batch] as number) & BATCH_ROLLS) !== 0
  }

  isGiven(batch: number): boolean {
    return ((this.flags[batch] as number) & BATCH_IS_GIVEN) !== 0
  }

  takesAppendTime(batch: number): boolean {
    return ((this.flags[batch] as number) & BATCH_TAKES_APPEND_TIME) !== 0
  }

  /** Was it opened for records with that flag, and may take more? No client's batch is. */
  isOpenFor(batch: number, flag: 0 | typeof BATCH_TAKES_APPEND_TIME): boolean {
    return ((this.flags[batch] as number) & (BATCH_IS_GIVEN | BATCH_TAKES_APPEND_TIME)) === flag
  }

  /** Its records have the times that a client gave them. */
  hasGivenTimes(batch: number): boolean {
    return ((this.flags[batch] as number) & (BATCH_IS_GIVEN | BATCH_TAKES_APPEND_TIME)) === BATCH_IS_GIVEN
  }

  #grow(): void {
    const capacity = this.head.length * 2
    this.records = grownUint32(this.records, capacity)
    this.head = grownInt32(this.head, capacity)
    this.tail = grownInt32(this.tail, capacity)
    this.next = grownInt32(this.next, capacity)
    this.bytes = grownUint32(this.bytes, capacity)
    this.base = grownFloat64(this.base, capacity)
    this.flags = grownUint8(this.flags, capacity)
  }
}
