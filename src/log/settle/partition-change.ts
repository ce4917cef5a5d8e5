/**
 * What a commit changed of a partition, as the settler tells it to the shard: a partition of many segments is not sent
 * whole each time. Pure.
 */
import { assert } from '../../base/assert.ts'
import type { ManifestPartition } from '../manifest.ts'

export interface PartitionChange {
  /** Generation that the shard must have; −1: any, nothing of the old one is kept. */
  readonly baseGeneration: number
  /** Of the old segments so many go, so many behind them stay as they are; those of `partition` follow. */
  readonly droppedSegments: number
  readonly keptSegments: number
  readonly partition: ManifestPartition
  /** Sealed segments were made anew: what the shard counts follows. */
  readonly isCompaction: boolean
}

/** @param old undefined: the shard may know nothing of the partition. */
export function changeOf(
  old: ManifestPartition | undefined,
  now: ManifestPartition,
  isCompaction = false
): PartitionChange {
  if (old === undefined)
    return { baseGeneration: -1, droppedSegments: 0, keptSegments: 0, partition: now, isCompaction: true }
  const first = now.segments[0]
  let dropped = first === undefined ? old.segments.length : old.segments.indexOf(first)
  if (dropped < 0) dropped = old.segments.length
  let kept = 0
  while (dropped + kept < old.segments.length && old.segments[dropped + kept] === now.segments[kept]) kept++
  return {
    baseGeneration: old.generation,
    droppedSegments: dropped,
    keptSegments: kept,
    partition: { ...now, segments: now.segments.slice(kept) },
    isCompaction
  }
}

/** The partition after the change. @param old what the shard has. */
export function applyChange(old: ManifestPartition | null, change: PartitionChange): ManifestPartition {
  const { baseGeneration, droppedSegments, keptSegments, partition } = change
  if (baseGeneration === -1) return partition
  assert(old !== null && old.generation === baseGeneration, 'a change follows the one before it')
  const kept = old.segments.slice(droppedSegments, droppedSegments + keptSegments)
  return { ...partition, segments: [...kept, ...partition.segments] }
}
