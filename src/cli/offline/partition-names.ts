/**
 * Partition handles in words: the topic and the partition that the store gives for each. Pure; made once from the store.
 */
import type { StoreImage } from '../../control/store-image.ts'

/** One partition. Without a topic the store knows nothing of the handle. */
export interface PartitionName {
  readonly handle: number
  readonly topic: string | null
  readonly partition: number | null
  /** The topic was deleted; its records may still stand in a slot. */
  readonly isDeleted: boolean
}

interface HandleRange {
  readonly topic: string
  readonly firstHandle: number
  readonly partitionCount: number
  readonly isDeleted: boolean
}

export class PartitionNames {
  /** By first handle; they do not overlap in a sound store. */
  readonly #ranges: readonly HandleRange[]

  /** @param image null: the store could not be read, and no handle has a name. */
  constructor(image: Pick<StoreImage, 'topics' | 'tombstones'> | null) {
    const live = (image?.topics ?? []).map(topic => ({ ...rangeOf(topic), isDeleted: false }))
    const deleted = (image?.tombstones ?? []).map(topic => ({ ...rangeOf(topic), isDeleted: true }))
    this.#ranges = [...live, ...deleted].sort((a, b) => a.firstHandle - b.firstHandle)
  }

  nameOf(handle: number): PartitionName {
    let low = 0
    let high = this.#ranges.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((this.#ranges[middle]?.firstHandle ?? 0) <= handle) low = middle + 1
      else high = middle
    }
    const range = this.#ranges[low - 1]
    if (range === undefined || handle >= range.firstHandle + range.partitionCount) {
      return { handle, topic: null, partition: null, isDeleted: false }
    }
    return { handle, topic: range.topic, partition: handle - range.firstHandle, isDeleted: range.isDeleted }
  }

  /** Pairs of topics that claim the same handles: there are none in a sound store. */
  overlaps(): readonly (readonly [string, string])[] {
    return this.#ranges.flatMap((range, index) => {
      const before = this.#ranges[index - 1]
      const overlaps = before !== undefined && before.firstHandle + before.partitionCount > range.firstHandle
      return overlaps ? [[before.topic, range.topic] as const] : []
    })
  }
}

function rangeOf(topic: { name: string; firstHandle: number; partitionCount: number }): Omit<HandleRange, 'isDeleted'> {
  return { topic: topic.name, firstHandle: topic.firstHandle, partitionCount: topic.partitionCount }
}

/** `orders/0`, `orders/0 (deleted topic)`, `handle 7 (no topic)`. */
export function showPartition({ handle, topic, partition, isDeleted }: PartitionName): string {
  if (topic === null) return `handle ${handle} (no topic)`
  return `${topic}/${partition ?? 0}${isDeleted ? ' (deleted topic)' : ''}`
}
