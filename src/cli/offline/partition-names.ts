/**
 * Partition handles in words: the topic and the partition that the store gives for each. Pure; made once from the store.
 */
import { endOf, findRange, rangesOf, type HandleRange, type PartitionHandles } from '../../model/handles.ts'
import type { StoreImage } from '../../control/store-image.ts'

/** One partition. Without a topic the store knows nothing of the handle. */
export interface PartitionName {
  readonly handle: number
  readonly topic: string | null
  readonly partition: number | null
  /** The topic was deleted; its records may still stand in a slot. */
  readonly isDeleted: boolean
}

interface NamedRange extends HandleRange {
  readonly topic: string
  readonly isDeleted: boolean
}

export class PartitionNames {
  /** By first handle; they do not overlap in a sound store. */
  readonly #ranges: readonly NamedRange[]

  /** @param image null: the store could not be read, and no handle has a name. */
  constructor(image: Pick<StoreImage, 'topics' | 'tombstones'> | null) {
    const live = (image?.topics ?? []).flatMap(topic => namedRanges(topic, false))
    const deleted = (image?.tombstones ?? []).flatMap(topic => namedRanges(topic, true))
    this.#ranges = [...live, ...deleted].sort((a, b) => a.firstHandle - b.firstHandle)
  }

  nameOf(handle: number): PartitionName {
    const range = findRange(this.#ranges, handle)
    if (range === undefined) return { handle, topic: null, partition: null, isDeleted: false }
    const { topic, firstPartition, firstHandle, isDeleted } = range
    return { handle, topic, partition: firstPartition + handle - firstHandle, isDeleted }
  }

  /** Pairs of topics that claim the same handles: there are none in a sound store. */
  overlaps(): readonly (readonly [string, string])[] {
    return this.#ranges.flatMap((range, index) => {
      const before = this.#ranges[index - 1]
      const overlaps = before !== undefined && endOf(before) > range.firstHandle
      return overlaps ? [[before.topic, range.topic] as const] : []
    })
  }
}

function namedRanges(topic: { readonly name: string } & PartitionHandles, isDeleted: boolean): NamedRange[] {
  return rangesOf(topic).map(range => ({ ...range, topic: topic.name, isDeleted }))
}

/** `orders/0`, `orders/0 (deleted topic)`, `handle 7 (no topic)`. */
export function showPartition({ handle, topic, partition, isDeleted }: PartitionName): string {
  if (topic === null) return `handle ${handle} (no topic)`
  return `${topic}/${partition ?? 0}${isDeleted ? ' (deleted topic)' : ''}`
}
