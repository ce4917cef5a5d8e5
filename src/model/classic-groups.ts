/**
 * Classic consumer groups of the Kafka protocol: what their members ask and what they hear. Main thread. Implemented by
 * broker/classic-groups.ts; the rules are in control/groups/classic. The names of faults are the protocol's, which has the
 * numbers. What every protocol refuses alike is a BrokerError: GROUP_OWNED, GROUP_KIND, FORBIDDEN.
 */
import type { BrokerError } from './errors.ts'
import type { GroupOffset, GroupState, OffsetNote, TopicPartition } from './groups.ts'
import type { Principal } from './principal.ts'

/**
 * Places of a commit that are looked up at once: one that is refused costs some 10 µs. While more of them are, others have turns, so a
 * caller that has more keeps back what must not come before its commit.
 */
export const PLACES_AT_ONCE = 500

/** Why a member does not get what it asks for. */
export type ClassicFault =
  | 'COORDINATOR_NOT_AVAILABLE'
  | 'FENCED_INSTANCE_ID'
  | 'GROUP_MAX_SIZE_REACHED'
  | 'GROUP_SUBSCRIBED_TO_TOPIC'
  | 'ILLEGAL_GENERATION'
  | 'INCONSISTENT_GROUP_PROTOCOL'
  | 'INVALID_GROUP_ID'
  | 'INVALID_SESSION_TIMEOUT'
  | 'MEMBER_ID_REQUIRED'
  | 'REBALANCE_IN_PROGRESS'
  | 'UNKNOWN_MEMBER_ID'

/** How a member would read: what only members understand. */
export interface ClassicProtocol {
  readonly name: string
  readonly metadata: Buffer
}

export interface ClassicJoin {
  /** Empty: the broker is to pick one. */
  readonly memberId: string
  /** Of a static member: what it is called over restarts. */
  readonly instanceId: string | null
  readonly protocolType: string
  /** The one it likes best first. The bytes are the group's from now on. */
  readonly protocols: readonly ClassicProtocol[]
  readonly sessionTimeoutMs: number
  readonly rebalanceTimeoutMs: number
  readonly clientId: string
  readonly clientHost: string
  /** A new member is first told its id, and joins with it. */
  readonly isIdRequired: boolean
  /** Its client knows that a static leader that is back may have nothing to assign. */
  readonly canSkipAssignment: boolean
}

export interface ClassicJoinAnswer {
  readonly fault: ClassicFault | null
  readonly memberId: string
  /** −1 with a fault. */
  readonly generation: number
  readonly protocolType: string | null
  readonly protocolName: string | null
  /** Id of the member that assigns. */
  readonly leader: string
  readonly skipAssignment: boolean
  /** For the leader: everybody, with what they said under the protocol that was picked. */
  readonly members: readonly ClassicJoinMember[]
}

export interface ClassicJoinMember {
  readonly memberId: string
  readonly instanceId: string | null
  readonly metadata: Buffer
}

/** Which member of which generation asks. */
export interface ClassicMemberIdentity {
  readonly memberId: string
  readonly instanceId: string | null
  readonly generation: number
}

export interface ClassicSync extends ClassicMemberIdentity {
  /** What the member takes the group for; null: it does not say. */
  readonly protocolType: string | null
  readonly protocolName: string | null
  /** From the leader. The bytes are borrowed: what is kept is copied before sync() returns. */
  readonly assignments: readonly { readonly memberId: string; readonly assignment: Buffer }[]
}

export interface ClassicSyncAnswer {
  readonly fault: ClassicFault | null
  readonly protocolType: string | null
  readonly protocolName: string | null
  readonly assignment: Buffer
}

/** Who leaves: a member id, or the instance id alone. */
export type ClassicLeaver = Pick<ClassicMemberIdentity, 'memberId' | 'instanceId'>

export interface ClassicMemberDescription {
  readonly memberId: string
  readonly instanceId: string | null
  readonly clientId: string
  readonly clientHost: string
  /** Both empty while the group rebalances. */
  readonly metadata: Buffer
  readonly assignment: Buffer
}

export interface ClassicListing {
  readonly group: string
  readonly state: GroupState
  /** Empty: it never had members. 'http': those that it has speak HTTP. */
  readonly protocolType: string
}

export interface ClassicDescription extends ClassicListing {
  /** Empty unless the group is stable. */
  readonly protocolName: string
  readonly members: readonly ClassicMemberDescription[]
}

/** One place that is committed. */
export interface ClassicCommit extends TopicPartition {
  readonly offset: number
  readonly note: OffsetNote
}

/** What is committed in a partition. */
export interface ClassicOffset extends TopicPartition {
  readonly offset: GroupOffset
  readonly note: OffsetNote
}

/** What became of one place: null is well. */
export type PlaceOutcome = ClassicFault | BrokerError | null

/** Takes what to call once if the connection that waits for an answer ends before it. */
export type OnGone = (callback: () => void) => void

/** The use cases. What throws or rejects does so with BrokerError. */
export interface ClassicGroupUseCases {
  /**
   * Answers when the group's next generation begins, which may take the rebalance timeout; at once where nothing changes.
   * @fails FORBIDDEN of a topic that the member subscribes to, GROUP_OWNED, GROUP_KIND, GROUPS_TOO_MANY; DISK_FULL of a new group
   */
  join(who: Principal, group: string, request: ClassicJoin, onGone: OnGone): Promise<ClassicJoinAnswer>
  /** Answers when the leader has assigned. @fails GROUP_OWNED */
  sync(who: Principal, group: string, request: ClassicSync, onGone: OnGone): Promise<ClassicSyncAnswer>
  /** @throws GROUP_OWNED */
  heartbeat(who: Principal, group: string, member: ClassicMemberIdentity): ClassicFault | null
  /** @returns what became of each. @throws GROUP_OWNED */
  leave(who: Principal, group: string, leavers: readonly ClassicLeaver[]): (ClassicFault | null)[]
  /**
   * Notes offsets, and answers when they are on disk. @param member generation −1 and no ids: who is no member, which is
   * allowed while the group has none.
   * @returns what became of each place, in their order. @fails GROUP_OWNED, GROUPS_TOO_MANY, DISK_FULL: of all of them
   */
  commit(
    who: Principal,
    group: string,
    member: ClassicMemberIdentity,
    places: readonly ClassicCommit[]
  ): Promise<PlaceOutcome[]>
  /**
   * Forgets offsets, durably, of topics that no member subscribes to.
   * @returns what became of each; null also where nothing was committed. @fails GROUP_NOT_FOUND, GROUP_OWNED, DISK_FULL;
   *   GROUP_NOT_EMPTY: nobody knows what its members read
   */
  deleteOffsets(who: Principal, group: string, places: readonly TopicPartition[]): Promise<PlaceOutcome[]>
  /** What is committed on topics that the caller may read. @throws GROUP_OWNED */
  offsets(who: Principal, group: string): ClassicOffset[]
  /** The groups that the caller's key owns; admin: all. */
  list(who: Principal): ClassicListing[]
  /** null: there is none of that name. @throws GROUP_OWNED */
  describe(who: Principal, group: string): ClassicDescription | null
}
