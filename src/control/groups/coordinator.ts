/**
 * Who is a member of which group: the rules of joining, and limits over all groups. Main thread only; has no clock, and
 * calls nobody but whoever wants to hear of new assignments. Who owns a group, and who may read what, is asked before.
 */
import { BrokerError } from '../../model/errors.ts'
import type { CommittingMember, GroupKind, HeartbeatStatus } from '../../model/groups.ts'
import { limits } from '../../model/limits.ts'
import { echo } from '../echo.ts'
import type { Group } from './group-table.ts'
import { Membership, type CountOf, type Joining, type Member } from './membership.ts'

/** Who acts for a member. */
export interface Actor {
  readonly keyId: string
  readonly isAdmin: boolean
}

/** What it counts, for metrics. */
export interface CoordinatorCounts {
  /** Groups that have members. */
  readonly groups: number
  readonly members: number
  /** Assignments made since the process started. */
  readonly rebalances: number
  /** Members removed because they were silent. */
  readonly evictions: number
}

export class Coordinator {
  /** By number of the group. One without members is kept for its generation. */
  readonly #memberships = new Map<number, Membership>()
  /** Those with members. */
  readonly #live = new Map<number, Membership>()
  readonly #countOf: CountOf
  /** Is told the number of each group that was assigned anew, inside the call that did it: it may only note it. */
  onRebalanced: ((group: number) => void) | null = null
  #members = 0
  #assigned = 0
  #rebalances = 0
  #evictions = 0

  constructor(countOf: CountOf) {
    this.#countOf = countOf
  }

