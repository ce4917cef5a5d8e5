/**
 * The classic groups of all members that speak Kafka, by number of the group, and limits over all of them. Main thread
 * only; has no clock. Who owns a group, and whether its members speak HTTP, is asked before.
 *
 * Invariant: the counts are the sums over the groups. A group without members is kept for its generation.
 */
import { assert } from '../../../base/assert.ts'
import type {
  ClassicFault,
  ClassicJoin,
  ClassicLeaver,
  ClassicMemberIdentity,
  ClassicSync
} from '../../../model/classic-groups.ts'
import { limits } from '../../../model/limits.ts'
import { refusedJoin, refusedSync } from './answers.ts'
import { ClassicGroup } from './classic-group.ts'
import { bytesOf, type OnJoined, type OnSynced } from './member.ts'

/** What it counts, for metrics. */
export interface ClassicCounts {
  readonly members: number
  /** Generations begun since the process started. */
  readonly rebalances: number
  /** Members removed because they were silent, or did not sync or join again in time. */
  readonly evictions: number
}

export class ClassicTable {
  readonly #groups = new Map<number, ClassicGroup>()
  /** Those in which time ends something: not empty, be it of a member that went while others were waited for, or with ids given out. */
  readonly #live = new Map<number, ClassicGroup>()
  readonly #newMemberId: (prefix: string) => string
  #members = 0
  #pending = 0
  #bytes = 0
  #rebalances = 0
  #evictions = 0
  /** Is told after each change when the phase of the group ends; null: it does not end. May only note it. */
  onChanged: ((group: number, deadlineMs: number | null) => void) | null = null

  /** @param newMemberId makes an id that begins so, and that nobody can guess. */
  constructor(newMemberId: (prefix: string) => string) {
    this.#newMemberId = newMemberId
  }

  get counts(): ClassicCounts {
    return { members: this.#members, rebalances: this.#rebalances, evictions: this.#evictions }
  }

  /** That all groups take together. */
  get bytes(): number {
    return this.#bytes
  }

  /** undefined: nobody joined it since the process started. */
  groupOf(number: number): ClassicGroup | undefined {
    return this.#groups.get(number)
  }

  memberCountOf(number: number): number {
    return this.#groups.get(number)?.memberCount ?? 0
  }

  /** Why a join is refused whatever the group is, or null. */
  faultOfJoin(join: ClassicJoin): ClassicFault | null {
    const { sessionTimeoutMs: timeoutMs, protocols } = join
    const { classicSessionMsMin, classicSessionMsMax, classicProtocolsMax, classicMemberBytesMax } = limits
    if (timeoutMs < classicSessionMsMin || timeoutMs > classicSessionMsMax) return 'INVALID_SESSION_TIMEOUT'
    if (protocols.length > classicProtocolsMax) return 'INCONSISTENT_GROUP_PROTOCOL'
    return bytesOf(join) > classicMemberBytesMax ? 'GROUP_MAX_SIZE_REACHED' : null
  }

  /** @param join that faultOfJoin() has nothing against. */
  join(number: number, join: ClassicJoin, nowMs: number, onJoined: OnJoined): void {
    const group = this.#groups.get(number) ?? new ClassicGroup(this.#newMemberId)
    const fault = this.#faultOfRoom(group, join)
    if (fault !== null) return onJoined(refusedJoin(fault, join.memberId))
    this.#groups.set(number, group)
    this.#changing(number, group, () => group.join(join, nowMs, onJoined))
  }

  sync(number: number, sync: ClassicSync, nowMs: number, onSynced: OnSynced): void {
    const group = this.#groups.get(number)
    if (group === undefined) return onSynced(refusedSync('UNKNOWN_MEMBER_ID'))
    const bytes = sync.assignments.reduce((sum, { assignment }) => sum + assignment.length, this.#bytes)
    if (bytes > limits.classicBytesTotalMax) return onSynced(refusedSync('COORDINATOR_NOT_AVAILABLE'))
    this.#changing(number, group, () => group.sync(sync, nowMs, onSynced))
  }

  heartbeat(number: number, identity: ClassicMemberIdentity, nowMs: number): ClassicFault | null {
    const group = this.#groups.get(number)
    return group === undefined ? 'UNKNOWN_MEMBER_ID' : group.heartbeat(identity, nowMs)
  }

  /** @returns what became of each. */
  leave(number: number, leavers: readonly ClassicLeaver[], nowMs: number): (ClassicFault | null)[] {
    const group = this.#groups.get(number)
    if (group === undefined) return leavers.map(() => 'UNKNOWN_MEMBER_ID')
    return this.#changing(number, group, () => group.leave(leavers, nowMs))
  }

  /** Whether offsets may be committed. */
  checkCommit(number: number, identity: ClassicMemberIdentity, nowMs: number): ClassicFault | null {
    const group = this.#groups.get(number)
    if (group !== undefined) return group.checkCommit(identity, nowMs)
    const { memberId, instanceId, generation } = identity
    return memberId === '' && instanceId === null && generation < 0 ? null : 'UNKNOWN_MEMBER_ID'
  }

  /** The connection of one that waits has ended. Nothing happens if it was answered. */
  abandon(number: number, waiting: OnJoined | OnSynced, nowMs: number): void {
    const group = this.#groups.get(number)
    if (group !== undefined) this.#changing(number, group, () => group.abandon(waiting, nowMs))
  }

  /** The deadline of a group may be over. Nothing happens if it is not. @returns how many members were removed. */
  expire(number: number, nowMs: number): number {
    const group = this.#live.get(number)
    if (group === undefined) return 0
    const count = this.#changing(number, group, () => group.expire(nowMs))
    this.#evictions += count
    return count
  }

  /** Looks at all groups, one at each step: others may have their turn between two. */
  *expireAll(nowMs: number): Generator<{ readonly group: number; readonly count: number }> {
    // Changed while it is walked: one that becomes empty is no longer in it.
    for (const number of this.#live.keys()) yield { group: number, count: this.expire(number, nowMs) }
  }

  /** Of a group that is removed. It must have no members. */
  forget(number: number): void {
    assert(this.memberCountOf(number) === 0, 'a group that is removed has no members')
    const group = this.#groups.get(number)
    if (group === undefined) return
    this.#pending -= group.pendingCount
    this.#groups.delete(number)
    this.#live.delete(number)
  }

  #faultOfRoom(group: ClassicGroup, join: ClassicJoin): ClassicFault | null {
    const bytes = bytesOf(join)
    if (group.bytes + bytes > limits.classicGroupBytesMax) return 'GROUP_MAX_SIZE_REACHED'
    if (this.#bytes + bytes > limits.classicBytesTotalMax) return 'COORDINATOR_NOT_AVAILABLE'
    if (group.isKnown(join)) return null
    if (group.memberCount + group.pendingCount >= limits.groupMembersMax) return 'GROUP_MAX_SIZE_REACHED'
    // There is room again when others have left: clients try again.
    return this.#members + this.#pending >= limits.membersTotalMax ? 'COORDINATOR_NOT_AVAILABLE' : null
  }

  /** Keeps the counts right over a change. */
  #changing<T>(number: number, group: ClassicGroup, change: () => T): T {
    const { generation, memberCount, pendingCount, bytes } = group
    const result = change()
    this.#rebalances += group.generation - generation
    this.#members += group.memberCount - memberCount
    this.#pending += group.pendingCount - pendingCount
    this.#bytes += group.bytes - bytes
    if (group.state !== 'Empty' || group.pendingCount > 0) this.#live.set(number, group)
    else this.#live.delete(number)
    this.onChanged?.(number, group.deadlineMs)
    return result
  }
}
