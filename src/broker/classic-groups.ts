/**
 * The use cases of Kafka's classic consumer groups. Main thread. Who owns a group, its offsets and their place in the store
 * are the same as for groups whose members speak HTTP; a group that has members has one kind.
 *
 * Invariants: a join or sync is answered once, also if its connection ends; a commit is answered when it is on disk.
 */
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/logger.ts'
import type { Catalog } from '../control/catalog.ts'
import { refusedJoin, refusedSync } from '../control/groups/classic/answers.ts'
import type { ClassicTable } from '../control/groups/classic/classic-table.ts'
import type { Coordinator } from '../control/groups/coordinator.ts'
import { checkMetadataSize, type Group, type GroupTable } from '../control/groups/group-table.ts'
import { isGroupName } from '../control/topic-rules.ts'
import { authorise } from '../model/access.ts'
import {
  PLACES_AT_ONCE,
  type ClassicCommit,
  type ClassicDescription,
  type ClassicFault,
  type ClassicGroupUseCases,
  type ClassicJoin,
  type ClassicJoinAnswer,
  type ClassicLeaver,
  type ClassicListing,
  type ClassicMemberIdentity,
  type ClassicOffset,
  type ClassicSync,
  type ClassicSyncAnswer,
  type OnGone,
  type PlaceOutcome
} from '../model/classic-groups.ts'
import { BrokerError } from '../model/errors.ts'
import type { TopicPartition } from '../model/groups.ts'
import { toTopicId } from '../model/ids.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import type { Topic } from '../model/topic.ts'
import type { Store } from '../store/store.ts'
import { describeClassic, listClassic } from './classic-descriptions.ts'
import { deleteOffsets } from './classic-offset-deletion.ts'
import { Deadlines } from './deadlines.ts'
import type { GroupFlush } from './group-flush.ts'
import { CONSUMER, subscribedTopics } from './group-members.ts'
import type { GroupOwnership } from './group-ownership.ts'
import { inParts } from './places-in-parts.ts'
import { checkPartition } from './topic-commands.ts'

export interface ClassicParts {
  readonly table: GroupTable
  readonly ownership: GroupOwnership
  readonly coordinator: Coordinator
  readonly classic: ClassicTable
  readonly catalog: Catalog
  readonly flush: GroupFlush
  readonly store: Store
  readonly clock: Clock
  readonly logger: Logger
}

/** Groups looked through for silent members before the event loop gets its turn. */
const EXPIRED_AT_ONCE = 100

export class ClassicGroups implements ClassicGroupUseCases {
  readonly #parts: ClassicParts
  readonly #deadlines: Deadlines
  /** The sweep under way. */
  #expiring: Promise<void> | null = null

  constructor(parts: ClassicParts) {
    this.#parts = parts
    this.#deadlines = new Deadlines(parts.clock, number => this.#expireOne(number))
    parts.classic.onChanged = (number, deadlineMs) => this.#deadlines.set(number, deadlineMs)
  }