  get counts(): CoordinatorCounts {
    const { size: groups } = this.#live
    return { groups, members: this.#members, rebalances: this.#rebalances, evictions: this.#evictions }
  }

  /** undefined: nobody joined it since the process started. */
  membershipOf(group: Group): Membership | undefined {
    return this.#memberships.get(group.number)
  }

  /**
   * Whether a member may join, or a member that is there subscribe to other topics. @param group null: one that would be new.
   * @throws BrokerError GROUP_KIND, MEMBER_OWNED, MEMBERS_TOO_MANY, OVERLOADED
   */
  check(group: Group | null, actor: Actor, joining: Pick<Joining, 'memberId' | 'kind' | 'topics'>): void {
    const membership = group === null ? undefined : this.membershipOf(group)
    const { memberId, kind, topics } = joining
    let isMember = false
    if (group !== null && membership !== undefined) {
      refuseOtherKind(group, membership, kind)
      const member = membership.withId(memberId)
      refuseOtherKey(group, member, actor)
      if (membership.isAsBefore(memberId, topics)) return
      isMember = member !== undefined
      if (!isMember && membership.memberCount >= limits.groupMembersMax) {
        throw new BrokerError('MEMBERS_TOO_MANY', { group: group.name, limit: limits.groupMembersMax })
      }
    }
    const { membersTotalMax, assignedPartitionsMax } = limits
    if (!isMember && this.#members >= membersTotalMax) {
      throw new BrokerError('OVERLOADED', { what: 'the number of members of all groups', limit: membersTotalMax })
    }
    if (this.#assigned >= assignedPartitionsMax) {
      const what = 'the number of partitions that members of all groups have'
      throw new BrokerError('OVERLOADED', { what, limit: assignedPartitionsMax })
    }
  }

  /** @returns the member and the generation of its group. @throws what check() throws */
  join(group: Group, actor: Actor, joining: Omit<Joining, 'keyId'>): { member: Member; generation: number } {
    this.check(group, actor, joining)
    const membership = this.#memberships.get(group.number) ?? new Membership()
    this.#memberships.set(group.number, membership)
    const member = this.#changing(group.number, membership, () =>
      membership.join({ ...joining, keyId: actor.keyId }, this.#countOf)
    )
    return { member, generation: membership.generation }
  }

  /** A member is seen, whatever generation it knows. @throws BrokerError MEMBER_OWNED */
  heartbeat(
    group: Group,
    actor: Actor,
    member: { readonly id: string; readonly generation: number | bigint; readonly nowMs: number }
  ): { status: HeartbeatStatus; generation: number } {
    const membership = this.membershipOf(group)
    const known = membership?.withId(member.id)
    refuseOtherKey(group, known, actor)
    const generation = membership?.generation ?? 0
    if (membership === undefined || known === undefined) return { status: 'unknown_member', generation }
    membership.see(known.id, member.nowMs)
    const isSame = BigInt(member.generation) === BigInt(generation)
    return { status: isSame ? 'ok' : 'rebalance_required', generation }
  }

  /** The member's stream takes what it is sent. Nothing happens if it is no member. */
  see(group: Group, memberId: string, nowMs: number): void {
    const membership = this.membershipOf(group)
    if (membership?.withId(memberId) !== undefined) membership.see(memberId, nowMs)
  }

  /** Nothing happens if it is no member. @throws BrokerError MEMBER_OWNED */
  leave(group: Group, actor: Actor, memberId: string): void {
    const membership = this.membershipOf(group)
    const member = membership?.withId(memberId)
    refuseOtherKey(group, member, actor)
    if (membership === undefined || member === undefined) return
    this.#changing(group.number, membership, () => membership.leave(memberId, this.#countOf))
  }

  /** @throws BrokerError MEMBER_NOT_FOUND, MEMBER_OWNED */
  memberOf(group: Group, actor: Actor, memberId: string): { member: Member; generation: number } {
    const membership = this.membershipOf(group)
    const member = membership?.withId(memberId)
    refuseOtherKey(group, member, actor)
    if (membership === undefined || member === undefined) {
      throw new BrokerError('MEMBER_NOT_FOUND', { group: group.name, member: echo(memberId) })
    }
    return { member, generation: membership.generation }
  }

  /**
   * Whether somebody is a member, and knows of the last assignment.
   * @throws BrokerError MEMBER_NOT_FOUND, MEMBER_OWNED, GENERATION_STALE
   */
  checkCurrent(group: Group, actor: Actor, { memberId, generation }: CommittingMember): void {
    const { generation: current } = this.memberOf(group, actor, memberId)
    if (BigInt(generation) === BigInt(current)) return
    const member = echo(memberId)
    throw new BrokerError('GENERATION_STALE', { group: group.name, member, generation: String(generation), current })
  }

  /**
   * Removes the members of all groups that were not seen since then, one group at each step: others may have their turn
   * between two. @returns how many of a group, and its number.
   */
  *evict(sinceMs: number): Generator<{ readonly group: number; readonly count: number }> {
    // Changed while it is walked: one that is evicted whole is no longer in it.
    for (const [number, membership] of this.#live) {
      if (!membership.hasSilent(sinceMs)) continue
      const { length: count } = this.#changing(number, membership, () => membership.evict(sinceMs, this.#countOf))
      this.#evictions += count
      yield { group: number, count }
    }
  }

  /**
   * A topic has more partitions: the groups that read it share them out, one at each step. @returns how many it has been.
   */
  *grow(topic: string): Generator<number> {
    let looked = 0
    for (const [number, membership] of this.#live) {
      if (membership.hasTopic(topic)) this.#changing(number, membership, () => membership.grow(this.#countOf))
      yield ++looked
    }
  }

  /** Of a group that is removed. It must have no members. */
  forget(group: Group): void {
    this.#memberships.delete(group.number)
  }

  /** Keeps the counts right over a change. */
  #changing<T>(number: number, membership: Membership, change: () => T): T {
    const { generation, memberCount, assignedCount } = membership
    const result = change()
    this.#rebalances += membership.generation - generation
    this.#members += membership.memberCount - memberCount
    this.#assigned += membership.assignedCount - assignedCount
    if (membership.memberCount > 0) this.#live.set(number, membership)
    else this.#live.delete(number)
    if (membership.generation !== generation) this.onRebalanced?.(number)
    return result
  }
}

function refuseOtherKind(group: Group, membership: Membership, kind: GroupKind): void {
  if (membership.kind === null || membership.kind === kind) return
  throw new BrokerError('GROUP_KIND', { group: group.name, kind: membership.kind, wanted: kind })
}

/** A member is bound to the key that made it (seed). */
function refuseOtherKey(group: Group, member: Member | undefined, { keyId, isAdmin }: Actor): void {
  if (member === undefined || isAdmin || member.keyId === keyId) return
  throw new BrokerError('MEMBER_OWNED', { group: group.name, member: member.id })
}
