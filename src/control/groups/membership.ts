/**
 * The members of one group and what each of them reads: a state machine without a clock of its own. Main thread only.
 *
 *   join of a new member, other topics of a member ─▶ generation + 1, assigned anew
 *   join again with the same topics                ─▶ as it was; the member is seen
 *   heartbeat                                      ─▶ as it was; the member is seen
 *   leave, an eviction pass that removes somebody  ─▶ generation + 1, assigned anew
 *
 * Invariants: all members have the generation of the group; what they have together is what assignment.ts promises.
 * Nothing of this outlives the process (spec 7).
 */
import { assert } from '../../base/assert.ts'
import type { Assignment, GroupKind } from '../../model/groups.ts'
import { assignPartitions } from './assignment.ts'

export interface Member {
  readonly id: string
  /** Who made it: nobody else may be it. */
  readonly keyId: string
  /** Sorted, each once. */
  readonly topics: readonly string[]
  readonly assignment: Assignment
  /** Monotonic. */
  readonly lastSeenMs: number
}

interface KnownMember extends Member {
  topics: readonly string[]
  assignment: Assignment
  lastSeenMs: number
}

export interface Joining {
  readonly memberId: string
  readonly keyId: string
  readonly kind: GroupKind
  /** At least one, each once. */
  readonly topics: readonly string[]
  readonly nowMs: number
}

/** Partitions of a topic; 0: there is none of that name. */
export type CountOf = (topic: string) => number

const nothing: Assignment = new Map()

export class Membership {
  #generation = 0
  #kind: GroupKind | null = null
  #assignedCount = 0
  readonly #members = new Map<string, KnownMember>()
  /** Members that subscribe, by topic. */
  readonly #subscriptions = new Map<string, number>()
  /** Lists of topics, each once: members with like subscriptions share one. By their text. */
  readonly #lists = new Map<string, { readonly topics: readonly string[]; members: number }>()

  /** How often it was assigned anew; 0 until the first join. */
  get generation(): number {
    return this.#generation
  }

  /** null: it has no members. */
  get kind(): GroupKind | null {
    return this.#kind
  }

  get memberCount(): number {
    return this.#members.size
  }

  /** Partitions that its members have together. */
  get assignedCount(): number {
    return this.#assignedCount
  }

  withId(id: string): Member | undefined {
    return this.#members.get(id)
  }

  /** True if that is a member with these topics: to join again changes nothing. */
  isAsBefore(id: string, topics: readonly string[]): boolean {
    const member = this.#members.get(id)
    return member !== undefined && textOf(topics.toSorted()) === textOf(member.topics)
  }

  members(): Iterable<Member> {
    return this.#members.values()
  }

  /** Whether some member subscribes to it. */
  hasTopic(topic: string): boolean {
    return this.#subscriptions.has(topic)
  }

  /** Every topic that some member subscribes to. */
  topics(): Iterable<string> {
    return this.#subscriptions.keys()
  }

  /** @returns the member as it is then. Whether it may join is asked before. */
  join({ memberId, keyId, kind, topics, nowMs }: Joining, countOf: CountOf): Member {
    assert(this.#kind === null || this.#kind === kind, 'all members of a group are of one kind')
    const known = this.#members.get(memberId)
    if (known !== undefined) {
      known.lastSeenMs = nowMs
      if (this.isAsBefore(memberId, topics)) return known
      this.#unsubscribe(known)
      known.topics = this.#subscribe(topics.toSorted())
      this.#rebalance(countOf)
      return known
    }
    const list = this.#subscribe(topics.toSorted())
    const member = { id: memberId, keyId, topics: list, assignment: nothing, lastSeenMs: nowMs }
    this.#members.set(memberId, member)
    this.#kind = kind
    this.#rebalance(countOf)
    return member
  }

  /** Of a member. */
  see(id: string, nowMs: number): void {
    const member = this.#members.get(id)
    assert(member !== undefined, 'only members are seen')
    member.lastSeenMs = nowMs
  }

  /** Of a member. */
  leave(id: string, countOf: CountOf): void {
    this.#remove(id)
    this.#rebalance(countOf)
  }

  /** Whether there is anybody who was not seen since then. @cost a look at each member, no allocation. */
  hasSilent(sinceMs: number): boolean {
    for (const { lastSeenMs } of this.#members.values()) if (lastSeenMs < sinceMs) return true
    return false
  }

  /** Removes everybody who was not seen since then, in one step. @returns their ids. */
  evict(sinceMs: number, countOf: CountOf): string[] {
    const gone: string[] = []
    for (const { id, lastSeenMs } of this.#members.values()) if (lastSeenMs < sinceMs) gone.push(id)
    for (const id of gone) this.#remove(id)
    if (gone.length > 0) this.#rebalance(countOf)
    return gone
  }

  /** A topic has more partitions than before. */
  grow(countOf: CountOf): void {
    this.#rebalance(countOf)
  }

  #remove(id: string): void {
    const member = this.#members.get(id)
    assert(member !== undefined, 'only members leave')
    this.#members.delete(id)
    this.#unsubscribe(member)
    if (this.#members.size === 0) this.#kind = null
  }

  /** @returns the list that all who want the same share. */
  #subscribe(sorted: readonly string[]): readonly string[] {
    for (const topic of sorted) this.#subscriptions.set(topic, (this.#subscriptions.get(topic) ?? 0) + 1)
    const text = textOf(sorted)
    const list = this.#lists.get(text) ?? { topics: sorted, members: 0 }
    this.#lists.set(text, list)
    list.members++
    return list.topics
  }

  #unsubscribe({ topics }: Member): void {
    for (const topic of topics) {
      const left = (this.#subscriptions.get(topic) ?? 0) - 1
      if (left > 0) this.#subscriptions.set(topic, left)
      else this.#subscriptions.delete(topic)
    }
    const text = textOf(topics)
    const list = this.#lists.get(text)
    assert(list !== undefined, 'a list that a member has is known')
    if (--list.members === 0) this.#lists.delete(text)
  }

  #rebalance(countOf: CountOf): void {
    this.#generation++
    const subscribers = [...this.#members.values()].map(({ id, topics, assignment }) => {
      return { id, topics, owned: assignment }
    })
    const assigned = assignPartitions(subscribers, countOf)
    this.#assignedCount = 0
    for (const member of this.#members.values()) {
      member.assignment = assigned.get(member.id) ?? nothing
      for (const partitions of member.assignment.values()) this.#assignedCount += partitions.length
    }
  }
}

/** Names have no comma. */
function textOf(topics: readonly string[]): string {
  return topics.join(',')
}