  async join(who: Principal, name: string, request: ClassicJoin, onGone: OnGone): Promise<ClassicJoinAnswer> {
    const { ownership, classic } = this.#parts
    authorise(who, 'use group')
    const { memberId } = request
    const fault = faultOfName(name) ?? classic.faultOfJoin(request)
    if (fault !== null) return refusedJoin(fault, memberId)
    refuseUnreadable(who, request)
    // Nobody has an id of a group that is not there: none is made for that.
    if (ownership.ownGroup(who, name) === undefined && memberId !== '')
      return refusedJoin('UNKNOWN_MEMBER_ID', memberId)
    const connection = new Connection(onGone)
    const rebalanceTimeoutMs = Math.max(request.rebalanceTimeoutMs, limits.classicSessionMsMin)
    // In an object: the group is not busy while a member waits.
    const { answer } = await ownership.claim(who, name, 0, group => {
      return { answer: this.#join(group, { ...request, rebalanceTimeoutMs }, connection) }
    })
    return answer
  }

  sync(who: Principal, name: string, request: ClassicSync, onGone: OnGone): Promise<ClassicSyncAnswer> {
    const { classic, clock } = this.#parts
    const group = this.#ownGroup(who, name)
    if (group === undefined) return Promise.resolve(refusedSync('UNKNOWN_MEMBER_ID'))
    return new Promise(resolve => {
      classic.sync(group.number, request, clock.monotonicMs(), resolve)
      onGone(() => {
        classic.abandon(group.number, resolve, clock.monotonicMs())
        resolve(refusedSync('COORDINATOR_NOT_AVAILABLE'))
      })
    })
  }

  heartbeat(who: Principal, name: string, member: ClassicMemberIdentity): ClassicFault | null {
    const { classic, clock } = this.#parts
    const group = this.#ownGroup(who, name)
    return group === undefined ? 'UNKNOWN_MEMBER_ID' : classic.heartbeat(group.number, member, clock.monotonicMs())
  }

  leave(who: Principal, name: string, leavers: readonly ClassicLeaver[]): (ClassicFault | null)[] {
    const { classic, clock } = this.#parts
    const group = this.#ownGroup(who, name)
    if (group === undefined) return leavers.map(() => 'UNKNOWN_MEMBER_ID')
    return classic.leave(group.number, leavers, clock.monotonicMs())
  }

  async commit(
    who: Principal,
    name: string,
    member: ClassicMemberIdentity,
    places: readonly ClassicCommit[]
  ): Promise<PlaceOutcome[]> {
    const { ownership, flush } = this.#parts
    const group = this.#ownGroup(who, name)
    const isMember = member.generation >= 0 || member.memberId !== '' || member.instanceId !== null
    const fault = faultOfName(name) ?? (group === undefined && isMember ? 'ILLEGAL_GENERATION' : null)
    if (fault !== null) return places.map(() => fault)
    const find = (place: ClassicCommit): Topic | BrokerError => this.#topicOf(who, name, place)
    // Few are noted at once: a member that leaves right behind its commit has committed.
    const topics = places.length > PLACES_AT_ONCE ? await inParts(places, find) : places.map(find)
    const accepted = topics.filter(topic => !(topic instanceof BrokerError)).length
    // No group is made for nothing.
    if (accepted === 0) return topics.map(refusalOf)
    const outcomes = await ownership.claim(who, name, accepted, claimed => this.#note(claimed, member, places, topics))
    if (outcomes.includes(null)) await flush.stored()
    return outcomes
  }

  deleteOffsets(who: Principal, name: string, places: readonly TopicPartition[]): Promise<PlaceOutcome[]> {
    return deleteOffsets(this.#parts, who, name, places)
  }

  offsets(who: Principal, name: string): ClassicOffset[] {
    const group = this.#ownGroup(who, name)
    const found: ClassicOffset[] = []
    for (const [topicId, offsets] of group?.topics ?? []) {
      const topic = this.#parts.catalog.topicOfId(toTopicId(topicId))?.name
      if (topic === undefined || !who.mayRead(topic)) continue
      for (const [partition, offset] of offsets.entries())
        found.push({ topic, partition, offset, note: offsets.noteOf(partition) })
    }
    return found
  }

  list(who: Principal): ClassicListing[] {
    authorise(who, 'use group')
    return this.#parts.ownership.groupsOf(who).map(group => listClassic(this.#parts, group))
  }

  describe(who: Principal, name: string): ClassicDescription | null {
    const group = this.#ownGroup(who, name)
    return group === undefined ? null : describeClassic(this.#parts, group)
  }

  /** Removes the members that were silent for their session timeout; their groups rebalance. One sweep at a time. */
  expireSilent(): Promise<void> {
    this.#expiring ??= this.#expireAll().finally(() => (this.#expiring = null))
    return this.#expiring
  }

  /** No group is looked at any more. */
  stop(): void {
    this.#deadlines.stop()
  }

  #join(group: Group, request: ClassicJoin, connection: Connection): Promise<ClassicJoinAnswer> {
    const { classic, coordinator, clock } = this.#parts
    if ((coordinator.membershipOf(group)?.memberCount ?? 0) > 0) {
      throw new BrokerError('GROUP_KIND', { group: group.name, kind: 'http', wanted: 'kafka' })
    }
    const refused = refusedJoin('COORDINATOR_NOT_AVAILABLE', request.memberId)
    if (connection.isGone) return Promise.resolve(refused)
    return new Promise(resolve => {
      classic.join(group.number, request, clock.monotonicMs(), resolve)
      connection.onGone = () => {
        classic.abandon(group.number, resolve, clock.monotonicMs())
        resolve(refused)
      }
    })
  }

  /** Notes what may be noted. @returns what became of each place. */
  #note(
    group: Group,
    member: ClassicMemberIdentity,
    places: readonly ClassicCommit[],
    topics: readonly (Topic | BrokerError)[]
  ): PlaceOutcome[] {
    const { classic, coordinator, clock } = this.#parts
    const hasOthers = (coordinator.membershipOf(group)?.memberCount ?? 0) > 0
    const fault = hasOthers ? 'UNKNOWN_MEMBER_ID' : classic.checkCommit(group.number, member, clock.monotonicMs())
    return places.map((place, index) => {
      const topic = topics[index]
      if (topic instanceof BrokerError || topic === undefined || fault !== null) return refusalOf(topic) ?? fault
      return this.#noteOne(group, topic, place)
    })
  }

  #noteOne(group: Group, topic: Topic, { partition, offset, note }: ClassicCommit): BrokerError | null {
    const { table, catalog } = this.#parts
    // Deleted while its group was made: nothing may be noted of it any more.
    if (catalog.topicOfId(topic.id) === undefined) return new BrokerError('TOPIC_NOT_FOUND', { topic: topic.name })
    return refusalBy(() => table.commit(group, topic.id, partition, offset, note))
  }

  /** The topic of a place that the caller may commit. */
  #topicOf(who: Principal, group: string, place: ClassicCommit): Topic | BrokerError {
    const { topic: name, partition, offset, note } = place
    if (!who.mayRead(name)) return new BrokerError('FORBIDDEN', { operation: 'use group', need: 'read', on: name })
    const topic = this.#parts.catalog.topicNamed(name)
    if (topic === undefined) return new BrokerError('TOPIC_NOT_FOUND', { topic: name })
    const refusal = refusalBy(() => {
      checkPartition(topic, partition)
      checkMetadataSize(group, note.metadata)
    })
    if (refusal !== null) return refusal
    if (offset >= 0) return topic
    return new BrokerError('FIELD_RANGE', { field: 'offset', value: offset, min: 0, max: Number.MAX_SAFE_INTEGER })
  }

