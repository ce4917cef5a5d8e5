/**
 * The use cases of consumer groups, in the order authorise → form → topic → owner → limits → do. Main thread.
 * Looking makes no group. What they share with the groups of Kafka's clients: group-ownership.ts.
 */
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import type { Coordinator } from '../control/groups/coordinator.ts'
import type { ClassicTable } from '../control/groups/classic/classic-table.ts'
import type { Group, GroupTable } from '../control/groups/group-table.ts'
import type { TopicOffsets } from '../control/groups/topic-offsets.ts'
import { echo } from '../control/echo.ts'
import { checkGroupName, checkMemberId } from '../control/topic-rules.ts'
import { authorise } from '../model/access.ts'
import { BrokerError } from '../model/errors.ts'
import type {
  CommittingMember,
  GroupDescription,
  GroupOffset,
  GroupUseCases,
  HeartbeatAnswer,
  JoinAnswer,
  JoinRequest,
  MemberStream,
  OffsetsByTopic,
  MetadataByTopic,
  ResetRequest,
  TopicPartition
} from '../model/groups.ts'
import { toTopicId } from '../model/ids.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import type { Topic } from '../model/topic.ts'
import type { Store } from '../store/store.ts'
import type { Engine } from './engine.ts'
import { LagReader } from './group-lag.ts'
import type { GroupOwnership } from './group-ownership.ts'
import { describeMembers } from './group-members.ts'
import { MemberStreams } from './member-streams.ts'
import { checkPartition, storedTimeOf } from './topic-commands.ts'

export interface GroupParts {
  readonly table: GroupTable
  readonly ownership: GroupOwnership
  readonly coordinator: Coordinator
  /** Members that speak Kafka. */
  readonly classic: ClassicTable
  readonly catalog: Catalog
  readonly store: Store
  readonly engine: Engine
  readonly clock: Clock
  /** `m_` and what nobody can guess. */
  readonly newMemberId: () => string
  readonly logger: Logger
}

/** Groups described before the event loop gets its turn. */
const DESCRIBED_AT_ONCE = 200
/** Groups looked through for silent members before it does: some milliseconds if all of them rebalance. */
const EVICTED_AT_ONCE = 100
/** The same of groups that may read a topic which has grown. */
const GROWN_AT_ONCE = 100

export class Groups implements GroupUseCases {
  readonly #parts: GroupParts
  readonly #streams = new MemberStreams()
  /** The sweep under way. */
  #evicting: Promise<void> | null = null

  constructor(parts: GroupParts) {
    this.#parts = parts
    parts.coordinator.onRebalanced = number => {
      const group = parts.table.groupWithNumber(number)
      if (group !== undefined) this.#streams.rebalanced(group.name)
    }
  }

  async commit(
    who: Principal,
    name: string,
    place: TopicPartition,
    offset: GroupOffset,
    member: CommittingMember | null = null
  ): Promise<void> {
    const { ownership, table } = this.#parts
    const topic = this.#readableTopic(who, place.topic)
    checkPartition(topic, place.partition)
    checkGroupName(name)
    const note = (group: Group): void => {
      this.#refuseGone(topic)
      table.commit(group, topic.id, place.partition, offset)
    }
    if (member === null) return ownership.claim(who, name, 1, note)
    return ownership.useKnown(who, name, group => note(this.#groupOfMember(who, name, group, member)))
  }

  offsets(who: Principal, name: string): OffsetsByTopic {
    authorise(who, 'use group')
    const group = this.#parts.ownership.ownGroup(who, name)
    return group === undefined ? new Map() : this.#offsetsOf(who, group)
  }

  metadata(who: Principal, name: string): MetadataByTopic {
    authorise(who, 'use group')
    const group = this.#parts.ownership.ownGroup(who, name)
    const noted =
      group === undefined ? [] : this.#readableOf(who, group).filter(([, { metadataBytes }]) => metadataBytes > 0)
    return new Map(noted.map(([topic, offsets]) => [topic, new Map([...offsets.metadata()].sort(([a], [b]) => a - b))]))
  }

  positionOf(who: Principal, name: string, { topic: topicName, partition }: TopicPartition): GroupOffset | null {
    requireRead(who, topicName)
    const group = this.#parts.ownership.ownGroup(who, name)
    const { table, catalog } = this.#parts
    const topic = catalog.topicNamed(topicName)
    return (group && topic && table.offsetOf(group, topic.id, partition)) ?? null
  }

  async join(who: Principal, name: string, request: JoinRequest): Promise<JoinAnswer> {
    const { table, coordinator, clock, newMemberId } = this.#parts
    const topics = [...new Set(request.topics)]
    for (const topic of topics) requireRead(who, topic)
    checkGroupName(name)
    const isNamed = request.memberId !== null && request.memberId !== ''
    const memberId = isNamed ? (request.memberId ?? '') : newMemberId()
    checkMemberId(memberId)
    checkTopicCount(topics.length)
    for (const topic of topics) this.#topicNamed(topic)
    // A group that is there is asked when it is used; one that would be new must not be made in vain.
    if (table.withName(name) === undefined) coordinator.check(null, who, { memberId, kind: 'http', topics })
    return this.#parts.ownership.claim(who, name, 0, group => {
      const nowMs = clock.monotonicMs()
      if (this.#parts.classic.memberCountOf(group.number) > 0) {
        throw new BrokerError('GROUP_KIND', { group: name, kind: 'kafka', wanted: 'http' })
      }
      const { member, generation } = coordinator.join(group, who, { memberId, kind: 'http', topics, nowMs })
      return { memberId, generation, assignment: member.assignment }
    })
  }

