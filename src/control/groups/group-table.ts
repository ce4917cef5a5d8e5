/**
 * The groups of this broker, in memory: their owners, and what they committed. Main thread only; calls nobody.
 *
 * Invariants: names and numbers are unique; numbers only rise while the process runs. What is committed is visible at once
 * and reaches the store by takeChanged(), or comes back by giveBack(). A topic's offsets go with the topic: its id never
 * comes again.
 */
import { assert } from '../../base/assert.ts'
import { BrokerError } from '../../model/errors.ts'
import { noNote, type GroupOffset, type OffsetNote } from '../../model/groups.ts'
import { toTopicId } from '../../model/ids.ts'
import { limits } from '../../model/limits.ts'
import type { CommittedEntry } from '../../model/metrics.ts'
import type { GroupOffsetRows, GroupRow, StoreImage } from '../store-image.ts'
import { checkGroupName } from '../topic-rules.ts'
import { metadataCost, TopicOffsets } from './topic-offsets.ts'

export interface Group extends GroupRow {
  /** By topic id. Changed by the table alone. */
  readonly topics: ReadonlyMap<number, TopicOffsets>
  /** Entries over all topics. */
  readonly offsetCount: number
  /** What the metadata beside them takes of the memory for it. */
  readonly metadataBytes: number
}

/** What was committed of a partition. */
export interface CommittedOffset {
  readonly offset: GroupOffset
  readonly note: OffsetNote
}

interface OffsetEntry extends CommittedOffset {
  readonly partition: number
}

interface KnownGroup extends Group {
  readonly topics: Map<number, TopicOffsets>
  offsetCount: number
  metadataBytes: number
}

export class GroupTable {
  readonly #byName = new Map<string, KnownGroup>()
  readonly #byNumber = new Map<number, KnownGroup>()
  readonly #byTopic = new Map<number, Set<TopicOffsets>>()
  /** Those with changed entries, in the order in which they changed first. */
  readonly #changed = new Set<TopicOffsets>()
  #nextNumber = 1
  #offsetCount = 0
  #metadataBytes = 0

  constructor(image: Pick<StoreImage, 'groups' | 'groupOffsets'>) {
    for (const row of image.groups) {
      this.#insert(newGroup(row))
      this.#nextNumber = Math.max(this.#nextNumber, row.number + 1)
    }
    const { groups, topics, partitions, offsets, leaderEpochs, metadata } = image.groupOffsets
    for (let i = 0; i < groups.length; i++) {
      const group = this.#byNumber.get(groups[i] ?? 0)
      assert(group !== undefined, 'stored offsets belong to a stored group')
      const note = { leaderEpoch: leaderEpochs[i] ?? -1, metadata: metadata.get(i) ?? '' }
      this.#set(group, topics[i] ?? 0, { partition: partitions[i] ?? 0, offset: offsets[i] ?? 0n, note }, true)
    }
  }

  get groupCount(): number {
    return this.#byName.size
  }

  /** Committed offsets of all groups. */
  get offsetCount(): number {
    return this.#offsetCount
  }

  /** Whether the store lacks something. */
  get isChanged(): boolean {
    return this.#changed.size > 0
  }

  withName(name: string): Group | undefined {
    return this.#byName.get(name)
  }

  groups(): Iterable<Group> {
    return this.#byName.values()
  }

