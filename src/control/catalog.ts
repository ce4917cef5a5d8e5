/**
 * The topics of this broker, in memory, as the store holds them. Main thread only; calls nobody.
 *
 *   decide (pure, topic-decisions.ts) → reserve → commit in the store → apply, or abandon if the store refused
 *
 * Invariants: names, ids and handles of live topics are unique; ids and handles only rise, reserved ones included, also
 * over deletions and restarts; the handles of a topic are one range, and one more for each time that it grew
 * when the next handle did not follow on; ranges of topics and tombstones never overlap; what look-ups show is committed. A topic has at most one change in flight.
 */
import { assert, unreachable } from '../base/assert.ts'
import { placeIn } from '../base/sorted.ts'
import {
  endOf,
  findRange,
  follows,
  joined,
  rangePlace,
  rangesOf,
  withRange,
  type HandleRange
} from '../model/handles.ts'
import type { TopicId } from '../model/ids.ts'
import type { Topic } from '../model/topic.ts'
import type { CatalogChange, Placement, StoreImage, Tombstone } from './store-image.ts'

/** What a handle means. unknown: neither live nor a tombstone; its data is kept and reported (durability V4). */
export type HandleMeaning =
  | { readonly kind: 'live'; readonly topic: Topic; readonly partition: number }
  | { readonly kind: 'tombstone'; readonly tombstone: Tombstone }
  | { readonly kind: 'unknown' }

/** A range of a live topic, or of a tombstone. */
interface OwnedRange extends HandleRange {
  readonly id: TopicId
}

export class Catalog {
  readonly directoryId: string
  #placement: Placement
  readonly #byName: Map<string, Topic> = new Map()
  readonly #byId: Map<TopicId, Topic> = new Map()
  /** Sorted by first handle. */
  readonly #topics: Topic[] = []
  readonly #tombstones: Map<TopicId, Tombstone> = new Map()
  /** Of all of these, sorted by handle: a look-up is a binary search. */
  readonly #ranges: OwnedRange[] = []
  /** Sorted by code unit. */
  readonly #names: string[] = []
  /** Names whose creation, change or deletion is on its way to the store. */
  readonly #inFlight: Set<string> = new Set()
  #partitionCount = 0
  #reservedTopicCount = 0
  #reservedPartitionCount = 0
  #nextTopicId: number
  #nextHandle: number

