/**
 * What one group has committed in one topic, and what of that the store does not have yet. Main thread only; calls nobody.
 *
 *   partitions  ascending      4 bytes each; found by binary search, and a commit in order appends
 *   offsets     same places    8 bytes each; −1: above 2^53 − 1, the offset stands in `#large`
 *   changed     same places    1 byte each: the row in the store is older
 *   epochs      same places    4 bytes each, once there is one: the leader epoch and 1; 0: not told
 *
 * There may be millions of these entries: no object of its own for any of them, but for those with metadata.
 */
import { grownFloat64, grownUint32, grownUint8 } from '../../base/grow.ts'
import { noNote, type GroupOffset, type OffsetNote } from '../../model/groups.ts'

/** Stands in `offsets` for an offset that no number holds exactly. */
const LARGE = -1
const FIRST_CAPACITY = 4
/** What an entry of a map and its text take beside the characters of the text, about. */
const METADATA_ENTRY_BYTES = 64

/** What the metadata of one offset takes of the memory for it, at most: V8 has two bytes for each UTF-16 unit, or one. */
export function metadataCost(metadata: string): number {
  return metadata === '' ? 0 : METADATA_ENTRY_BYTES + 2 * metadata.length
}

/** Takes one entry on its way to the store. */
export type TakeEntry = (partition: number, offset: GroupOffset, leaderEpoch: number, metadata: string) => void

export class TopicOffsets {
  /** Number of the group. */
  readonly group: number
  readonly topicId: number
  #count = 0
  #changedCount = 0
  #partitions = new Uint32Array(FIRST_CAPACITY)
  #offsets = new Float64Array(FIRST_CAPACITY)
  #changed = new Uint8Array(FIRST_CAPACITY)
  /** By partition. */
  #large: Map<number, bigint> | null = null
  #epochs: Uint32Array | null = null
  /** By partition; those that have some. */
  #metadata: Map<number, string> | null = null
  #metadataBytes = 0

  constructor(group: number, topicId: number) {
    this.group = group
    this.topicId = topicId
  }

  /** Partitions that have an offset. */
  get count(): number {
    return this.#count
  }

  get changedCount(): number {
    return this.#changedCount
  }

  /** What its metadata takes of the memory for it. */
  get metadataBytes(): number {
    return this.#metadataBytes
  }

  /** null: nothing is committed there. */
  offsetOf(partition: number): GroupOffset | null {
    const place = this.#placeOf(partition)
    return this.#has(place, partition) ? this.#offsetAt(place) : null
  }