  /** A new group, whose row is to be committed. @throws BrokerError NAME_INVALID, GROUPS_TOO_MANY */
  add(name: string, owner: string): Group {
    checkGroupName(name)
    if (this.#byName.size >= limits.groupsMax) {
      throw new BrokerError('GROUPS_TOO_MANY', { group: name, limit: limits.groupsMax })
    }
    const group = newGroup({ number: this.#nextNumber++, name, owner })
    this.#insert(group)
    return group
  }

  /** Forgets a group and all of its offsets. The object keeps them, for restore(). */
  remove(group: Group): void {
    const known = this.#known(group)
    this.#byName.delete(known.name)
    this.#byNumber.delete(known.number)
    for (const offsets of known.topics.values()) this.#unlink(offsets)
  }

  /** What was removed is there again: the store refused. Nothing else has its name. Offsets of topics that are gone by now stay so. */
  restore(group: Group, isLive: (topicId: number) => boolean): void {
    const restored = newGroup(group)
    this.#insert(restored)
    for (const [topicId, offsets] of group.topics) {
      if (!isLive(topicId)) continue
      for (const [partition, offset] of offsets.entries())
        this.#set(restored, topicId, { partition, offset, note: offsets.noteOf(partition) }, false)
    }
  }

  offsetOf(group: Group, topicId: number, partition: number): GroupOffset | null {
    return group.topics.get(topicId)?.offsetOf(partition) ?? null
  }

  /**
   * @param note takes the place of what was noted beside the offset before.
   * @throws BrokerError GROUP_OFFSETS_TOO_MANY of an entry that would be new, OFFSET_METADATA_TOO_LARGE
   */
  commit(group: Group, topicId: number, partition: number, offset: GroupOffset, note: OffsetNote = noNote): void {
    const known = this.#known(group)
    const isNew = this.offsetOf(known, topicId, partition) === null
    if (isNew) this.checkRoom(known, 1)
    if (note.metadata !== '') {
      const before = known.topics.get(topicId)?.noteOf(partition).metadata ?? ''
      this.#checkMetadata(known, note.metadata, before)
    }
    this.#set(known, topicId, { partition, offset, note }, false)
  }

  /** Forgets one offset. @returns what it was; null: there was none. */
  removeOffset(group: Group, topicId: number, partition: number): CommittedOffset | null {
    const known = this.#known(group)
    const offsets = known.topics.get(topicId)
    const offset = offsets?.offsetOf(partition) ?? null
    if (offsets === undefined || offset === null) return null
    const note = offsets.noteOf(partition)
    offsets.remove(partition)
    known.offsetCount--
    this.#offsetCount--
    this.#count(known, -metadataCost(note.metadata))
    if (offsets.changedCount === 0) this.#changed.delete(offsets)
    if (offsets.count === 0) this.#forget(known, topicId)
    return { offset, note }
  }

  /** What groups have of a topic, for the caller to look through before anything else happens. */
  offsetsOfTopic(topicId: number): TopicOffsets[] {
    return [...(this.#byTopic.get(topicId) ?? [])]
  }

  /** Topics that some group has an offset of. A copy. */
  topicIds(): number[] {
    return [...this.#byTopic.keys()]
  }

  groupWithNumber(number: number): Group | undefined {
    return this.#byNumber.get(number)
  }

  /** The topic is deleted: its offsets are too, here; in the store they go with its row. */
  forgetTopic(topicId: number): void {
    for (const { group } of this.offsetsOfTopic(topicId)) {
      const known = this.#byNumber.get(group)
      if (known !== undefined) this.#forget(known, topicId)
    }
  }

  /**
   * Takes up to so many entries that the store does not have; they count as stored.
   * @returns null if there are none.
   */
  takeChanged(countMax: number): GroupOffsetRows | null {
    const picked: TopicOffsets[] = []
    let count = 0
    for (const offsets of this.#changed) {
      if (count >= countMax) break
      picked.push(offsets)
      count += offsets.changedCount
    }
    if (count === 0) return null
    const rows = newRows(Math.min(count, countMax))
    const metadata = new Map<number, string>()
    let at = 0
    for (const offsets of picked) {
      offsets.takeChanged(countMax - at, (partition, offset, leaderEpoch, text) => {
        if (text !== '') metadata.set(at, text)
        rows.leaderEpochs[at] = leaderEpoch
        rows.groups[at] = offsets.group
        rows.topics[at] = offsets.topicId
        rows.partitions[at] = partition
        rows.offsets[at++] = BigInt(offset)
      })
      if (offsets.changedCount === 0) this.#changed.delete(offsets)
    }
    return { ...rows, metadata }
  }

  /** Could not be stored: to be taken again. What is gone by now stays so. */
  giveBack({ groups, topics, partitions }: GroupOffsetRows): void {
    for (let i = 0; i < groups.length; i++) {
      const offsets = this.#byNumber.get(groups[i] ?? 0)?.topics.get(topics[i] ?? 0)
      if (offsets === undefined) continue
      offsets.markChanged(partitions[i] ?? 0)
      this.#changed.add(offsets)
    }
  }

  /**
   * All of it, for metrics. @param owner of whose groups alone; null: of all. What changes while it is walked is in it as
   * it was or as it is, once; what is new may be missing.
   */
  *committedEntries(owner: string | null = null): Generator<CommittedEntry> {
    for (const { name: group, owner: ownerKeyId, topics } of this.#byName.values()) {
      if (owner !== null && owner !== ownerKeyId) continue
      for (const [topicId, offsets] of topics) {
        // Copied: a commit in between moves entries.
        for (const [partition, offset] of [...offsets.entries()])
          yield { group, ownerKeyId, topicId: toTopicId(topicId), partition, offset: BigInt(offset) }
      }
    }
  }

  /** Whether so many more entries may be. @throws BrokerError GROUP_OFFSETS_TOO_MANY */
  checkRoom({ name, offsetCount }: Pick<Group, 'name' | 'offsetCount'>, count: number): void {
    const { groupOffsetsMax, groupOffsetsTotalMax } = limits
    if (offsetCount + count > groupOffsetsMax) {
      throw new BrokerError('GROUP_OFFSETS_TOO_MANY', {
        group: name,
        limit: groupOffsetsMax,
        whose: 'a group may have'
      })
    }
    if (this.#offsetCount + count > groupOffsetsTotalMax) {
      const whose = 'all groups together may have'
      throw new BrokerError('GROUP_OFFSETS_TOO_MANY', { group: name, limit: groupOffsetsTotalMax, whose })
    }
  }

  /** @throws BrokerError OFFSET_METADATA_TOO_LARGE */
  #checkMetadata(group: Group, metadata: string, before: string): void {
    checkMetadataSize(group.name, metadata)
    const more = metadataCost(metadata) - metadataCost(before)
    if (more <= 0) return
    const { groupMetadataBytesMax, groupMetadataBytesTotalMax } = limits
    if (group.metadataBytes + more > groupMetadataBytesMax) {
      throw tooLarge(group.name, group.metadataBytes + more, 'a group may have', groupMetadataBytesMax)
    }
    if (this.#metadataBytes + more > groupMetadataBytesTotalMax) {
      throw tooLarge(group.name, this.#metadataBytes + more, 'all groups together may have', groupMetadataBytesTotalMax)
    }
  }

  #set(group: KnownGroup, topicId: number, { partition, offset, note }: OffsetEntry, isStored: boolean): void {
    let offsets = group.topics.get(topicId)
    if (offsets === undefined) {
      offsets = new TopicOffsets(group.number, topicId)
      group.topics.set(topicId, offsets)
      const others = this.#byTopic.get(topicId)
      if (others === undefined) this.#byTopic.set(topicId, new Set([offsets]))
      else others.add(offsets)
    }
    const { metadataBytes } = offsets
    if (offsets.set(partition, offset, note, isStored)) {
      group.offsetCount++
      this.#offsetCount++
    }
    this.#count(group, offsets.metadataBytes - metadataBytes)
    if (!isStored) this.#changed.add(offsets)
  }

  #count(group: KnownGroup, metadataBytes: number): void {
    group.metadataBytes += metadataBytes
    this.#metadataBytes += metadataBytes
  }

  #forget(group: KnownGroup, topicId: number): void {
    const offsets = group.topics.get(topicId)
    assert(offsets !== undefined, 'what is forgotten is there')
    group.topics.delete(topicId)
    group.offsetCount -= offsets.count
    group.metadataBytes -= offsets.metadataBytes
    this.#unlink(offsets)
  }

  #unlink(offsets: TopicOffsets): void {
    this.#offsetCount -= offsets.count
    this.#metadataBytes -= offsets.metadataBytes
    this.#changed.delete(offsets)
    const others = this.#byTopic.get(offsets.topicId)
    others?.delete(offsets)
    if (others?.size === 0) this.#byTopic.delete(offsets.topicId)
  }

  #insert(group: KnownGroup): void {
    assert(!this.#byName.has(group.name) && !this.#byNumber.has(group.number), 'names and numbers of groups are unique')
    this.#byName.set(group.name, group)
    this.#byNumber.set(group.number, group)
  }

  #known(group: Group): KnownGroup {
    const known = this.#byNumber.get(group.number)
    assert(known === group, 'a group that is used is in the table')
    return known
  }
}

/** One offset may have so much metadata, whatever the others have. @throws BrokerError OFFSET_METADATA_TOO_LARGE */
export function checkMetadataSize(group: string, metadata: string): void {
  const { offsetMetadataBytesMax: limit } = limits
  // No character takes more than three bytes of UTF-8: most need not be counted.
  if (metadata.length * 3 <= limit) return
  const bytes = Buffer.byteLength(metadata)
  if (bytes > limit) throw tooLarge(group, bytes, 'one offset may have', limit)
}

function tooLarge(group: string, bytes: number, whose: string, limit: number): BrokerError {
  return new BrokerError('OFFSET_METADATA_TOO_LARGE', { group, bytes, whose, limit })
}

function newGroup({ number, name, owner }: GroupRow): KnownGroup {
  return { number, name, owner, topics: new Map(), offsetCount: 0, metadataBytes: 0 }
}

/** Without metadata. */
function newRows(count: number): Omit<GroupOffsetRows, 'metadata'> {
  return {
    groups: new Uint32Array(count),
    topics: new Float64Array(count),
    partitions: new Uint32Array(count),
    offsets: new BigUint64Array(count),
    leaderEpochs: new Int32Array(count)
  }
}
