/**
 * Consumer groups as the gateways see them: what they ask and what they hear. Main thread. Implemented by
 * broker/groups.ts. `who` asks; a group belongs to the key that first committed to it or joined it, and what another key
 * asks is GROUP_OWNED, unless that is admin on `*` (spec 6).
 */
import type { Principal } from './principal.ts'

/** Which protocol the members of a group speak: a group that has members has one kind. */
export const groupKinds = ['http', 'kafka'] as const
export type GroupKind = (typeof groupKinds)[number]

/** Where a group stands. One whose members speak HTTP is assigned within the call that changes it: Stable, or Empty. */
export const groupStates = ['Empty', 'PreparingRebalance', 'CompletingRebalance', 'Stable'] as const
export type GroupState = (typeof groupStates)[number]

/** The partitions that a member has, by topic; sorted by name, the partitions ascending. */
export type Assignment = ReadonlyMap<string, Uint32Array>

/** An offset up to 2^64 − 1: a number where that is exact, else a bigint (D25). */
export type GroupOffset = number | bigint

/** What a client of the Kafka protocol notes beside an offset: the broker keeps it for it, and reads nothing in it. */
export interface OffsetNote {
  /** Epoch of the leader that the last record came from; −1: not told. */
  readonly leaderEpoch: number
  /** Empty: none. */
  readonly metadata: string
}

/** Beside most offsets. */
export const noNote: OffsetNote = { leaderEpoch: -1, metadata: '' }

export interface TopicPartition {
  readonly topic: string
  readonly partition: number
}

/** Offsets by topic, then partition; sorted by both. */
export type OffsetsByTopic = ReadonlyMap<string, ReadonlyMap<number, GroupOffset>>

/** What is noted beside offsets, where it is not empty: by topic, then partition; sorted by both. */
export type MetadataByTopic = ReadonlyMap<string, ReadonlyMap<number, string>>

export interface JoinRequest {
  /** At least one; repeated names count once. */
  readonly topics: readonly string[]
  /** null or empty: the broker picks one. */
  readonly memberId: string | null
}

/** Who commits: a member, as of the generation that its assignment is from. */
export interface CommittingMember {
  readonly memberId: string
  /** A u64. */
  readonly generation: GroupOffset
}

export interface JoinAnswer {
  readonly memberId: string
  readonly generation: number
  readonly assignment: Assignment
}

/** ok: nothing changed. rebalance_required: fetch the assignment again. unknown_member: join again. */
export type HeartbeatStatus = 'ok' | 'rebalance_required' | 'unknown_member'

export interface HeartbeatAnswer {
  readonly status: HeartbeatStatus
  /** Of the group now; 0: nobody knows the group. */
  readonly generation: number
}

/** A place in a partition: where it begins, its end, or the first record at or after a time (Unix ms). */
export type ResetTarget = 'earliest' | 'latest' | { readonly timestampMs: bigint }

export interface ResetRequest {
  readonly topic: string
  /** null: all of the topic. */
  readonly partition: number | null
  readonly to: ResetTarget
}

export interface GroupMember {
  readonly memberId: string
  readonly topics: readonly string[]
  readonly partitionCount: number
}

export interface GroupDescription {
  readonly group: string
  /** Id of the key that it belongs to. */
  readonly owner: string
  /** null: it has no members. */
  readonly kind: GroupKind | null
  readonly state: GroupState
  readonly generation: number
  readonly members: readonly GroupMember[]
  /** Records behind the committed offsets, over all partitions; null: a shard that has some cannot be asked. */
  readonly lagRecords: number | null
  /** Age of the oldest record that is not read; 0: all are. null: not known, or too many partitions to look at. */
  readonly lagSeconds: number | null
}

/** A stream of a member: it stands in for the heartbeats of a client that takes what it is sent. */
export interface MemberStream {
  /** The client has taken all that it was sent. Asked before silent members are removed: then the member was seen. */
  isTaking(): boolean
  /** The group was assigned anew: the member has other partitions, the same, or is none any more. Never inside a call. */
  onRebalanced(): void
}

