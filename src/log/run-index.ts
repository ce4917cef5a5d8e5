/**
 * Where the runs of one partition lie: one entry per run, ordered by base offset. Owned by the partition's log.
 *
 *   baseOffset f64 · memoryAt f64 · position u32 · bytes u32 · slot u32 (low 31 bits) with the quarantine mark on top
 *
 * 28 bytes a run, in arrays that start small and double, because most of many partitions hold little.
 */
import { assert } from '../base/assert.ts'
import { grownFloat64, grownUint32 } from '../base/grow.ts'

const FIRST_CAPACITY = 4
const QUARANTINED = 0x8000_0000

export class RunIndex {
  #count = 0
  #baseOffsets = new Float64Array(0)
  #memoryAt = new Float64Array(0)
  #positions = new Uint32Array(0)
  #bytes = new Uint32Array(0)
  #slots = new Uint32Array(0)

  get count(): number {
    return this.#count
  }

  /**
   * @param slot ordinal of the slot in the journal's table. @param position in the slot, bytes.
   * @param memoryAt place in the encode buffer's endless count, or −1 if the run was never in memory.
   */
  add(baseOffset: number, slot: number, position: number, bytes: number, memoryAt: number): void {
    const at = this.#count
    assert(at === 0 || baseOffset > (this.#baseOffsets[at - 1] ?? 0), 'runs are added in order of offset')
    if (at === this.#baseOffsets.length) this.#grow()
    this.#baseOffsets[at] = baseOffset
    this.#memoryAt[at] = memoryAt
    this.#positions[at] = position
    this.#bytes[at] = bytes
    this.#slots[at] = slot
    this.#count++
  }

  /** Marks the newest run as damaged: it is passed over with an error, never served. */
  quarantineLast(): void {
    assert(this.#count > 0, 'a run to quarantine')
    this.#slots[this.#count - 1] = (this.#slots[this.#count - 1] ?? 0) + QUARANTINED
  }

  /** Marks run i as damaged. */
  quarantine(i: number): void {
    if (!this.isQuarantined(i)) this.#slots[i] = (this.#slots[i] ?? 0) + QUARANTINED
  }

  /** Forgets the runs that begin before `offset`: they lie elsewhere now. Indexes of the others go down. */
  dropBefore(offset: number): void {
    const dropped = this.find(offset - 1) + 1
    if (dropped === 0) return
    const kept = this.#count - dropped
    const capacity = Math.max(kept === 0 ? 0 : FIRST_CAPACITY, kept)
    this.#baseOffsets = tailFloat64(this.#baseOffsets, dropped, kept, capacity)
    this.#memoryAt = tailFloat64(this.#memoryAt, dropped, kept, capacity)
    this.#positions = tailUint32(this.#positions, dropped, kept, capacity)
    this.#bytes = tailUint32(this.#bytes, dropped, kept, capacity)
    this.#slots = tailUint32(this.#slots, dropped, kept, capacity)
    this.#count = kept
  }

  /** Index of the last run with baseOffset ≤ offset; −1 if all begin later. */
  find(offset: number): number {
    let low = 0
    let high = this.#count
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#baseOffsets[middle] ?? 0) <= offset) low = middle + 1
      else high = middle
    }
    return low - 1
  }

  baseOffset(i: number): number {
    return this.#baseOffsets[i] ?? 0
  }

  memoryAt(i: number): number {
    return this.#memoryAt[i] ?? -1
  }

  position(i: number): number {
    return this.#positions[i] ?? 0
  }

  bytes(i: number): number {
    return this.#bytes[i] ?? 0
  }

  slot(i: number): number {
    return (this.#slots[i] ?? 0) & 0x7fff_ffff
  }

  isQuarantined(i: number): boolean {
    return (this.#slots[i] ?? 0) >= QUARANTINED
  }

  #grow(): void {
    const capacity = Math.max(FIRST_CAPACITY, this.#count * 2)
    this.#baseOffsets = grownFloat64(this.#baseOffsets, capacity)
    this.#memoryAt = grownFloat64(this.#memoryAt, capacity)
    this.#positions = grownUint32(this.#positions, capacity)
    this.#bytes = grownUint32(this.#bytes, capacity)
    this.#slots = grownUint32(this.#slots, capacity)
  }
}

/** old[from, from + count) in an array of its own with that capacity: the memory of the rest is given back. */
function tailFloat64(old: Float64Array, from: number, count: number, capacity: number): Float64Array<ArrayBuffer> {
  const array = new Float64Array(capacity)
  array.set(old.subarray(from, from + count))
  return array
}

function tailUint32(old: Uint32Array, from: number, count: number, capacity: number): Uint32Array<ArrayBuffer> {
  const array = new Uint32Array(capacity)
  array.set(old.subarray(from, from + count))
  return array
}
