/**
 * One classic group of the Kafka protocol: a state machine without a clock of its own. Main thread only; calls nobody but
 * those who wait for an answer of it.
 *
 *               a join                     deadline, or all joined                the leader syncs
 *   Empty ───────────────▶ PreparingRebalance ───────────────────▶ CompletingRebalance ───────────▶ Stable
 *     ▲                        │    ▲  ▲                                  │                            │
 *     └── nobody is left ──────┘    │  └── a member joins anew or goes ───┘                            │
 *                                   └───── a member joins anew or goes, does not sync ────────────────┘
 *
 * Deadlines: an empty group waits a moment for others to come too; later ones wait the rebalance timeout for its members to
 * join again, then go on without those that did not, static ones excepted; and as long for each of them to sync.
 *
 * Invariants: joins wait only in PreparingRebalance, syncs only in CompletingRebalance; each is answered once or its
 * connection has ended. In Stable every member has what the leader of that generation gave it, or nothing.
 */
import { assert } from '../../../base/assert.ts'
import type {
  ClassicFault,
  ClassicJoin,
  ClassicJoinAnswer,
  ClassicLeaver,
  ClassicMemberIdentity,
  ClassicSync,
  ClassicSyncAnswer
} from '../../../model/classic-groups.ts'
import type { GroupState } from '../../../model/groups.ts'
import { limits } from '../../../model/limits.ts'
import { refusedJoin, refusedSync, saidBy } from './answers.ts'
import { hasSaid, noBytes, type ClassicMember, type OnJoined, type OnSynced } from './member.ts'
import { Roster } from './roster.ts'

export class ClassicGroup {
  readonly #roster = new Roster()
  readonly #newMemberId: (prefix: string) => string
  #state: GroupState = 'Empty'
  #generation = 0
  #protocolType: string | null = null
  #protocolName: string | null = null
  #deadlineMs: number | null = null
  /** Until when a group that was empty may wait for more members, a moment each time that one came; null: it does not. */
  #gatheringUntilMs: number | null = null
  #hasGathered = false
  /** Members that were told the generation and did not sync. */
  readonly #unsynced = new Set<string>()

  /** @param newMemberId makes an id that begins so, and that nobody can guess. */
  constructor(newMemberId: (prefix: string) => string) {
    this.#newMemberId = newMemberId
  }

  get state(): GroupState {
    return this.#state
  }

  get generation(): number {
    return this.#generation
  }

  /** null: it never had members. */
  get protocolType(): string | null {
    return this.#protocolType
  }

  get protocolName(): string | null {
    return this.#protocolName
  }

  /** When expire() ends a phase, monotonic; null: only silence of members ends anything. */
  get deadlineMs(): number | null {
    return this.#deadlineMs
  }

  get leader(): string | null {
    return this.#roster.leader
  }

  get memberCount(): number {
    return this.#roster.memberCount
  }

  /** Ids that were given out, and nobody joined with yet. */
  get pendingCount(): number {
    return this.#roster.pendingCount
  }

  /** That its members take. */
  get bytes(): number {
    return this.#roster.bytes
  }

  members(): Iterable<Readonly<ClassicMember>> {
    return this.#roster.members()
  }

