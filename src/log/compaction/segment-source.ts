/**
 * The batches of a settled segment, in order, each checked: what a compaction pass reads. On whatever thread made the
 * window. A damaged block ends it: what cannot be read is not rewritten.
 */
import { batchStatus, BatchView } from '../../wire/batch/view.ts'
import type { ManifestPartition, ManifestSegment } from '../manifest.ts'
import type { SettledWindow } from '../settled-window.ts'
import type { SourceBatch, SourceSegment } from './pass.ts'

/** A segment has damaged bytes: the partition is compacted when an operator has dealt with it. */
export class DamagedSegment extends Error {
  override readonly name = 'DamagedSegment'
  readonly baseOffset: number
  constructor(baseOffset: number) {
    super(`the segment of offset ${baseOffset} has damaged bytes`)
    this.baseOffset = baseOffset
  }
}

/** @throws DamagedSegment, DiskError while it is iterated. */
export function sourceOf(window: SettledWindow, partition: ManifestPartition, segment: ManifestSegment): SourceSegment {
  return { ...segment, batches: () => batchesOf(window, partition, segment) }
}

function* batchesOf(
  window: SettledWindow,
  partition: ManifestPartition,
  segment: ManifestSegment
): Generator<SourceBatch, void, undefined> {
  const view = new BatchView()
  for (const extent of segment.extents) {
    const place = window.place(partition, segment, extent)
    if (place.coveredBytes !== extent.bytes) throw new DamagedSegment(segment.baseOffset)
    for (let block = 0; block < place.table.count; block++) {
      const index = window.load(place, block)
      if (index < 0) throw new DamagedSegment(segment.baseOffset)
      const bytes = window.buffer
      const end = index + place.table.bytes(block)
      for (let at = index; at < end; at = view.end) {
        const status = view.open(bytes, at, end)
        if (status !== batchStatus.ok && status !== batchStatus.compressed) throw new DamagedSegment(segment.baseOffset)
        yield { bytes, start: at, end: view.end }
      }
    }
  }
}
