/**
 * The state of one partition incarnation on its shard: offsets, segments, and the index of its runs.
 * Owned by the shard thread alone.
 *
 * Two states stand side by side: durable (what readers and acks see) and staged (with every group gathered since).
 * An encoded group captures the staged state; commit() makes that durable after the sync, while the next group may be
 * staged already; rollback() forgets all that is staged when a group could not be written.
 * Invariant: startOffset ≤ highWatermark ≤ nextOffset; with no group under way highWatermark = nextOffset.
 */
import { assert } from '../base/assert.ts'
import { epochAt, type LeaderEpoch } from '../model/leader-epochs.ts'
import { limits } from '../model/limits.ts'
import type { ManifestPartition, ManifestSegment } from './manifest.ts'
import { PartitionProducers } from './partition-producers.ts'
import { RunIndex } from './run-index.ts'
import { SegmentTable, type SegmentNumbers } from './segment-table.ts'

/** Numbers of one captured state. */
export const STAGED_NUMBERS = 7

/** The state that recoverRun captures and commits at once. */
const recovered = new Float64Array(STAGED_NUMBERS)

/** The segment that takes records, in numbers. */
class ActiveSegment {
  bytes = 0
  base = 0
  /** Receive time of its first records and of its newest; NaN: none encoded yet. */
  firstReceiveMs = Number.NaN
  lastReceiveMs = Number.NaN
  /** Sealed segments before it, counted from the first ever. */
  sealedEnd = 0
  /** Stored bytes ever, of all segments. */
  writtenBytes = 0

  assign(other: ActiveSegment): void {
    this.bytes = other.bytes
    this.base = other.base
    this.firstReceiveMs = other.firstReceiveMs
    this.lastReceiveMs = other.lastReceiveMs
    this.sealedEnd = other.sealedEnd
    this.writtenBytes = other.writtenBytes
  }
}

export class PartitionLog {
  readonly handle: number
  /** Runs in slots, at and behind settledEnd. */
  readonly runs = new RunIndex()
  /** What lies in segment files; null: nothing yet. */
  settled: ManifestPartition | null = null
  /** Grows when data moved: readers find their place again. */
  layout = 0
  /** Behind the last batch with times of a client, staged ones included; 0: there is none. */
  #givenTimesEnd = 0
  /** Ranges found damaged while reading since the start, beside those that the manifest knows. */
  readonly damaged: { readonly firstOffset: number; readonly nextOffset: number }[] = []
  /** First offset that may be read; never goes back (W7). */
  startOffset = 0
  /** End of what is durable: what readers see. */
  highWatermark = 0
  /** Next offset to give, the group being gathered included. */
  nextOffset = 0
  /** End of what is encoded: the base offset of the next run that is written (W4). */
  encodedEnd = 0
  /** What it had before its first run is not there: true of deleted topics only. */
  isBeheaded = false
  /** Epoch of what is written now. */
  leaderEpoch = 0
  /** Starts of epochs above 0, oldest first. Few: one for each start that cut data (V5). */
  readonly #epochs: LeaderEpoch[] = []
  /** Bytes at which a segment rolls; a topic's segment_bytes, at most 2^31 − 1. */
  segmentBytes: number = limits.segmentBytesHard

  readonly #sealed = new SegmentTable()
  /** Bytes of segments that are gone. */
  #droppedBytes = 0
  /** What retention dropped since the shard started, for metrics; null: nothing. */
  retired: { segments: number; bytes: number } | null = null
  readonly #active = new ActiveSegment()
  /** The same with the group being gathered. */
  readonly #staged = new ActiveSegment()
  /** Records were gathered whose group is not encoded: their receive time is not known. */
  #gathers = false

  /** Idempotent producers, staged sequences included. */
  readonly producers = new PartitionProducers()

  /** Place in the group being gathered, or −1: the encoder's mark, kept here to spare a map. */
  groupPlace = -1

  constructor(handle: number) {
    this.handle = handle
  }

  /** Behind the last offset that lies in segment files; what follows lies in slots. */
  get settledEnd(): number {
    return this.settled?.nextOffset ?? 0
  }

  /**
   * Every batch in the slots has the receive time of its group for all of its records; within a shard that never falls
   * (W8). So times there may be searched by halving.
   */
  get hasOrderedTimes(): boolean {
    return this.#givenTimesEnd <= this.settledEnd
  }

  /** Records below `nextOffset` have times of a client. What was not written in the end does no harm. */
  noteGivenTimes(nextOffset: number): void {
    this.#givenTimesEnd = nextOffset
  }

  /** Stored bytes, durable. */
  get sizeBytes(): number {
    return this.#active.writtenBytes - this.#droppedBytes
  }

