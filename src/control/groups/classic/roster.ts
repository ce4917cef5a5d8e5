/**
 * Who is in one classic group: its members in the order in which they came, static members by their instance id, ids that
 * were given out and not joined yet, and who leads. Main thread only; has no clock and decides nothing about generations.
 *
 * Invariants: an instance id names one member; there is a leader exactly while there are members; `bytes` is what members
 * said and were assigned.
 */
import { assert } from '../../../base/assert.ts'
import type { ClassicFault, ClassicJoin } from '../../../model/classic-groups.ts'
import { bytesOf, memberOf, type ClassicMember } from './member.ts'
import { hasInCommon, selectProtocol } from './protocols.ts'

export class Roster {
  readonly #members = new Map<string, ClassicMember>()
  /** Member ids by instance id. */
  readonly #statics = new Map<string, string>()
  /** When ids that were given out lapse, monotonic. */
  readonly #pending = new Map<string, number>()
  #leader: string | null = null
  #bytes = 0

  get memberCount(): number {
    return this.#members.size
  }

  /** Ids that were given out, and nobody joined with yet. */
  get pendingCount(): number {
    return this.#pending.size
  }

  get leader(): string | null {
    return this.#leader
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The longest that one of its members asks for; 0: it has none. */
  get rebalanceTimeoutMs(): number {
    let longest = 0
    for (const { rebalanceTimeoutMs } of this.#members.values()) longest = Math.max(longest, rebalanceTimeoutMs)
    return longest
  }

  members(): IterableIterator<ClassicMember> {
    return this.#members.values()
  }

  withId(id: string): ClassicMember | undefined {
    return this.#members.get(id)
  }

  withInstance(instanceId: string): ClassicMember | undefined {
    const id = this.#statics.get(instanceId)
    return id === undefined ? undefined : this.#members.get(id)
  }

  /** The member that somebody says to be, or why it is not. */
  identify(memberId: string, instanceId: string | null): ClassicMember | ClassicFault {
    if (instanceId !== null) {
      const known = this.withInstance(instanceId)
      if (known === undefined) return 'UNKNOWN_MEMBER_ID'
      return known.id === memberId ? known : 'FENCED_INSTANCE_ID'
    }
    return this.#members.get(memberId) ?? 'UNKNOWN_MEMBER_ID'
  }

  /** Whether these protocols have something in common with those of everybody but one. */
  suits({ protocols }: Pick<ClassicJoin, 'protocols'>, but: ClassicMember | undefined): boolean {
    return hasInCommon(
      protocols,
      [...this.#members.values()].filter(member => member !== but)
    )
  }

  /** The protocol that the members would use now. There must be one. */
  selectProtocol(): string {
    return selectProtocol([...this.#members.values()])
  }

  isPending(id: string): boolean {
    return this.#pending.has(id)
  }

  addPending(id: string, lapsesMs: number): void {
    this.#pending.set(id, lapsesMs)
  }

  /** @returns true if it was one. */
  removePending(id: string): boolean {
    return this.#pending.delete(id)
  }

  /** Forgets ids that lapsed. @returns true if there was one. */
  removeLapsed(nowMs: number): boolean {
    const { size } = this.#pending
    for (const [id, lapsesMs] of this.#pending) if (lapsesMs <= nowMs) this.#pending.delete(id)
    return this.#pending.size < size
  }

  /** A new member; its id is pending no longer. */
  add(join: ClassicJoin, id: string, nowMs: number): ClassicMember {
    assert(!this.#members.has(id), 'a member that is added is new')
    const member = memberOf(join, id, nowMs)
    this.#pending.delete(id)
    this.#members.set(id, member)
    if (member.instanceId !== null) this.#statics.set(member.instanceId, id)
    this.#leader ??= id
    this.#bytes += bytesOf(member)
    return member
  }

  /** A member says something else of itself. */
  update(member: ClassicMember, join: ClassicJoin): void {
    this.#bytes -= bytesOf(member)
    member.clientId = join.clientId
    member.clientHost = join.clientHost
    member.protocols = join.protocols
    member.sessionTimeoutMs = join.sessionTimeoutMs
    member.rebalanceTimeoutMs = join.rebalanceTimeoutMs
    this.#bytes += bytesOf(member)
  }

  /** A static member is back under another id: it stays what it was, and its place in the order. */
  rename(member: ClassicMember, id: string): void {
    const before = member.id
    assert(member.instanceId !== null && !this.#members.has(id), 'only a static member changes its id, to a new one')
    const members = [...this.#members.values()]
    this.#members.clear()
    member.id = id
    for (const each of members) this.#members.set(each.id, each)
    this.#statics.set(member.instanceId, id)
    if (this.#leader === before) this.#leader = id
  }

  remove(member: ClassicMember): void {
    const isGone = this.#members.delete(member.id)
    assert(isGone, 'only members are removed')
    if (member.instanceId !== null) this.#statics.delete(member.instanceId)
    if (this.#leader === member.id) this.#leader = this.#members.keys().next().value ?? null
    this.#bytes -= bytesOf(member) + member.assignment.length
  }

  /** @param assignment for it to keep. */
  assign(member: ClassicMember, assignment: Buffer): void {
    this.#bytes += assignment.length - member.assignment.length
    member.assignment = assignment
  }

  /** Has a member lead that waits to be told, if the leader does not. @returns false: nobody waits. */
  electJoined(): boolean {
    const leader = this.#leader === null ? undefined : this.#members.get(this.#leader)
    if (leader !== undefined && leader.joining !== null) return true
    for (const { id, joining } of this.#members.values()) {
      if (joining === null) continue
      this.#leader = id
      return true
    }
    return false
  }
}
