/**
 * The handles of a topic's partitions: what the log calls them. Pure, any thread.
 *
 *   made with 3 partitions      first handle 10    0 → 10   1 → 11   2 → 12
 *   2 more, when 40 is next     added 3 … at 40    3 → 40   4 → 41
 *
 * A handle means one partition for ever, so those of a topic that grew are several ranges: nothing is ever renumbered.
 */
import { placeIn } from '../base/sorted.ts'

/** Partitions whose handles are in a row. */
export interface HandleRange {
  readonly firstPartition: number
  readonly firstHandle: number
  readonly partitionCount: number
}

/** What has partitions: a topic, as any thread knows it. */
export interface PartitionHandles {
  /** Of partition 0; it stands for the topic on the shards. */
  readonly firstHandle: number
  /** All of them. */
  readonly partitionCount: number
  /** Those that came later, by partition; absent: there are only those that it was made with. */
  readonly added?: readonly HandleRange[]
}

/** The handle of a partition below partitionCount. @cost where the topic grew, a binary search. */
export function handleOf({ firstHandle, added }: PartitionHandles, partition: number): number {
  if (added === undefined) return firstHandle + partition
  const range = added[placeIn(added, partition, beginsUpTo) - 1]
  return range === undefined ? firstHandle + partition : range.firstHandle + partition - range.firstPartition
}

function beginsUpTo({ firstPartition }: HandleRange, partition: number): boolean {
  return firstPartition <= partition
}

/** All ranges of a topic, by partition and by handle. */
export function rangesOf({ firstHandle, partitionCount, added = [] }: PartitionHandles): HandleRange[] {
  const madeWith = added[0]?.firstPartition ?? partitionCount
  return [{ firstPartition: 0, firstHandle, partitionCount: madeWith }, ...added]
}

/** The same with one more range behind the others. */
export function withRange<T extends PartitionHandles>(topic: T, range: HandleRange): T {
  return {
    ...topic,
    partitionCount: topic.partitionCount + range.partitionCount,
    added: [...(topic.added ?? []), range]
  }
}

/** Behind the last handle of a range. */
export function endOf(range: Pick<HandleRange, 'firstHandle' | 'partitionCount'>): number {
  return range.firstHandle + range.partitionCount
}

/** Place of the first range that ends behind a handle: it has the handle, or begins behind it. @param ranges by first handle. */
export function rangePlace(
  ranges: readonly Pick<HandleRange, 'firstHandle' | 'partitionCount'>[],
  handle: number
): number {
  return placeIn(ranges, handle, endsUpTo)
}

function endsUpTo(range: Pick<HandleRange, 'firstHandle' | 'partitionCount'>, handle: number): boolean {
  return endOf(range) <= handle
}

/** The range that has a handle. @param ranges by first handle. @cost a binary search. */
export function findRange<T extends Pick<HandleRange, 'firstHandle' | 'partitionCount'>>(
  ranges: readonly T[],
  handle: number
): T | undefined {
  const range = ranges[rangePlace(ranges, handle)]
  return range !== undefined && handle >= range.firstHandle ? range : undefined
}