/** The use cases of groups. What throws or rejects does so with BrokerError. */
export interface GroupUseCases {
  /**
   * Notes the next offset to read. Visible when it resolves, on disk within a second; a new group is on disk at once.
   * @param member null: whoever may use the group. One that is none any more, or does not know of the last assignment,
   *   is refused: its partitions may have another reader. Then no group is made.
   * @fails FORBIDDEN, TOPIC_NOT_FOUND, PARTITION_RANGE, NAME_INVALID, GROUP_OWNED; MEMBER_NOT_FOUND, MEMBER_OWNED,
   *   GENERATION_STALE of a member; GROUPS_TOO_MANY, GROUP_OFFSETS_TOO_MANY, in this order; DISK_FULL of a new group
   */
  commit(
    who: Principal,
    group: string,
    place: TopicPartition,
    offset: GroupOffset,
    member?: CommittingMember | null
  ): Promise<void>
  /** What is committed on topics that the caller may read; nothing of an unknown group. @throws GROUP_OWNED */
  offsets(who: Principal, group: string): OffsetsByTopic
  /** What stands beside these offsets. @throws GROUP_OWNED */
  metadata(who: Principal, group: string): MetadataByTopic
  /**
   * Where a read of the group begins: at the committed offset; null, nothing is committed: at the first record. Whether
   * topic and partition exist is not asked. Changes nothing. @throws FORBIDDEN, GROUP_OWNED
   */
  positionOf(who: Principal, group: string, place: TopicPartition): GroupOffset | null
  /**
   * @fails FORBIDDEN of any topic, NAME_INVALID, FIELD_INVALID, TOPIC_NOT_FOUND, GROUP_OWNED, GROUP_KIND, MEMBER_OWNED,
   *   GROUPS_TOO_MANY, MEMBERS_TOO_MANY, OVERLOADED, in this order; DISK_FULL of a new group
   */
  join(who: Principal, group: string, request: JoinRequest): Promise<JoinAnswer>
  /** @param generation that the member knows: a u64. @throws GROUP_OWNED, FORBIDDEN, MEMBER_OWNED */
  heartbeat(who: Principal, group: string, memberId: string, generation: GroupOffset): HeartbeatAnswer
  /** Also of an unknown member or group: then nothing happens. @throws GROUP_OWNED, FORBIDDEN, MEMBER_OWNED */
  leave(who: Principal, group: string, memberId: string): void
  /** @throws GROUP_NOT_FOUND, GROUP_OWNED, FORBIDDEN, MEMBER_NOT_FOUND, MEMBER_OWNED */
  assignment(who: Principal, group: string, memberId: string): Omit<JoinAnswer, 'memberId'>
  /**
   * Connects a stream to a member, after assignment() said that the caller may have it; what the member may do later,
   * that says again after each onRebalanced. @returns ends it; again: nothing happens.
   */
  attach(group: string, memberId: string, stream: MemberStream): () => void
  /** The groups that the caller's key owns, in the order in which they were made; admin: all. */
  list(who: Principal): Promise<GroupDescription[]>
  /** One of them. @fails GROUP_NOT_FOUND, GROUP_OWNED */
  describe(who: Principal, group: string): Promise<GroupDescription>
  /** Forgets a group and its offsets, durably. @fails GROUP_NOT_FOUND, GROUP_OWNED, GROUP_NOT_EMPTY; DISK_FULL */
  remove(who: Principal, group: string): Promise<void>
  /**
   * Commits a place in every partition named: as commit() does, so an unknown group is made. @returns what it is now.
   * @fails what commit() fails with; SHARD_DOWN, NOT_READY
   */
  reset(who: Principal, group: string, request: ResetRequest): Promise<OffsetsByTopic>
  /**
   * Moves what all groups have of a topic to where its partitions begin.
   * @fails FORBIDDEN, TOPIC_NOT_FOUND, SHARD_DOWN, NOT_READY
   */
  resetTopic(who: Principal, topic: string): Promise<{ readonly groups: number; readonly entries: number }>
}
