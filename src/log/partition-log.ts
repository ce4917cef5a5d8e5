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
import { limits } from '../model/limits.ts'
import type { ProducerRun } from './group-format.ts'
import { ProducerSequences } from './producer-sequences.ts'
import { RunIndex } from './run-index.ts'

/** Numbers of one captured state. */
export const STAGED_NUMBERS = 5

/** The state that recoverRun captures and commits at once. */
const recovered = new Float64Array(STAGED_NUMBERS)

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

  /** Idempotent producers by number, staged sequences included; null: none. */
  #producers: Map<number, ProducerSequences> | null = null

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

  /**
   * Notes what is staged now in state[at…at + STAGED_NUMBERS): the end of a group that is encoded. What is staged later
   * belongs to the next group.
   */
  capture(state: Float64Array, at: number): void {
    state[at] = this.nextOffset
    state[at + 1] = this.#stagedSizeBytes
    state[at + 2] = this.#stagedSegmentCount
    state[at + 3] = this.#stagedActiveBytes
    state[at + 4] = this.#stagedActiveBase
  }

  /** The group captured there is durable: readers may see it. */
  commit(state: Float64Array, at: number): void {
    const end = state[at] as number
    assert(this.highWatermark <= end && end <= this.nextOffset, 'high watermark at most next offset')
    this.highWatermark = end
    this.sizeBytes = state[at + 1] as number
    this.segmentCount = state[at + 2] as number
    this.#activeBytes = state[at + 3] as number
    this.#activeBase = state[at + 4] as number
  }

  /** The group was not written: as if it had never been gathered. */
  rollback(): void {
    this.nextOffset = this.highWatermark
    this.#stagedSizeBytes = this.sizeBytes
    this.#stagedSegmentCount = this.segmentCount
    this.#stagedActiveBytes = this.#activeBytes
    this.#stagedActiveBase = this.#activeBase
    // All of them: a rollback is rare, and a list of those with something staged would cost every record.
    for (const [number, sequences] of this.#producers ?? [])
      if (sequences.rollback(this.highWatermark)) this.#producers?.delete(number)
  }

  /** The sequences of a producer; null: it has none here. */
  producer(number: number): ProducerSequences | null {
    return this.#producers?.get(number) ?? null
  }

  /** Producers with sequences here, by number. */
  producers(): Iterable<[number, ProducerSequences]> {
    return this.#producers ?? []
  }

  /** A record with that sequence (high i32, low u32) was staged at `offset`. The caller has judged it. */
  acceptSequence(producer: number, high: number, low: number, offset: number): void {
    this.#producers ??= new Map()
    let sequences = this.#producers.get(producer)
    if (sequences === undefined) {
      sequences = new ProducerSequences(high, low)
      this.#producers.set(producer, sequences)
    }
    assert(sequences.relativeOf(high, low) === sequences.next, 'accepted sequences have no gaps')
    sequences.accept(1, offset, this.highWatermark)
  }

  forgetProducers(numbers: readonly number[]): void {
    if (this.#producers === null) return
    for (const number of numbers) this.#producers.delete(number)
  }

  /** Forgets the producers that are not wanted any more. */
  keepProducers(isKept: (number: number) => boolean): void {
    for (const number of this.#producers?.keys() ?? []) if (!isKept(number)) this.#producers?.delete(number)
  }

  /** Takes over the producer runs of a run found at recovery. */
  recoverProducers(runs: readonly ProducerRun[]): void {
    for (const { producerId, sequenceHigh, sequenceLow, count, baseOffset } of runs) {
      this.#producers ??= new Map()
      const high = sequenceHigh | 0
      let sequences = this.#producers.get(producerId)
      // What does not follow on begins anew: the window never spans a gap.
      if (sequences === undefined || sequences.relativeOf(high, sequenceLow) !== sequences.next) {
        sequences = new ProducerSequences(high, sequenceLow)
        this.#producers.set(producerId, sequences)
      }
      sequences.accept(count, baseOffset, this.highWatermark)
    }
  }

  /** Takes over a run found at recovery: already durable. The caller indexes it. */
  recoverRun(nextOffset: number, bytes: number, rolls: boolean): void {
    if (rolls) this.stageRoll()
    this.nextOffset = nextOffset
    this.stageBytes(bytes)
    this.capture(recovered, 0)
    this.commit(recovered, 0)
  }
}