  #ownGroup(who: Principal, name: string): Group | undefined {
    authorise(who, 'use group')
    return this.#parts.ownership.ownGroup(who, name)
  }

  #expireOne(number: number): void {
    const { classic, clock } = this.#parts
    this.#tell(number, classic.expire(number, clock.monotonicMs()))
  }

  async #expireAll(): Promise<void> {
    const { classic, clock } = this.#parts
    let looked = 0
    for (const { group, count } of classic.expireAll(clock.monotonicMs())) {
      this.#tell(group, count)
      if (++looked % EXPIRED_AT_ONCE === 0) await new Promise(resolve => setImmediate(resolve))
    }
  }

  #tell(number: number, count: number): void {
    if (count === 0) return
    const group = this.#parts.table.groupWithNumber(number)?.name
    this.#parts.logger.info({ group, count }, 'members that were silent or late were removed from their group')
  }
}

/** The end of a connection, which may come before anything waits for it. */
class Connection {
  isGone = false
  onGone: (() => void) | null = null

  constructor(onGone: OnGone) {
    onGone(() => {
      this.isGone = true
      this.onGone?.()
    })
  }
}

function faultOfName(name: string): ClassicFault | null {
  return isGroupName(name) ? null : 'INVALID_GROUP_ID'
}

/** A consumer may subscribe to what its key may read, as over HTTP. What others say is theirs alone. @throws FORBIDDEN */
function refuseUnreadable(who: Principal, { protocolType, protocols }: ClassicJoin): void {
  if (who.isAdmin || protocolType !== CONSUMER) return
  const topic = protocols.flatMap(({ metadata }) => subscribedTopics(metadata)).find(name => !who.mayRead(name))
  if (topic === undefined) return
  throw new BrokerError('FORBIDDEN', { operation: 'use group', need: 'read', on: topic })
}

function refusalOf(topic: Topic | BrokerError | undefined): BrokerError | null {
  return topic instanceof BrokerError ? topic : null
}

/** What a check refuses with, as a value: each place has its own outcome. */
function refusalBy(check: () => void): BrokerError | null {
  try {
    check()
    return null
  } catch (error) {
    if (error instanceof BrokerError) return error
    throw error
  }
}
