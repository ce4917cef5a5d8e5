/**
 * Answers what a manifest knows of partitions: which are to be compacted, which have segments for cold storage, which are
 * there. Settler thread; pure.
 */
import { compactableSegments } from '../../src/log/compaction/partition-job.ts'
import type { Manifest, ManifestPartition } from '../../src/log/manifest.ts'
import { tierableSegments } from '../../src/log/tiering.ts'
import { endOf } from '../../src/model/handles.ts'
import type { TierablePartition, TieredRange } from '../../src/wire/shard/cold.ts'
import type { CompactablePartition, CompactedRange } from '../../src/wire/shard/settle.ts'
import { packMessage } from '../../src/wire/msgpack.ts'

/** Keys of objects named in one answer: the others come with the next. */
const REMOVALS_MAX = 1000

export function findCompactable({ partitions }: Manifest, ranges: readonly CompactedRange[]): CompactablePartition[] {
  const found: CompactablePartition[] = []
  for (const range of ranges) {
    for (let handle = range.firstHandle; handle < endOf(range); handle++) {
      const partition = partitions.get(handle)
      if (partition === undefined || dirtyShareOf(partition) < range.dirtyShareMin) continue
      const bytes = compactableSegments(partition).reduce((sum, segment) => sum + segment.bytes, 0)
      found.push({ handle, key: sealedKeyOf(partition), bytes, partition: packMessage(partition) })
    }
  }
  return found
}

/** @param nowMs Unix ms. */
export function findTierable(
  { partitions }: Manifest,
  ranges: readonly TieredRange[],
  nowMs: number
): TierablePartition[] {
  const found: TierablePartition[] = []
  for (const range of ranges) {
    for (let handle = range.firstHandle; handle < endOf(range); handle++) {
      const partition = partitions.get(handle)
      if (partition === undefined) continue
      const baseOffsets = tierableSegments(partition, range, nowMs).map(({ baseOffset }) => baseOffset)
      if (baseOffsets.length > 0) found.push({ handle, baseOffsets, partition: packMessage(partition) })
    }
  }
  return found
}

/** Keys of objects that are due to go. */
export function dueObjects({ removals }: Manifest, nowMs: number): string[] {
  const due = removals.filter(({ isCold, dueMs }) => isCold === true && dueMs <= nowMs)
  return due.slice(0, REMOVALS_MAX).map(({ path }) => path)
}

/** Share of the sealed bytes that no compaction has gone over; −1: nothing is sealed. What is cold does not count. */
function dirtyShareOf(partition: ManifestPartition): number {
  const sealed = compactableSegments(partition)
  let all = 0
  let dirty = 0
  for (const { bytes, compaction } of sealed) {
    all += bytes
    if (compaction === 0) dirty += bytes
  }
  if (sealed.length === 0) return -1
  return all === 0 ? 0 : dirty / all
}

function sealedKeyOf({ segments }: ManifestPartition): string {
  const sealed = segments.filter(({ isSealed }) => isSealed)
  const last = sealed.at(-1)
  return `${sealed.length}:${sealed[0]?.baseOffset}:${last?.nextOffset}:${last?.compaction}`
}
