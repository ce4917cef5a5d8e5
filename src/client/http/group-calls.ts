/** The calls of consumer groups. Shapes as the API has them; any thread. */
import { writeExact, type Answer, type ConsumeAnswer, type HttpClient, type Whole } from './http-client.ts'

/** The next offset to read, by topic, then by partition. */
export interface OffsetsOfGroup {
  readonly offsets: Readonly<Record<string, Readonly<Record<string, Whole>>>>
  /** What Kafka clients noted beside them; absent: nothing. */
  readonly metadata?: Readonly<Record<string, Readonly<Record<string, string>>>>
}

export interface AssignmentAnswer {
  readonly generation: Whole
  readonly assignment: readonly { readonly topic: string; readonly partition: number }[]
}

export interface JoinAnswer extends AssignmentAnswer {
  readonly member_id: string
}

/** Of `ok` the generation is in `generation`, else in `current_generation`. */
export interface HeartbeatAnswer {
  readonly status: 'ok' | 'rebalance_required' | 'unknown_member'
  readonly generation?: Whole
  readonly current_generation?: Whole
}

export interface GroupAnswer {
  readonly group: string
  readonly owner: string
  readonly kind: string | null
  readonly state: string
  readonly generation: Whole
  readonly members: readonly {
    readonly member_id: string
    readonly topics: readonly string[]
    readonly partition_count: number
  }[]
  /** null: not known. */
  readonly lag_records: Whole | null
  readonly lag_seconds: number | null
}

/** Where a partition is committed. */
export interface CommitFields {
  readonly topic: string
  readonly partition: number
  readonly offset: Whole
  /** Both or none: then the commit is refused if that is no member, or the group was assigned anew since that generation. */
  readonly member_id?: string
  readonly generation?: Whole
}

/** The beginning, the end, or the first record at or after a time in Unix ms. */
export type ResetPlace = 'earliest' | 'latest' | { readonly timestamp_ms: Whole }

export interface ResetFields {
  readonly topic: string
  /** null: all of the topic. */
  readonly partition: number | null
  readonly to: ResetPlace
}

function pathOf(group: string, rest = ''): string {
  return `/groups/${encodeURIComponent(group)}${rest}`
}

export async function commitOffset(client: HttpClient, group: string, fields: CommitFields): Promise<void> {
  await client.call('POST', pathOf(group, '/commit'), writeExact({ ...fields }))
}

export function groupOffsets(client: HttpClient, group: string): Promise<Answer<OffsetsOfGroup>> {
  return client.call('GET', pathOf(group, '/offsets'))
}

/** From the committed offset on. */
export function consumeGroup(
  client: HttpClient,
  group: string,
  place: { readonly topic: string; readonly partition: number; readonly maxRecords: number }
): Promise<Answer<ConsumeAnswer>> {
  const query = `topic=${encodeURIComponent(place.topic)}&partition=${place.partition}&max_records=${place.maxRecords}`
  return client.call('GET', pathOf(group, `/consume?${query}`))
}

/** @param memberId null: the broker picks one. */
export function joinGroup(
  client: HttpClient,
  group: string,
  topics: readonly string[],
  memberId: string | null
): Promise<Answer<JoinAnswer>> {
  return client.call('POST', pathOf(group, '/join'), JSON.stringify({ topics, member_id: memberId }))
}

export function heartbeatGroup(
  client: HttpClient,
  group: string,
  memberId: string,
  generation: Whole
): Promise<Answer<HeartbeatAnswer>> {
  return client.call('POST', pathOf(group, '/heartbeat'), writeExact({ member_id: memberId, generation }))
}

export async function leaveGroup(client: HttpClient, group: string, memberId: string): Promise<void> {
  await client.call('POST', pathOf(group, '/leave'), JSON.stringify({ member_id: memberId }))
}

export function groupAssignment(
  client: HttpClient,
  group: string,
  memberId: string
): Promise<Answer<AssignmentAnswer>> {
  return client.call('GET', pathOf(group, `/assignment?member_id=${encodeURIComponent(memberId)}`))
}

export function describeGroup(client: HttpClient, group: string): Promise<Answer<GroupAnswer>> {
  return client.call('GET', pathOf(group))
}

export function listGroups(client: HttpClient): Promise<Answer<{ readonly groups: readonly GroupAnswer[] }>> {
  return client.call('GET', '/groups')
}

export async function removeGroup(client: HttpClient, group: string): Promise<void> {
  await client.call('DELETE', pathOf(group))
}

/** @returns all that the group has committed then. */
export function resetGroup(client: HttpClient, group: string, fields: ResetFields): Promise<Answer<OffsetsOfGroup>> {
  return client.call('POST', pathOf(group, '/reset'), writeExact({ ...fields }))
}

/** Every group on the topic goes back to its first offset. */
export function resetOffsets(
  client: HttpClient,
  topic: string
): Promise<Answer<{ readonly groups_affected: number; readonly entries_reset: number }>> {
  return client.call('POST', '/admin/reset-offsets', JSON.stringify({ topic }))
}
