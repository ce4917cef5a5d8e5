/**
 * The handles of a topic's partitions: what the log calls them. Pure, any thread.
 *
 *   made with 3 partitions      first handle 10    0 → 10   1 → 11   2 → 12
 *   2 more, when 40 is next     added 3 … at 40    3 → 40   4 → 41
 *   1 more, when 42 is next     the same range     5 → 42
 *
 * A handle means one partition for ever, so those of a topic that grew may be several ranges: nothing is ever renumbered.
 * What follows on is one range: there are as many as it needs, not as many as it grew.
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
  /** Those whose handles do not follow on the ones before, by partition; absent: all are in a row. */
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
  const inRow = added[0]?.firstPartition ?? partitionCount
  return [{ firstPartition: 0, firstHandle, partitionCount: inRow }, ...added]
}

/** The same with these partitions behind the others: in its last range if their handles follow on. */
export function withRange<T extends PartitionHandles>(topic: T, range: HandleRange): T {
  const grown = { ...topic, partitionCount: topic.partitionCount + range.partitionCount }
  const { added = [] } = topic
  const last = added.at(-1)
  if (last === undefined) return follows(topic, range) ? grown : { ...grown, added: [range] }
  return { ...grown, added: follows(last, range) ? [...added.slice(0, -1), joined(last, range)] : [...added, range] }
}

/** The same with all that it was given later. @param later by partition; partitionCount counts them already. */
export function withRanges<T extends PartitionHandles>(topic: T, later: readonly HandleRange[]): T {
  const madeWith = later[0]?.firstPartition ?? topic.partitionCount
  return later.reduce<T>(withRange, { ...topic, partitionCount: madeWith })
}

/** Whether the first handle of a range is the one behind the last of another. */
export function follows(
  before: Pick<HandleRange, 'firstHandle' | 'partitionCount'>,
  { firstHandle }: Pick<HandleRange, 'firstHandle'>
): boolean {
  return endOf(before) === firstHandle
}

/** Two ranges of a topic that follow each other, as one. */
export function joined(before: HandleRange, behind: HandleRange): HandleRange {
  return { ...before, partitionCount: before.partitionCount + behind.partitionCount }
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
