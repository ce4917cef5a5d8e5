/**
 * Reads one partition's segment files batch by batch. Shard thread only. It keeps its place between turns, and finds it
 * again when data moved meanwhile. Every batch it hands out was checked (R2).
 */
import { DiskError } from '../disk/disk.ts'
import { isWhole, type BatchView } from '../wire/batch/view.ts'
import type { ManifestPartition, ManifestSegment } from './manifest.ts'
import type { PartitionLog } from './partition-log.ts'
import type { ExtentPlace, SettledWindow } from './settled-window.ts'

export const settledOutcomes = { batch: 0, end: 1, damaged: 2 } as const
export type SettledOutcome = (typeof settledOutcomes)[keyof typeof settledOutcomes]

export class SettledCursor {
  readonly #window: SettledWindow
  readonly #log: PartitionLog
  #partition: ManifestPartition | null = null
  #place: ExtentPlace | null = null
  #block = 0
  /** Bytes of the block that were handed out. */
  #at = 0
  /** First offset that was not handed out or passed over. */
  offset: number
  /** The batch found: bytes[start, end), valid until the next call of anything on this shard's log. */
  bytes: Buffer
  start = 0
  end = 0
  /** Of the damaged range found. */
  damagedFirst = 0
  damagedNext = 0

  constructor(window: SettledWindow, log: PartitionLog, offset: number) {
    this.#window = window
    this.#log = log
    this.offset = offset
    this.bytes = window.buffer
  }

