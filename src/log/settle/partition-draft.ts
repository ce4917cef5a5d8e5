/**
 * What a partition becomes by a settle job, while the job works on it: the entries of its slots applied to what the
 * manifest says. Settler thread, or a tool that holds the lock. Writes nothing.
 */
import { assert } from '../../base/assert.ts'
import { limits } from '../../model/limits.ts'
import { RUN_ROLLS, entryKinds, type ProducerRun } from '../group-format.ts'
import type { BatchWitness } from '../extent-blocks.ts'
import type { DamagedRange, Extent, ManifestPartition, ManifestProducer, ManifestSegment } from '../manifest.ts'
import { ProducerSequences } from '../producer-sequences.ts'
import type { PlannedEntry } from './plan.ts'

/** Producers idle for longer are left out: the store has forgotten them a day before. */
const PRODUCER_KEPT_MS = limits.producerIdleMs + 24 * 60 * 60 * 1000

/** A segment as the job makes it; `runs` are still to be written. */
export interface SegmentDraft {
  readonly baseOffset: number
  nextOffset: number
  bytes: number
  readonly firstReceiveMs: number
  receiveMsMax: number
  isSealed: boolean
  readonly compaction: number
  extents: readonly Extent[]
  readonly runs: PlannedEntry[]
  /** As the manifest has it, to be kept if nothing changes. */
  readonly old: ManifestSegment | null
}

export class PartitionDraft {
  readonly handle: number
  readonly directory: string
  readonly #old: ManifestPartition | undefined
  startOffset: number
  nextOffset: number
  readonly #damaged: DamagedRange[]
  readonly #epochs: { readonly epoch: number; readonly startOffset: number }[]
  readonly #producers = new Map<number, { readonly sequences: ProducerSequences; usedMs: number }>()
  readonly segments: SegmentDraft[] = []

  /** @param startOffset the present one, where the shard knows a later one than the manifest; else 0. */
  constructor(handle: number, directory: string, old: ManifestPartition | undefined, startOffset: number) {
    this.handle = handle
    this.directory = directory
    this.#old = old
    this.startOffset = Math.max(startOffset, old?.startOffset ?? 0)
    this.nextOffset = old?.nextOffset ?? 0
    this.#damaged = [...(old?.damaged ?? [])]
    this.#epochs = [...(old?.epochs ?? [])]
    for (const producer of old?.producers ?? []) {
      const { number, usedMs } = producer
      this.#producers.set(number, { sequences: ProducerSequences.restored(producer), usedMs })
    }
    for (const segment of old?.segments ?? []) this.segments.push({ ...segment, runs: [], old: segment })
  }

  /** Takes up what was written since, in order. */
  apply(entries: readonly PlannedEntry[]): void {
    for (const planned of entries) {
      const { entry } = planned
      switch (entry.kind) {
        case entryKinds.startOffset:
          this.#applyStart(entry.baseOffset)
          break
        case entryKinds.leaderEpoch:
          if (entry.leaderEpoch > (this.#epochs.at(-1)?.epoch ?? 0))
            this.#epochs.push({ epoch: entry.leaderEpoch, startOffset: entry.baseOffset })
          break
        default:
          this.#applyRun(planned)
      }
    }
  }

  /** As PartitionLog.moveStart does: where everything goes, the next record begins a segment. */
  #applyStart(offset: number): void {
    this.startOffset = Math.max(this.startOffset, offset)
    const last = this.segments.at(-1)
    if (last !== undefined && offset === this.nextOffset) last.isSealed = true
  }

  #applyRun(planned: PlannedEntry): void {
    const { entry, slot } = planned
    if (entry.baseOffset > this.nextOffset && slot.mayLackOffsets) {
      this.#damaged.push({ firstOffset: this.nextOffset, nextOffset: entry.baseOffset, path: null })
      this.nextOffset = entry.baseOffset
    }
    // A handle that nobody knows any more may have lost what was settled of it: all that is left is kept (V4).
    if (this.#old === undefined && this.segments.length === 0 && entry.baseOffset > this.nextOffset) {
      this.startOffset = Math.max(this.startOffset, entry.baseOffset)
      this.nextOffset = entry.baseOffset
    }
    assert(entry.baseOffset === this.nextOffset, 'the runs of slots follow what is settled')
    const last = this.segments.at(-1)
    const begins = last === undefined || last.isSealed || (entry.flags & RUN_ROLLS) !== 0
    if (begins) {
      if (last !== undefined) last.isSealed = true
      this.segments.push({
        baseOffset: entry.baseOffset,
        nextOffset: entry.nextOffset,
        bytes: entry.bytes,
        firstReceiveMs: entry.receiveMs,
        receiveMsMax: entry.receiveMs,
        isSealed: false,
        compaction: 0,
        extents: [],
        runs: [planned],
        old: null
      })
    } else {
      last.nextOffset = entry.nextOffset
      last.bytes += entry.bytes
      last.receiveMsMax = Math.max(last.receiveMsMax, entry.receiveMs)
      last.runs.push(planned)
    }
    this.nextOffset = entry.nextOffset
    this.#applyProducers(entry.producers, entry.receiveMs)
  }

