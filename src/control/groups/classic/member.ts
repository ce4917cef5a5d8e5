/**
 * One member of a classic group. Main thread only. Owned by its roster: nobody else changes one.
 */
import type {
  ClassicJoin,
  ClassicJoinAnswer,
  ClassicProtocol,
  ClassicSyncAnswer
} from '../../../model/classic-groups.ts'

/** Is called once, maybe before the call that asked returns: it may only note the answer. */
export type OnJoined = (answer: ClassicJoinAnswer) => void
export type OnSynced = (answer: ClassicSyncAnswer) => void

export interface ClassicMember {
  id: string
  readonly instanceId: string | null
  clientId: string
  clientHost: string
  sessionTimeoutMs: number
  rebalanceTimeoutMs: number
  protocols: readonly ClassicProtocol[]
  assignment: Buffer
  /** Monotonic. While it waits for an answer it counts as seen. */
  seenMs: number
  /** A JoinGroup that is not answered. */
  joining: OnJoined | null
  /** A SyncGroup that is not answered. */
  syncing: OnSynced | null
  /** Was told a generation. Before, nobody but its first connection knows it. */
  isKnown: boolean
}

export const noBytes = Buffer.alloc(0)

/** What a member takes in memory beside the bytes it brings, about. */
const MEMBER_BYTES = 512

export function memberOf(join: ClassicJoin, id: string, nowMs: number): ClassicMember {
  const { instanceId, clientId, clientHost, sessionTimeoutMs, rebalanceTimeoutMs, protocols } = join
  return {
    id,
    instanceId,
    clientId,
    clientHost,
    sessionTimeoutMs,
    rebalanceTimeoutMs,
    protocols,
    assignment: noBytes,
    seenMs: nowMs,
    joining: null,
    syncing: null,
    isKnown: false
  }
}

/** Bytes that a member takes: what it says of itself, without its assignment. */
export function bytesOf(said: Pick<ClassicJoin, 'clientId' | 'clientHost' | 'instanceId' | 'protocols'>): number {
  const { clientId, clientHost, instanceId, protocols } = said
  // The member id has the client id in it.
  const names = 2 * clientId.length + clientHost.length + (instanceId?.length ?? 0)
  return protocols.reduce((sum, { name, metadata }) => sum + name.length + metadata.length, MEMBER_BYTES + names)
}

/** What it says under a protocol. */
export function metadataOf(member: ClassicMember, protocolName: string | null): Buffer {
  return member.protocols.find(({ name }) => name === protocolName)?.metadata ?? noBytes
}

/** Says what it said before: another join with that changes nothing. */
export function hasSaid(member: ClassicMember, protocols: readonly ClassicProtocol[]): boolean {
  if (member.protocols.length !== protocols.length) return false
  return member.protocols.every(({ name, metadata }, index) => {
    const other = protocols[index]
    return other !== undefined && other.name === name && other.metadata.equals(metadata)
  })
}