  /** Steps to the next batch, filling `view`. It may end before the offset that was asked for. */
  next(view: BatchView): SettledOutcome {
    for (;;) {
      const partition = this.#log.settled
      if (partition === null || this.offset >= partition.nextOffset) return settledOutcomes.end
      const isBehind = this.#place !== null && this.offset >= this.#place.extent.nextOffset
      if (partition !== this.#partition || isBehind) this.#place = null
      this.#partition = partition
      if (this.#place === null) {
        if (this.#findDamage(partition)) return settledOutcomes.damaged
        if (!this.#findPlace(partition)) continue
      }
      const place = this.#place
      if (place === null) continue
      if (this.#block >= place.table.count) {
        // Rebuilt blocks may end early: what is missing is damaged.
        if (place.coveredBytes < place.extent.bytes) return this.#damaged(this.offset, place.extent.nextOffset)
        this.offset = Math.max(this.offset, place.extent.nextOffset)
        this.#place = null
        continue
      }
      const outcome = this.#readBlock(place, view)
      if (outcome !== null) return outcome
    }
  }

  /** The next batch of the block at hand; null: the block is at its end. */
  #readBlock(place: ExtentPlace, view: BatchView): SettledOutcome | null {
    const { table } = place
    if (this.#at >= table.bytes(this.#block)) {
      this.#block++
      this.#at = 0
      return null
    }
    if (this.#at === 0 && this.#meetsDamage(table.firstOffset(this.#block))) return null
    const index = unlessMissing(() => this.#window.load(place, this.#block))
    if (index === null)
      return this.#damaged(Math.max(this.offset, table.firstOffset(this.#block)), place.extent.nextOffset)
    if (index < 0 && this.#takeRebuilt(place)) return null
    const isLast = this.#block + 1 >= table.count
    const next = isLast ? place.extent.nextOffset : table.firstOffset(this.#block + 1)
    if (index < 0) return this.#damaged(Math.max(this.offset, table.firstOffset(this.#block)), next)
    this.bytes = this.#window.buffer
    this.start = index + this.#at
    if (!isWhole(view.open(this.bytes, this.start, index + table.bytes(this.#block)))) {
      return this.#damaged(Math.max(this.offset, table.firstOffset(this.#block)), next)
    }
    this.end = view.end
    // Runs that were damaged when they were settled are missing in the middle of a block.
    if (this.#meetsDamage(view.baseOffset)) return null
    this.#at += this.end - this.start
    if (view.lastOffset < this.offset) return null
    // A batch that was put aside may be missing within a block too.
    if (view.baseOffset > this.offset && this.#meetsDamage(view.baseOffset)) return null
    this.offset = view.lastOffset + 1
    return settledOutcomes.batch
  }

  /** Known damage at the block or the batch, or before it: then the offset stops there, and it is said next. */
  #meetsDamage(blockOffset: number): boolean {
    const partition = this.#partition
    if (partition === null) return false
    const at = Math.max(this.offset, blockOffset)
    const known = this.#damageAt(partition, at)
    const first = known === null ? this.#firstDamageBefore(partition, at) : Math.max(this.offset, known.firstOffset)
    if (known === null && first >= at) return false
    this.offset = first
    this.#place = null
    return true
  }

  /** A block did not check because of its entry, and others were made: goes on with those. */
  #takeRebuilt(place: ExtentPlace): boolean {
    const rebuilt = this.#partition === null ? null : this.#window.rebuilt(this.#partition, place, this.#block)
    if (rebuilt === null) return false
    this.#place = rebuilt
    this.#block = Math.max(0, rebuilt.table.find(this.offset))
    this.#at = 0
    return true
  }

  #damaged(firstOffset: number, nextOffset: number): SettledOutcome {
    if (firstOffset >= nextOffset) {
      this.#place = null
      return this.#step(firstOffset, firstOffset + 1)
    }
    const isKnown = this.#log.damaged.some(range => range.firstOffset <= firstOffset && range.nextOffset >= nextOffset)
    if (!isKnown) this.#log.damaged.push({ firstOffset, nextOffset })
    return this.#step(firstOffset, nextOffset)
  }

  #step(firstOffset: number, nextOffset: number): SettledOutcome {
    this.damagedFirst = firstOffset
    this.damagedNext = nextOffset
    this.offset = nextOffset
    this.#place = null
    return settledOutcomes.damaged
  }

  /** Known damage at the present offset is passed over, and said. */
  #findDamage(partition: ManifestPartition): boolean {
    const range = this.#damageAt(partition, this.offset)
    if (range === null) return false
    this.#step(this.offset, range.nextOffset)
    return true
  }

  #damageAt(partition: ManifestPartition, offset: number): { firstOffset: number; nextOffset: number } | null {
    for (const ranges of [partition.damaged, this.#log.damaged]) {
      for (const range of ranges) if (range.firstOffset <= offset && offset < range.nextOffset) return range
    }
    return null
  }

  /** @returns false: nothing of the partition is there at this offset; the offset moved on. */
  #findPlace(partition: ManifestPartition): boolean {
    const segment = firstBehind(partition.segments, this.offset)
    const extent = segment === null ? null : firstBehind(segment.extents, this.offset)
    if (segment === null || extent === null) {
      this.offset = Math.max(this.offset + 1, segment?.nextOffset ?? partition.nextOffset)
      return false
    }
    // A damaged range before what is there is met first.
    if (extent.baseOffset > this.offset) {
      this.offset = this.#firstDamageBefore(partition, extent.baseOffset)
      if (this.offset < extent.baseOffset) return false
    }
    const place = unlessMissing(() => this.#window.place(partition, segment, extent))
    if (place === null) {
      // Met as damage in the next step.
      this.#log.damaged.push({ firstOffset: this.offset, nextOffset: extent.nextOffset })
      return false
    }
    this.#place = place
    this.#block = Math.max(0, place.table.find(this.offset))
    this.#at = 0
    return true
  }

  #firstDamageBefore(partition: ManifestPartition, limit: number): number {
    let first = limit
    for (const ranges of [partition.damaged, this.#log.damaged]) {
      for (const { firstOffset } of ranges) if (firstOffset >= this.offset && firstOffset < first) first = firstOffset
    }
    return first
  }
}

/** The first of the ranges, ordered by offset, that ends behind `offset`; null: none does. */
export function firstBehind<T extends Pick<ManifestSegment, 'baseOffset' | 'nextOffset'>>(
  ranges: readonly T[],
  offset: number
): T | null {
  let low = 0
  let high = ranges.length
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((ranges[middle] as T).nextOffset <= offset) low = middle + 1
    else high = middle
  }
  return ranges[low] ?? null
}

/** null: the file that the manifest names is not there. @throws DiskError for anything else that the disk refuses */
function unlessMissing<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof DiskError && error.code === 'ENOENT') return null
    throw error
  }
}