  constructor(image: StoreImage) {
    this.directoryId = image.directoryId
    this.#placement = {
      shardCount: image.shardCount,
      epoch: image.placementEpoch,
      nextShardCount: image.nextShardCount,
      previousShardCount: image.previousShardCount
    }
    this.#nextTopicId = image.nextTopicId
    this.#nextHandle = image.nextHandle
    for (const topic of image.topics) this.#add(topic)
    for (const tombstone of image.tombstones) {
      this.#tombstones.set(tombstone.id, tombstone)
      for (const range of rangesOf(tombstone)) this.#claim(tombstone.id, range)
    }
  }

  get placement(): Placement {
    return this.#placement
  }

  /** Live topics, by first handle. */
  get topics(): readonly Topic[] {
    return this.#topics
  }

  /** Deleted topics whose handles may still stand in a slot. */
  get tombstones(): readonly Tombstone[] {
    return [...this.#tombstones.values()]
  }

  /** Names of live topics, sorted by code unit. A copy. */
  names(): string[] {
    return this.#names.slice()
  }

  get topicCount(): number {
    return this.#topics.length
  }

  /** Topics and partitions, those on their way included: what the limits count. */
  get claimed(): { readonly topicCount: number; readonly partitionCount: number } {
    return {
      topicCount: this.#topics.length + this.#reservedTopicCount,
      partitionCount: this.#partitionCount + this.#reservedPartitionCount
    }
  }

  /** What the next created topic gets. */
  get next(): { readonly topicId: number; readonly handle: number } {
    return { topicId: this.#nextTopicId, handle: this.#nextHandle }
  }

  /** The live topic of that name, or undefined. */
  topicNamed(name: string): Topic | undefined {
    return this.#byName.get(name)
  }

  /** The live topic of that id, or undefined. */
  topicOfId(id: TopicId): Topic | undefined {
    return this.#byId.get(id)
  }

  /** @cost a binary search. */
  meaningOf(handle: number): HandleMeaning {
    const range = findRange(this.#ranges, handle)
    if (range === undefined) return { kind: 'unknown' }
    const topic = this.#byId.get(range.id)
    if (topic !== undefined)
      return { kind: 'live', topic, partition: range.firstPartition + handle - range.firstHandle }
    const tombstone = this.#tombstones.get(range.id)
    assert(tombstone !== undefined, 'handles belong to a topic or to a tombstone')
    return { kind: 'tombstone', tombstone }
  }

  /** True while a creation, change or deletion under that name is reserved and neither applied nor abandoned. */
  isInFlight(name: string): boolean {
    return this.#inFlight.has(name)
  }

  /**
   * Claims what a decided change needs, so that a decision made before it is committed cannot clash with it. Call it in
   * the same turn as the decision, and commit in the order of the reservations: ids must reach the store rising.
   */
  reserve(change: CatalogChange): void {
    const name = this.#nameOf(change)
    if (name === null) return
    assert(!this.#inFlight.has(name), 'a topic has one change in flight at most')
    this.#inFlight.add(name)
    if (change.kind === 'topic-grown') return this.#reserveHandles(change.range)
    if (change.kind !== 'topic-created') return
    const { id } = change.topic
    assert(id >= this.#nextTopicId, 'ids only rise')
    this.#nextTopicId = id + 1
    this.#reservedTopicCount++
    this.#reserveHandles(change.topic)
  }

  #reserveHandles({ firstHandle, partitionCount }: Pick<HandleRange, 'firstHandle' | 'partitionCount'>): void {
    assert(firstHandle >= this.#nextHandle, 'handles only rise')
    this.#nextHandle = firstHandle + partitionCount
    this.#reservedPartitionCount += partitionCount
  }

  /** Gives up a reservation whose commit was refused. Its id and handles stay unused for ever. */
  abandon(change: CatalogChange): void {
    const name = this.#nameOf(change)
    if (name === null) return
    assert(this.#inFlight.delete(name), 'only a reserved change is abandoned')
    this.#unreserve(change)
  }

  /** Makes a committed change visible and ends its reservation. */
  apply(change: CatalogChange): void {
    const name = this.#nameOf(change)
    if (name !== null) assert(this.#inFlight.delete(name), 'only a reserved change is applied')
    switch (change.kind) {
      case 'placement':
        this.#placement = {
          shardCount: change.shardCount,
          epoch: change.epoch,
          nextShardCount: change.nextShardCount ?? null,
          previousShardCount: change.previousShardCount ?? null
        }
        return
      case 'slot-opened':
        // Kept for the next start alone.
        return
      case 'topic-created':
        this.#unreserve(change)
        return this.#add(change.topic)
      case 'topic-configured':
        return this.#replace({ ...this.#existing(change.id), config: change.config })
      case 'topic-grown':
        this.#unreserve(change)
        return this.#grow(this.#existing(change.id), change.range)
      case 'topic-deleted':
        return this.#bury(this.#existing(change.id))
      case 'tombstones-forgotten': {
        const ids = new Set(change.ids.filter(id => this.#tombstones.delete(id)))
        const kept = this.#ranges.filter(({ id }) => !ids.has(id))
        this.#ranges.splice(0, this.#ranges.length, ...kept)
        return
      }
      default:
        unreachable(change)
    }
  }

  #nameOf(change: CatalogChange): string | null {
    if (change.kind === 'placement' || change.kind === 'slot-opened' || change.kind === 'tombstones-forgotten')
      return null
    return change.kind === 'topic-created' ? change.topic.name : this.#existing(change.id).name
  }

  #existing(id: TopicId): Topic {
    const topic = this.#byId.get(id)
    assert(topic !== undefined, 'a topic that is changed or deleted must exist')
    return topic
  }

  #unreserve(change: CatalogChange): void {
    if (change.kind === 'topic-created') {
      this.#reservedTopicCount--
      this.#reservedPartitionCount -= change.topic.partitionCount
    }
    if (change.kind === 'topic-grown') this.#reservedPartitionCount -= change.range.partitionCount
    assert(this.#reservedTopicCount >= 0 && this.#reservedPartitionCount >= 0, 'more given up than was reserved')
  }

  #add(topic: Topic): void {
    assert(!this.#byName.has(topic.name) && !this.#byId.has(topic.id), 'names and ids of topics are unique')
    assert(topic.id < this.#nextTopicId, 'the next topic id is above every one allotted')
    this.#byName.set(topic.name, topic)
    this.#byId.set(topic.id, topic)
    for (const range of rangesOf(topic)) this.#claim(topic.id, range)
    this.#topics.splice(placeIn(this.#topics, topic.firstHandle, hasLowerHandle), 0, topic)
    this.#names.splice(placeIn(this.#names, topic.name, isLowerName), 0, topic.name)
    this.#partitionCount += topic.partitionCount
  }

  #grow(topic: Topic, range: HandleRange): void {
    assert(range.firstPartition === topic.partitionCount, 'partitions are added behind those that there are')
    this.#claim(topic.id, range)
    this.#replace(withRange(topic, range))
    this.#partitionCount += range.partitionCount
  }

  /** The handles of a range belong to that topic, for ever. */
  #claim(id: TopicId, range: HandleRange): void {
    const place = rangePlace(this.#ranges, range.firstHandle)
    const behind = this.#ranges[place]
    assert(behind === undefined || endOf(range) <= behind.firstHandle, 'handles of topics do not overlap')
    assert(endOf(range) <= this.#nextHandle, 'the next handle is above every one allotted')
    const before = this.#ranges[place - 1]
    if (before?.id === id && follows(before, range)) this.#ranges[place - 1] = { ...joined(before, range), id }
    else this.#ranges.splice(place, 0, { ...range, id })
  }

  #replace(topic: Topic): void {
    this.#byName.set(topic.name, topic)
    this.#byId.set(topic.id, topic)
    this.#topics[placeIn(this.#topics, topic.firstHandle, hasLowerHandle)] = topic
  }

  /** Its ranges stay. */
  #bury({ id, name, firstHandle, partitionCount, added }: Topic): void {
    this.#byName.delete(name)
    this.#byId.delete(id)
    this.#topics.splice(placeIn(this.#topics, firstHandle, hasLowerHandle), 1)
    this.#names.splice(placeIn(this.#names, name, isLowerName), 1)
    this.#partitionCount -= partitionCount
    this.#tombstones.set(id, { id, name, firstHandle, partitionCount, ...(added !== undefined && { added }) })
  }
}

function hasLowerHandle(topic: Topic, firstHandle: number): boolean {
  return topic.firstHandle < firstHandle
}

function isLowerName(name: string, wanted: string): boolean {
  return name < wanted
}