  heartbeat(who: Principal, name: string, memberId: string, generation: GroupOffset): HeartbeatAnswer {
    const { coordinator, clock } = this.#parts
    const group = this.#usableGroup(who, name)
    if (group === undefined) return { status: 'unknown_member', generation: 0 }
    return coordinator.heartbeat(group, who, { id: memberId, generation, nowMs: clock.monotonicMs() })
  }

  leave(who: Principal, name: string, memberId: string): void {
    const group = this.#usableGroup(who, name)
    if (group !== undefined) this.#parts.coordinator.leave(group, who, memberId)
  }

  assignment(who: Principal, name: string, memberId: string): Omit<JoinAnswer, 'memberId'> {
    const group = this.#usableGroup(who, name)
    if (group === undefined) throw new BrokerError('GROUP_NOT_FOUND', { group: echo(name) })
    const { member, generation } = this.#parts.coordinator.memberOf(group, who, memberId)
    return { generation, assignment: member.assignment }
  }

  attach(name: string, memberId: string, stream: MemberStream): () => void {
    return this.#streams.attach(name, memberId, stream)
  }

  async list(who: Principal): Promise<GroupDescription[]> {
    authorise(who, 'use group')
    const groups = this.#parts.ownership.groupsOf(who)
    const lags = new LagReader(this.#parts)
    const described: GroupDescription[] = []
    for (const group of groups) {
      described.push(await this.#describe(who, group, lags))
      if (described.length % DESCRIBED_AT_ONCE === 0) await new Promise(resolve => setImmediate(resolve))
    }
    return described
  }

  async describe(who: Principal, name: string): Promise<GroupDescription> {
    authorise(who, 'use group')
    return this.#describe(who, this.#parts.ownership.existingGroup(who, name), new LagReader(this.#parts))
  }

  async remove(who: Principal, name: string): Promise<void> {
    const { table, coordinator, classic, ownership, store } = this.#parts
    authorise(who, 'use group')
    for (let change = ownership.changeOf(name); change !== undefined; change = ownership.changeOf(name)) await change
    const group = this.#parts.ownership.existingGroup(who, name)
    const count = (coordinator.membershipOf(group)?.memberCount ?? 0) + classic.memberCountOf(group.number)
    if (count > 0) throw new BrokerError('GROUP_NOT_EMPTY', { group: name, count })
    const topics = [...group.topics.keys()]
    // Out of the table first: no flush may write offsets behind the removal.
    table.remove(group)
    const removing = store.commit([{ kind: 'group-removed', number: group.number, topics }]).then(
      () => {
        coordinator.forget(group)
        classic.forget(group.number)
      },
      (error: unknown) => {
        table.restore(group, id => this.#parts.catalog.topicOfId(toTopicId(id)) !== undefined)
        throw error
      }
    )
    await ownership.whileBusy(name, removing)
  }

  async reset(
    who: Principal,
    name: string,
    { topic: topicName, partition, to }: ResetRequest
  ): Promise<OffsetsByTopic> {
    const { table, engine } = this.#parts
    const topic = this.#readableTopic(who, topicName)
    checkPartition(topic, partition)
    checkGroupName(name)
    this.#parts.ownership.ownGroup(who, name)
    const timestampMs = typeof to === 'string' ? null : storedTimeOf(to.timestampMs)
    const places = await engine.offsetsAt(topic, partition, timestampMs)
    return this.#parts.ownership.claim(who, name, places.length, group => {
      this.#refuseGone(topic)
      table.checkRoom(group, places.filter(place => table.offsetOf(group, topic.id, place.partition) === null).length)
      for (const { partition: id, earliest, latest, found } of places) {
        table.commit(group, topic.id, id, to === 'earliest' ? earliest : (found?.offset ?? latest))
      }
      return this.#offsetsOf(who, group)
    })
  }

  async resetTopic(who: Principal, name: string): Promise<{ groups: number; entries: number }> {
    const { table, engine } = this.#parts
    authorise(who, 'reset offsets')
    const topic = this.#topicNamed(name)
    const places = await engine.offsetsAt(topic, null, null)
    let groups = 0
    let entries = 0
    for (const offsets of table.offsetsOfTopic(topic.id)) {
      // Others get their turn between two groups; what is gone by then is not reset.
      if (groups > 0) await new Promise(resolve => setImmediate(resolve))
      const group = table.groupWithNumber(offsets.group)
      if (group?.topics.get(topic.id) !== offsets) continue
      groups++
      for (const [partition] of [...offsets.entries()]) {
        table.commit(group, topic.id, partition, places[partition]?.earliest ?? 0)
        entries++
      }
    }
    return { groups, entries }
  }

  /** Removes the members that were not heard of for so long; their groups rebalance. One sweep at a time. */
  evictSilent(timeoutMs: number): Promise<void> {
    this.#evicting ??= this.#evict(timeoutMs).finally(() => (this.#evicting = null))
    return this.#evicting
  }

  async #evict(timeoutMs: number): Promise<void> {
    const { coordinator, table, clock, logger } = this.#parts
    for (const { group: name, memberId } of this.#streams.taking()) {
      const group = table.withName(name)
      if (group !== undefined) coordinator.see(group, memberId, clock.monotonicMs())
    }
    let looked = 0
    for (const { group: number, count } of coordinator.evict(clock.monotonicMs() - timeoutMs)) {
      if (count > 0) {
        const group = table.groupWithNumber(number)?.name
        logger.info({ group, count, timeoutMs }, 'silent members were removed from their group')
      }
      if (++looked % EVICTED_AT_ONCE === 0) await new Promise(resolve => setImmediate(resolve))
    }
  }