  /** The member that would join here is one already, or has its id: it takes no more room. */
  isKnown({ memberId, instanceId }: ClassicLeaver): boolean {
    if (instanceId !== null && this.#roster.withInstance(instanceId) !== undefined) return true
    return this.#roster.withId(memberId) !== undefined || this.#roster.isPending(memberId)
  }

  join(join: ClassicJoin, nowMs: number, onJoined: OnJoined): void {
    const answer = join.memberId === '' ? this.#joinNew(join, nowMs, onJoined) : this.#joinAgain(join, nowMs, onJoined)
    if (answer !== null) onJoined(answer)
  }

  sync(sync: ClassicSync, nowMs: number, onSynced: OnSynced): void {
    const member = this.#identify(sync)
    const fault = typeof member === 'string' ? member : this.#faultOfSync(sync)
    if (fault !== null) return onSynced(refusedSync(fault))
    assert(typeof member !== 'string', 'whom nothing is held against is a member')
    member.seenMs = nowMs
    this.#noteSynced(member.id)
    if (this.#state === 'Stable') return onSynced(this.#syncAnswerOf(member))
    // One member waits once: the later question counts.
    member.syncing?.(refusedSync('REBALANCE_IN_PROGRESS'))
    member.syncing = onSynced
    if (this.#roster.leader === member.id) this.#assign(sync.assignments, nowMs)
  }

  heartbeat(identity: ClassicMemberIdentity, nowMs: number): ClassicFault | null {
    const member = this.#identify(identity)
    if (typeof member === 'string') return member
    member.seenMs = nowMs
    return this.#state === 'PreparingRebalance' ? 'REBALANCE_IN_PROGRESS' : null
  }

  /** Whether offsets may be committed. One who is no member says no generation and no ids. */
  checkCommit(identity: ClassicMemberIdentity, nowMs: number): ClassicFault | null {
    const { memberId, instanceId, generation } = identity
    if (memberId === '' && instanceId === null && generation < 0) {
      return this.memberCount === 0 ? null : 'UNKNOWN_MEMBER_ID'
    }
    const member = this.#identify(identity)
    if (typeof member === 'string') return member
    // It was told to assign or to wait: what it read before is another's by now.
    if (this.#state === 'CompletingRebalance') return 'REBALANCE_IN_PROGRESS'
    member.seenMs = nowMs
    return null
  }

  /** @returns what became of each. */
  leave(leavers: readonly ClassicLeaver[], nowMs: number): (ClassicFault | null)[] {
    const { memberCount, pendingCount } = this
    const faults = leavers.map(({ memberId, instanceId }) => {
      if (instanceId === null && this.#roster.removePending(memberId)) return null
      const named = instanceId !== null && memberId === '' ? this.#roster.withInstance(instanceId) : undefined
      const member = named ?? this.#roster.identify(memberId, instanceId)
      if (typeof member === 'string') return member
      this.#remove(member)
      return null
    })
    if (this.memberCount < memberCount) this.#onRemoved(nowMs)
    else if (this.pendingCount < pendingCount) this.#beginIfAllJoined(nowMs)
    return faults
  }

  /** The connection of one that waits has ended. Nothing happens if it was answered. */
  abandon(waiting: OnJoined | OnSynced, nowMs: number): void {
    for (const member of this.#roster.members()) {
      if (member.joining !== waiting && member.syncing !== waiting) continue
      member.joining = null
      member.syncing = null
      member.seenMs = nowMs
      // Nobody knows it: it would be waited for in vain.
      if (member.isKnown || member.instanceId !== null) return
      this.#remove(member)
      return this.#onRemoved(nowMs)
    }
  }

  /** Does what the time calls for. @returns how many members were removed because nothing was heard of them. */
  expire(nowMs: number): number {
    const silent: ClassicMember[] = []
    for (const member of this.#roster.members()) {
      const isWaiting = member.joining !== null || member.syncing !== null
      if (!isWaiting && member.seenMs + member.sessionTimeoutMs <= nowMs) silent.push(member)
    }
    const hasLapsed = this.#roster.removeLapsed(nowMs)
    for (const member of silent) this.#remove(member)
    if (silent.length > 0) this.#onRemoved(nowMs)
    else if (hasLapsed) this.#beginIfAllJoined(nowMs)
    if (this.#deadlineMs === null || nowMs < this.#deadlineMs) return silent.length
    return silent.length + this.#endPhase(nowMs)
  }

  #joinNew(join: ClassicJoin, nowMs: number, onJoined: OnJoined): ClassicJoinAnswer | null {
    const { instanceId, clientId } = join
    const known = instanceId === null ? undefined : this.#roster.withInstance(instanceId)
    if (!this.#suits(join, known)) return refusedJoin('INCONSISTENT_GROUP_PROTOCOL', '')
    const id = this.#newMemberId(instanceId ?? clientId)
    if (known !== undefined) return this.#comeBack(known, { ...join, memberId: id }, nowMs, onJoined)
    if (instanceId === null && join.isIdRequired) {
      this.#roster.addPending(id, nowMs + join.sessionTimeoutMs)
      return refusedJoin('MEMBER_ID_REQUIRED', id)
    }
    return this.#add(join, id, nowMs, onJoined)
  }

  #joinAgain(join: ClassicJoin, nowMs: number, onJoined: OnJoined): ClassicJoinAnswer | null {
    const { memberId, instanceId, protocols } = join
    if (instanceId === null && this.#roster.isPending(memberId)) {
      if (!this.#suits(join, undefined)) return refusedJoin('INCONSISTENT_GROUP_PROTOCOL', memberId)
      return this.#add(join, memberId, nowMs, onJoined)
    }
    const member = this.#roster.identify(memberId, instanceId)
    if (typeof member === 'string') return refusedJoin(member, memberId)
    if (!this.#suits(join, member)) return refusedJoin('INCONSISTENT_GROUP_PROTOCOL', memberId)
    member.seenMs = nowMs
    const isSame = hasSaid(member, protocols)
    this.#roster.update(member, join)
    // A leader that joins again wants to assign anew; the answer to another may have been lost.
    const isAnswered = this.#state === 'Stable' && isSame && this.#roster.leader !== memberId
    if (isAnswered || (this.#state === 'CompletingRebalance' && isSame)) return this.#joinAnswerOf(member)
    this.#await(member, nowMs, onJoined)
    return null
  }

  /** A static member was started again, under another id. What it had is its own still, if the protocol is. */
  #comeBack(member: ClassicMember, join: ClassicJoin, nowMs: number, onJoined: OnJoined): ClassicJoinAnswer | null {
    const { id: before } = member
    const hasLed = this.#roster.leader === before
    this.#answerWaiting(member, 'FENCED_INSTANCE_ID')
    this.#noteSynced(before)
    this.#roster.rename(member, join.memberId)
    this.#roster.update(member, join)
    member.seenMs = nowMs
    if (this.#state !== 'Stable' || this.#roster.selectProtocol() !== this.#protocolName) {
      this.#await(member, nowMs, onJoined)
      return null
    }
    member.isKnown = true
    const answer = this.#joinAnswerOf(member)
    if (!hasLed) return answer
    // A client that cannot leave out the assigning is told that another leads, so that it takes what there is.
    return join.canSkipAssignment ? { ...answer, skipAssignment: true } : { ...answer, leader: before, members: [] }
  }

  #add(join: ClassicJoin, id: string, nowMs: number, onJoined: OnJoined): null {
    if (this.memberCount === 0) this.#protocolType = join.protocolType
    const member = this.#roster.add(join, id, nowMs)
    this.#hasGathered = true
    this.#await(member, nowMs, onJoined)
    return null
  }

  #await(member: ClassicMember, nowMs: number, onJoined: OnJoined): void {
    // One member waits once: the later question counts.
    member.joining?.(refusedJoin('REBALANCE_IN_PROGRESS', member.id))
    member.joining = onJoined
    if (this.#state === 'PreparingRebalance') this.#beginIfAllJoined(nowMs)
    else this.#prepare(nowMs)
  }

  /** Members are to join again. */
  #prepare(nowMs: number): void {
    const wasEmpty = this.#state === 'Empty'
    for (const member of this.#roster.members()) {
      member.syncing?.(refusedSync('REBALANCE_IN_PROGRESS'))
      member.syncing = null
    }
    this.#unsynced.clear()
    this.#state = 'PreparingRebalance'
    const latestMs = nowMs + this.#roster.rebalanceTimeoutMs
    this.#gatheringUntilMs = wasEmpty ? latestMs : null
    this.#hasGathered = false
    this.#deadlineMs = wasEmpty ? Math.min(nowMs + limits.classicGatherMs, latestMs) : latestMs
    this.#beginIfAllJoined(nowMs)
  }

  #beginIfAllJoined(nowMs: number): void {
    if (this.#state !== 'PreparingRebalance' || this.#gatheringUntilMs !== null || this.pendingCount > 0) return
    for (const { joining } of this.#roster.members()) if (joining === null) return
    this.#begin(nowMs)
  }

  /** The next generation, of those who joined and of static members. */
  #begin(nowMs: number): void {
    for (const member of [...this.#roster.members()]) {
      if (member.joining === null && member.instanceId === null) this.#remove(member)
    }
    this.#gatheringUntilMs = null
    if (this.memberCount === 0) {
      this.#generation++
      this.#state = 'Empty'
      this.#protocolName = null
      this.#deadlineMs = null
      return
    }
    this.#deadlineMs = nowMs + this.#roster.rebalanceTimeoutMs
    // Static members alone, all away: until they are back, or silent for too long.
    if (!this.#roster.electJoined()) return
    this.#generation++
    this.#protocolName = this.#roster.selectProtocol()
    this.#state = 'CompletingRebalance'
    for (const member of this.#roster.members()) {
      const { joining } = member
      if (joining === null) continue
      member.joining = null
      member.isKnown = true
      member.seenMs = nowMs
      this.#unsynced.add(member.id)
      joining(this.#joinAnswerOf(member))
    }
  }

  /** The leader has decided. Whom it forgot gets nothing; whom it made up is nobody. */
  #assign(assignments: ClassicSync['assignments'], nowMs: number): void {
    const byMember = new Map(assignments.map(({ memberId, assignment }) => [memberId, assignment]))
    this.#state = 'Stable'
    for (const member of this.#roster.members()) {
      const assignment = byMember.get(member.id)
      this.#roster.assign(member, assignment === undefined ? noBytes : Buffer.from(assignment))
    }
    for (const member of this.#roster.members()) {
      const { syncing } = member
      if (syncing === null) continue
      member.syncing = null
      member.seenMs = nowMs
      syncing(this.#syncAnswerOf(member))
    }
  }

  /** @returns how many members were removed. */
  #endPhase(nowMs: number): number {
    const { memberCount } = this
    if (this.#state === 'PreparingRebalance') {
      const until = this.#gatheringUntilMs
      if (until !== null && this.#hasGathered && nowMs < until) {
        this.#hasGathered = false
        this.#deadlineMs = Math.min(nowMs + limits.classicGatherMs, until)
        return 0
      }
      this.#begin(nowMs)
      return memberCount - this.memberCount
    }
    const late = [...this.#roster.members()].filter(({ id }) => this.#unsynced.has(id))
    for (const member of late) this.#remove(member)
    this.#onRemoved(nowMs)
    return late.length
  }

  #noteSynced(id: string): void {
    this.#unsynced.delete(id)
    if (this.#unsynced.size === 0 && this.#state !== 'PreparingRebalance') this.#deadlineMs = null
  }

  #remove(member: ClassicMember): void {
    this.#answerWaiting(member, 'UNKNOWN_MEMBER_ID')
    this.#unsynced.delete(member.id)
    this.#roster.remove(member)
  }

  /** What members are gone had is to go to others. */
  #onRemoved(nowMs: number): void {
    if (this.#state === 'PreparingRebalance') this.#beginIfAllJoined(nowMs)
    else this.#prepare(nowMs)
  }

  #answerWaiting(member: ClassicMember, fault: ClassicFault): void {
    const { joining, syncing } = member
    member.joining = null
    member.syncing = null
    joining?.(refusedJoin(fault, member.id))
    syncing?.(refusedSync(fault))
  }

  #identify({ memberId, instanceId, generation }: ClassicMemberIdentity): ClassicMember | ClassicFault {
    const member = this.#roster.identify(memberId, instanceId)
    return typeof member === 'string' || generation === this.#generation ? member : 'ILLEGAL_GENERATION'
  }

  #faultOfSync({ protocolType, protocolName, assignments }: ClassicSync): ClassicFault | null {
    const isOtherType = protocolType !== null && protocolType !== this.#protocolType
    if (isOtherType || (protocolName !== null && protocolName !== this.#protocolName)) {
      return 'INCONSISTENT_GROUP_PROTOCOL'
    }
    if (this.#state === 'PreparingRebalance') return 'REBALANCE_IN_PROGRESS'
    const bytes = assignments.reduce((sum, { assignment }) => sum + assignment.length, this.bytes)
    return bytes > limits.classicGroupBytesMax ? 'GROUP_MAX_SIZE_REACHED' : null
  }

  #suits(join: ClassicJoin, but: ClassicMember | undefined): boolean {
    if (join.protocolType === '' || join.protocols.length === 0) return false
    if (this.memberCount === 0) return true
    return join.protocolType === this.#protocolType && this.#roster.suits(join, but)
  }

  #joinAnswerOf({ id: memberId }: ClassicMember): ClassicJoinAnswer {
    const { protocolType, protocolName, generation } = this
    const leader = this.#roster.leader ?? ''
    const members = memberId === leader ? saidBy(this.#roster.members(), protocolName) : []
    return { fault: null, memberId, generation, protocolType, protocolName, leader, skipAssignment: false, members }
  }

  #syncAnswerOf({ assignment }: ClassicMember): ClassicSyncAnswer {
    return { fault: null, protocolType: this.#protocolType, protocolName: this.#protocolName, assignment }
  }
}