  /** Segments, durable, the active one included. */
  get segmentCount(): number {
    return this.#active.sealedEnd - this.#sealed.first + 1
  }

  /** Durable sealed segments, oldest first. */
  sealedSegments(): SegmentNumbers[] {
    const segments: SegmentNumbers[] = []
    for (let place = this.#sealed.first; place < this.#active.sealedEnd; place++) segments.push(this.#sealed.at(place))
    return segments
  }

  /** The active segment, durable. */
  activeSegment(): SegmentNumbers {
    const { base, bytes, firstReceiveMs, lastReceiveMs } = this.#active
    return { baseOffset: base, bytes, firstReceiveMs, receiveMsMax: lastReceiveMs }
  }

  /** Stored bytes of the active segment, durable: a cheap first look. */
  get activeBytes(): number {
    return this.#active.bytes
  }

  /** Durable sealed segments, without making a list. */
  get sealedCount(): number {
    return this.#active.sealedEnd - this.#sealed.first
  }

  /** What is written from `startOffset` on has that epoch. */
  beginEpoch(epoch: number, startOffset: number): void {
    assert(epoch > this.leaderEpoch, 'leader epochs only grow')
    this.leaderEpoch = epoch
    this.#epochs.push({ epoch, startOffset })
  }

  /** Those above 0, ascending. */
  get epochs(): readonly LeaderEpoch[] {
    return this.#epochs
  }

  /** The epoch in which an offset was written. */
  epochAt(offset: number): number {
    return epochAt(this.#epochs, offset)
  }

  /**
   * True if `bytes` more, of one batch or record, begin a new segment: they would not fit the active one, its offsets run out,
   * or it was sealed while it was the newest.
   */
  mustRoll(bytes: number, recordCount = 1): boolean {
    const { bytes: activeBytes, base } = this.#staged
    if (activeBytes === 0) return this.nextOffset > 0
    const limit = Math.min(this.segmentBytes, limits.segmentBytesHard)
    return activeBytes + bytes > limit || this.nextOffset + recordCount - 1 - base >= limits.segmentBytesHard
  }

  /** The next record begins a new segment. */
  stageRoll(): void {
    const staged = this.#staged
    if (staged.bytes > 0) {
      const lastReceiveMs = this.#gathers ? Number.NaN : staged.lastReceiveMs
      this.#sealed.push(staged.base, staged.bytes, staged.firstReceiveMs, lastReceiveMs)
      staged.sealedEnd++
    }
    staged.bytes = 0
    staged.base = this.nextOffset
    staged.firstReceiveMs = Number.NaN
    staged.lastReceiveMs = Number.NaN
    this.#gathers = false
  }

  /** Adds to the active segment of the group being gathered. */
  stageBytes(bytes: number): void {
    this.#staged.bytes += bytes
    this.#staged.writtenBytes += bytes
    this.#gathers = true
  }

  /**
   * Notes what is staged now in state[at…at + STAGED_NUMBERS): the end of a group that is encoded, which has that receive
   * time. What is staged later belongs to the next group.
   */
  capture(state: Float64Array, at: number, receiveMs: number): void {
    const staged = this.#staged
    this.#sealed.resolve(receiveMs)
    if (this.#gathers) {
      if (Number.isNaN(staged.firstReceiveMs)) staged.firstReceiveMs = receiveMs
      staged.lastReceiveMs = receiveMs
      this.#gathers = false
    }
    this.encodedEnd = this.nextOffset
    state[at] = this.nextOffset
    state[at + 1] = staged.writtenBytes
    state[at + 2] = staged.sealedEnd
    state[at + 3] = staged.bytes
    state[at + 4] = staged.base
    state[at + 5] = staged.firstReceiveMs
    state[at + 6] = staged.lastReceiveMs
  }

  /** The group captured there is durable: readers may see it. */
  commit(state: Float64Array, at: number): void {
    const end = state[at] as number
    assert(this.highWatermark <= end && end <= this.nextOffset, 'high watermark at most next offset')
    this.highWatermark = end
    const active = this.#active
    active.writtenBytes = state[at + 1] as number
    active.sealedEnd = state[at + 2] as number
    active.bytes = state[at + 3] as number
    active.base = state[at + 4] as number
    active.firstReceiveMs = state[at + 5] as number
    active.lastReceiveMs = state[at + 6] as number
  }

  /** The group was not written: as if it had never been gathered. */
  rollback(): void {
    this.nextOffset = this.highWatermark
    this.encodedEnd = this.highWatermark
    this.#staged.assign(this.#active)
    this.#sealed.truncate(this.#active.sealedEnd)
    this.#gathers = false
    this.producers.rollback(this.highWatermark)
  }

  /** True while nothing is staged that is not durable: between groups. */
  get isQuiet(): boolean {
    return this.nextOffset === this.highWatermark && this.groupPlace === -1
  }

  /** Seals the active segment though no record follows; the next one begins a new segment. Between groups only. */
  rollNow(): void {
    assert(this.isQuiet, 'a segment is sealed between groups')
    if (this.#staged.bytes === 0) return
    this.stageRoll()
    this.#active.assign(this.#staged)
  }

  /**
   * The start moved to `offset`, durably: whole segments before it are gone. Between groups only.
   * @returns segments and bytes that are gone.
   */
  moveStart(offset: number): { segments: number; bytes: number } {
    assert(offset >= this.startOffset && offset <= this.highWatermark, 'a start offset moves up, within the log')
    this.startOffset = offset
    if (offset === this.highWatermark) this.rollNow()
    const before = this.#sealed.first
    let place = before
    while (place < this.#active.sealedEnd && this.#endOf(place) <= offset) place++
    const bytes = this.#sealed.dropBefore(place)
    this.#droppedBytes += bytes
    return { segments: place - before, bytes }
  }

  /** Behind the last offset of a sealed segment. */
  #endOf(place: number): number {
    return place + 1 < this.#active.sealedEnd ? this.#sealed.baseOffset(place + 1) : this.#active.base
  }

  /** The settler has committed it: what lies there is not looked for in slots any more. */
  adopt(partition: ManifestPartition): void {
    assert(partition.nextOffset >= this.settledEnd, 'settled data never goes back to slots')
    this.settled = partition
    // What was found damaged may be elsewhere now: it is looked at anew.
    this.damaged.length = 0
    this.runs.dropBefore(partition.nextOffset)
    this.layout++
  }

  /**
   * As adopt; its sealed segments are others than those that were settled: a compaction made them. Also while a group is
   * gathered or under way: the newest segments, which it may have sealed, are behind what is settled.
   */
  adoptCompacted(partition: ManifestPartition): void {
    this.adopt(partition)
    const settled = partition.segments.filter(({ isSealed, nextOffset }) => isSealed && nextOffset > this.startOffset)
    const end = settled.at(-1)?.nextOffset ?? 0
    let to = this.#sealed.first
    while (to < this.#active.sealedEnd && this.#sealed.baseOffset(to) < end) to++
    const replaced = to - this.#sealed.first
    this.#droppedBytes += this.#sealed.replace(this.#sealed.first, to, settled)
    // Places are counted by whoever captured a state: they stay, so what was merged counts as dropped.
    this.#sealed.shift(replaced - settled.length)
  }

  /** True while nothing was recovered of it but, perhaps, where it began to be known. */
  get isUnknown(): boolean {
    return this.settled === null && this.runs.count === 0
  }

  /** Begins at an offset, though what was before is nowhere: its topic was deleted while slots still told of it. */
  beginAt(offset: number): void {
    assert(this.isUnknown && offset > this.nextOffset, 'what is known of a log does not go back')
    this.isBeheaded = true
    this.startOffset = offset
    this.nextOffset = offset
    this.#staged.base = offset
    this.capture(recovered, 0, 0)
    this.commit(recovered, 0)
  }

  /** Begins with what a manifest knows, before any run is recovered. */
  recoverSettled(partition: ManifestPartition): void {
    this.settled = partition
    this.startOffset = partition.startOffset
    this.nextOffset = partition.nextOffset
    for (const { epoch, startOffset } of partition.epochs) this.beginEpoch(epoch, startOffset)
    for (const segment of partition.segments) this.#recoverSegment(segment)
    this.capture(recovered, 0, 0)
    this.commit(recovered, 0)
    this.producers.restore(partition.producers)
  }

  #recoverSegment({ baseOffset, bytes, firstReceiveMs, receiveMsMax, isSealed }: ManifestSegment): void {
    const staged = this.#staged
    staged.writtenBytes += bytes
    if (isSealed) {
      this.#sealed.push(baseOffset, bytes, firstReceiveMs, receiveMsMax)
      staged.sealedEnd++
      staged.base = this.nextOffset
      return
    }
    staged.base = baseOffset
    staged.bytes = bytes
    staged.firstReceiveMs = firstReceiveMs
    staged.lastReceiveMs = receiveMsMax
  }

  /** Takes over a run found at recovery: already durable. The caller indexes it. */
  recoverRun(nextOffset: number, bytes: number, rolls: boolean, receiveMs: number): void {
    if (rolls) this.stageRoll()
    this.nextOffset = nextOffset
    this.stageBytes(bytes)
    this.capture(recovered, 0, receiveMs)
    this.commit(recovered, 0)
  }
}