  /** The topic has more partitions: members hear of them with their next heartbeat. Resolves when all groups were looked at. */
  async partitionsAdded({ name }: Topic): Promise<void> {
    for (const looked of this.#parts.coordinator.grow(name))
      if (looked % GROWN_AT_ONCE === 0) await new Promise(resolve => setImmediate(resolve))
  }

  /** The topic is deleted: what was committed on it is forgotten (spec D10). Its rows go with the topic's. */
  forgetTopic(topic: Topic): void {
    this.#parts.table.forgetTopic(topic.id)
  }

  async #describe(who: Principal, group: Group, lags: LagReader): Promise<GroupDescription> {
    const readable = this.#readableOf(who, group).map(([, offsets]) => offsets)
    const { name, owner } = group
    const { records: lagRecords, seconds: lagSeconds } = await lags.lagOf(readable)
    return { group: name, owner, ...describeMembers(this.#parts, group), lagRecords, lagSeconds }
  }

  #offsetsOf(who: Principal, group: Group): OffsetsByTopic {
    return new Map(this.#readableOf(who, group).map(([topic, offsets]) => [topic, new Map(offsets.entries())]))
  }

  /** What it has committed on topics that the caller may read, by their names. */
  #readableOf(who: Principal, group: Group): [topic: string, offsets: TopicOffsets][] {
    const readable: [string, TopicOffsets][] = []
    for (const [topicId, offsets] of group.topics) {
      const topic = this.#parts.catalog.topicOfId(toTopicId(topicId))
      if (topic !== undefined && who.mayRead(topic.name)) readable.push([topic.name, offsets])
    }
    return readable.sort(([a], [b]) => (a < b ? -1 : 1))
  }

  /** @throws BrokerError MEMBER_NOT_FOUND, MEMBER_OWNED, GENERATION_STALE */
  #groupOfMember(who: Principal, name: string, group: Group | undefined, member: CommittingMember): Group {
    const { memberId } = member
    if (group === undefined) throw new BrokerError('MEMBER_NOT_FOUND', { group: name, member: echo(memberId) })
    this.#parts.coordinator.checkCurrent(group, who, member)
    return group
  }

  /** For what members do: that takes read on every topic that one of them subscribes to. @throws GROUP_OWNED, FORBIDDEN */
  #usableGroup(who: Principal, name: string): Group | undefined {
    authorise(who, 'use group')
    const group = this.#parts.ownership.ownGroup(who, name)
    if (group === undefined || who.isAdmin) return group
    for (const topic of this.#parts.coordinator.membershipOf(group)?.topics() ?? []) requireRead(who, topic)
    return group
  }

  /** @throws BrokerError FORBIDDEN, TOPIC_NOT_FOUND */
  #readableTopic(who: Principal, name: string): Topic {
    requireRead(who, name)
    return this.#topicNamed(name)
  }

  #topicNamed(name: string): Topic {
    const topic = this.#parts.catalog.topicNamed(name)
    if (topic === undefined) throw new BrokerError('TOPIC_NOT_FOUND', { topic: name })
    return topic
  }

  /** Deleted while its group was made: nothing may be noted of it any more. */
  #refuseGone({ id, name }: Topic): void {
    if (this.#parts.catalog.topicOfId(id) === undefined) throw new BrokerError('TOPIC_NOT_FOUND', { topic: name })
  }
}

/** @throws BrokerError KEY_REVOKED, FORBIDDEN */
function requireRead(who: Principal, topic: string): void {
  authorise(who, 'use group')
  if (!who.mayRead(topic)) throw new BrokerError('FORBIDDEN', { operation: 'use group', need: 'read', on: topic })
}

function checkTopicCount(count: number): void {
  const { memberTopicsMax: max } = limits
  if (count >= 1 && count <= max) return
  throw new BrokerError('FIELD_RANGE', { field: 'topics', value: `a list of ${count}`, min: 1, max: `${max} names` })
}