  /** What is noted beside the offset; nothing if there is none. */
  noteOf(partition: number): OffsetNote {
    if (this.#epochs === null && this.#metadata === null) return noNote
    const place = this.#placeOf(partition)
    if (!this.#has(place, partition)) return noNote
    return { leaderEpoch: this.#epochAt(place), metadata: this.#metadata?.get(partition) ?? '' }
  }

  /** What is noted beside offsets, where it is not empty. By no order. */
  metadata(): Iterable<readonly [partition: number, metadata: string]> {
    return this.#metadata ?? []
  }

  /** @param isStored the store has it so. @returns true if the partition had none. */
  set(partition: number, offset: GroupOffset, note: OffsetNote, isStored = false): boolean {
    const place = this.#placeOf(partition)
    const isNew = !this.#has(place, partition)
    if (isNew) this.#insert(place, partition)
    const number = Number(offset)
    const isExact = Number.isSafeInteger(number)
    this.#offsets[place] = isExact ? number : LARGE
    if (isExact) this.#large?.delete(partition)
    else (this.#large ??= new Map()).set(partition, BigInt(offset))
    this.#note(place, note)
    if (!isStored) this.#mark(place)
    return isNew
  }

  /** @returns false: the partition has none. */
  remove(partition: number): boolean {
    const place = this.#placeOf(partition)
    if (!this.#has(place, partition)) return false
    if (this.#changed[place] === 1) this.#changedCount--
    this.#large?.delete(partition)
    this.#noteMetadata(partition, '')
    this.#partitions.copyWithin(place, place + 1, this.#count)
    this.#epochs?.copyWithin(place, place + 1, this.#count)
    this.#offsets.copyWithin(place, place + 1, this.#count)
    this.#changed.copyWithin(place, place + 1, this.#count)
    this.#count--
    // What lies behind the last one is looked through for changed entries.
    this.#changed[this.#count] = 0
    return true
  }

  /** The row of a partition is to be written again; nothing happens if it has none. */
  markChanged(partition: number): void {
    const place = this.#placeOf(partition)
    if (this.#has(place, partition)) this.#mark(place)
  }

  /** Hands out up to so many changed entries, which count as stored from here on. */
  takeChanged(countMax: number, take: TakeEntry): void {
    let place = -1
    for (let left = Math.min(countMax, this.#changedCount); left > 0; left--) {
      place = this.#changed.indexOf(1, place + 1)
      this.#changed[place] = 0
      this.#changedCount--
      const partition = this.#partitions[place] ?? 0
      take(partition, this.#offsetAt(place), this.#epochAt(place), this.#metadata?.get(partition) ?? '')
    }
  }

  /** Every entry, by partition. It must not change meanwhile. */
  *entries(): Generator<readonly [partition: number, offset: GroupOffset]> {
    for (let place = 0; place < this.#count; place++) yield [this.#partitions[place] ?? 0, this.#offsetAt(place)]
  }

  #offsetAt(place: number): GroupOffset {
    const offset = this.#offsets[place] ?? 0
    return offset === LARGE ? (this.#large?.get(this.#partitions[place] ?? 0) ?? 0) : offset
  }

  #epochAt(place: number): number {
    return (this.#epochs?.[place] ?? 0) - 1
  }

  #note(place: number, { leaderEpoch, metadata }: OffsetNote): void {
    if (leaderEpoch >= 0) this.#epochs ??= new Uint32Array(this.#partitions.length)
    if (this.#epochs !== null) this.#epochs[place] = Math.max(leaderEpoch, -1) + 1
    this.#noteMetadata(this.#partitions[place] ?? 0, metadata)
  }

  #noteMetadata(partition: number, metadata: string): void {
    if (metadata === '' && this.#metadata === null) return
    this.#metadata ??= new Map()
    this.#metadataBytes += metadataCost(metadata) - metadataCost(this.#metadata.get(partition) ?? '')
    if (metadata === '') this.#metadata.delete(partition)
    else this.#metadata.set(partition, metadata)
  }

  #has(place: number, partition: number): boolean {
    return place < this.#count && this.#partitions[place] === partition
  }

  #mark(place: number): void {
    if (this.#changed[place] === 1) return
    this.#changed[place] = 1
    this.#changedCount++
  }

  /** Of the first entry that is not before the partition. */
  #placeOf(partition: number): number {
    let start = 0
    let end = this.#count
    if (end > 0 && (this.#partitions[end - 1] ?? 0) < partition) return end
    while (start < end) {
      const middle = (start + end) >>> 1
      if ((this.#partitions[middle] ?? 0) < partition) start = middle + 1
      else end = middle
    }
    return start
  }

  #insert(place: number, partition: number): void {
    if (this.#count === this.#partitions.length) {
      const capacity = this.#count * 2
      this.#partitions = grownUint32(this.#partitions, capacity)
      this.#offsets = grownFloat64(this.#offsets, capacity)
      this.#changed = grownUint8(this.#changed, capacity)
      if (this.#epochs !== null) this.#epochs = grownUint32(this.#epochs, capacity)
    }
    this.#partitions.copyWithin(place + 1, place, this.#count)
    this.#offsets.copyWithin(place + 1, place, this.#count)
    this.#changed.copyWithin(place + 1, place, this.#count)
    this.#epochs?.copyWithin(place + 1, place, this.#count)
    this.#partitions[place] = partition
    this.#changed[place] = 0
    this.#count++
  }
}
