/**
 * The state of one partition incarnation on its shard: offsets, segments, and the index of its runs.
 * Owned by the shard thread alone.
 *
 * Two states stand side by side: durable (what readers and acks see) and staged (with the group being gathered).
 * commit() makes staged durable after the sync; rollback() forgets it when the group could not be written.
 * Invariant: startOffset ≤ highWatermark ≤ nextOffset; outside a group highWatermark = nextOffset.
 */
import { assert } from '../base/assert.ts'
import { limits } from '../model/limits.ts'
import { RunIndex } from './run-index.ts'

export class PartitionLog {
  readonly handle: number
  readonly runs = new RunIndex()
  /** First offset that may be read; never goes back (W7). */
  startOffset = 0
  /** End of what is durable: what readers see. */
  highWatermark = 0
  /** Next offset to give, the group being gathered included. */
  nextOffset = 0
  /** Epoch of what is written now. */
  leaderEpoch = 0
  /** Starts of epochs above 0, oldest first. Few: one for each start that cut data (V5). */
  readonly #epochs: { readonly epoch: number; readonly startOffset: number }[] = []
  /** Bytes at which a segment rolls; a topic's segment_bytes, at most 2^31 − 1. */
  segmentBytes: number = limits.segmentBytesHard

  /** Stored bytes and segments, durable. */
  sizeBytes = 0
  segmentCount = 1
  #activeBytes = 0
  #activeBase = 0

  /** The same with the group being gathered. */
  #stagedSizeBytes = 0
  #stagedSegmentCount = 1
  #stagedActiveBytes = 0
  #stagedActiveBase = 0

  /** Place in the group being gathered, or −1: the encoder's mark, kept here to spare a map. */
  groupPlace = -1

  constructor(handle: number) {
    this.handle = handle
  }

  /** What is written from `startOffset` on has that epoch. */
  beginEpoch(epoch: number, startOffset: number): void {
    assert(epoch > this.leaderEpoch, 'leader epochs only grow')
    this.leaderEpoch = epoch
    this.#epochs.push({ epoch, startOffset })
  }

  /** The epoch in which an offset was written. */
  epochAt(offset: number): number {
    for (let i = this.#epochs.length - 1; i >= 0; i--) {
      const start = this.#epochs[i]
      if (start !== undefined && start.startOffset <= offset) return start.epoch
    }
    return 0
  }

  /** True if `bytes` more would not fit the active segment, which has something in it; or its offsets run out. */
  mustRoll(bytes: number): boolean {
    if (this.#stagedActiveBytes === 0) return false
    const limit = Math.min(this.segmentBytes, limits.segmentBytesHard)
    return (
      this.#stagedActiveBytes + bytes > limit || this.nextOffset - this.#stagedActiveBase >= limits.segmentBytesHard
    )
  }

  /** The next record begins a new segment. */
  stageRoll(): void {
    this.#stagedActiveBytes = 0
    this.#stagedActiveBase = this.nextOffset
    this.#stagedSegmentCount++
  }

  /** Adds to the active segment of the group being gathered. */
  stageBytes(bytes: number): void {
    this.#stagedActiveBytes += bytes
    this.#stagedSizeBytes += bytes
  }

  /** The group is durable: readers may see it. */
  commit(): void {
    assert(this.highWatermark <= this.nextOffset, 'high watermark at most next offset')
    this.highWatermark = this.nextOffset
    this.sizeBytes = this.#stagedSizeBytes
    this.segmentCount = this.#stagedSegmentCount
    this.#activeBytes = this.#stagedActiveBytes
    this.#activeBase = this.#stagedActiveBase
  }

  /** The group was not written: as if it had never been gathered. */
  rollback(): void {
    this.nextOffset = this.highWatermark
    this.#stagedSizeBytes = this.sizeBytes
    this.#stagedSegmentCount = this.segmentCount
    this.#stagedActiveBytes = this.#activeBytes
    this.#stagedActiveBase = this.#activeBase
  }

  /** Takes over a run found at recovery: already durable. The caller indexes it. */
  recoverRun(nextOffset: number, bytes: number, rolls: boolean): void {
    if (rolls) this.stageRoll()
    this.nextOffset = nextOffset
    this.stageBytes(bytes)
    this.commit()
  }
}