  /** As PartitionProducers.recover does: what does not follow on begins anew. */
  #applyProducers(runs: readonly ProducerRun[], receiveMs: number): void {
    for (const { producerId, sequenceHigh, sequenceLow, count, baseOffset } of runs) {
      const high = sequenceHigh | 0
      let known = this.#producers.get(producerId)
      if (known === undefined || known.sequences.relativeOf(high, sequenceLow) !== known.sequences.next) {
        known = { sequences: new ProducerSequences(high, sequenceLow), usedMs: receiveMs }
        this.#producers.set(producerId, known)
      }
      known.sequences.accept(count, baseOffset, this.nextOffset)
      known.usedMs = receiveMs
    }
  }

  /**
   * Takes the sealed segments out that lie before the start offset; their runs are never written. One that may go on in
   * later slots stays, so that its numbers do: its runs before the start are not written either.
   * @returns quarantined runs of those segments: their bytes are kept (V2).
   */
  dropBeforeStart(): PlannedEntry[] {
    const keptAt = this.segments.findIndex(({ isSealed, nextOffset }) => !isSealed || nextOffset > this.startOffset)
    const dropped = this.segments.splice(0, keptAt < 0 ? this.segments.length : keptAt)
    return dropped.flatMap(({ runs }) => runs.filter(({ entry }) => entry.kind === entryKinds.quarantined))
  }

  /** What batches that are settled already are held against. */
  get witness(): BatchWitness {
    return { epochs: this.#epochs, damaged: this.#damaged }
  }

  /** Adds a damaged range, but for what is known to be damaged: ranges never overlap. */
  addDamaged({ firstOffset, nextOffset, path }: DamagedRange): void {
    let first = firstOffset
    const inside = this.#damaged
      .filter(range => range.nextOffset > firstOffset && range.firstOffset < nextOffset)
      .sort((a, b) => a.firstOffset - b.firstOffset)
    for (const range of inside) {
      if (first < range.firstOffset) this.#damaged.push({ firstOffset: first, nextOffset: range.firstOffset, path })
      first = Math.max(first, range.nextOffset)
    }
    if (first < nextOffset) this.#damaged.push({ firstOffset: first, nextOffset, path })
  }

  /** All segments written: the partition as it is committed. @param nowMs Unix ms. */
  finish(nowMs: number): ManifestPartition {
    const producers: ManifestProducer[] = []
    for (const [number, { sequences, usedMs }] of this.#producers) {
      if (usedMs < nowMs - PRODUCER_KEPT_MS) continue
      producers.push({ number, ...sequences.snapshot(this.nextOffset), usedMs })
    }
    return {
      handle: this.handle,
      directory: this.directory,
      generation: (this.#old?.generation ?? 0) + 1,
      startOffset: this.startOffset,
      nextOffset: this.nextOffset,
      epochs: this.#epochs,
      producers,
      segments: this.segments.map(segmentOf),
      damaged: this.#damaged
        .filter(range => range.nextOffset > this.startOffset)
        .sort((a, b) => a.firstOffset - b.firstOffset)
    }
  }
}

function segmentOf(draft: SegmentDraft): ManifestSegment {
  const { old, baseOffset, nextOffset, bytes, firstReceiveMs, receiveMsMax, isSealed, compaction, extents } = draft
  if (old?.isSealed === isSealed && old.nextOffset === nextOffset && old.extents === extents) return old
  assert(old?.cold === undefined, 'what is in cold storage does not change')
  return { baseOffset, nextOffset, bytes, firstReceiveMs, receiveMsMax, isSealed, compaction, extents }
}
