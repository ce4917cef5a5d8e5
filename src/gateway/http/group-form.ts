/** The bodies of group requests: JSON types checked here, meaning by the broker. Pure; main thread. */
import type {
  CommittingMember,
  GroupOffset,
  JoinRequest,
  ResetRequest,
  ResetTarget,
  TopicPartition
} from '../../model/groups.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'
import { fault, fieldsOf, I64_MIN, narrow, requireText, requireWhole, U32_MAX, U64_MAX } from './form.ts'

export interface CommitForm {
  readonly place: TopicPartition
  readonly offset: GroupOffset
  /** null: it does not say which member commits. */
  readonly member: CommittingMember | null
}

/** The body of `POST /groups/:group/commit`. @throws BrokerError FIELD_INVALID */
export function readCommit(body: ExactJson): CommitForm {
  const fields = fieldsOf(body, 'body')
  const place = { topic: requireText(fields, 'topic'), partition: Number(requireWhole(fields, 'partition', U32_MAX)) }
  return { place, offset: narrow(requireWhole(fields, 'offset', U64_MAX)), member: memberOf(fields) }
}

/** Both or neither: half of it would be checked by half. */
function memberOf(fields: Readonly<Record<string, ExactJson>>): CommittingMember | null {
  if ((fields['member_id'] ?? null) === null && (fields['generation'] ?? null) === null) return null
  return readHeartbeat(fields)
}

/** The body of `POST /groups/:group/join`. @throws BrokerError FIELD_INVALID */
export function readJoin(body: ExactJson): JoinRequest {
  const fields = fieldsOf(body, 'body')
  const topics = fields['topics'] ?? null
  if (topics === null) throw fault('topics', 'is missing')
  if (!Array.isArray(topics)) throw fault('topics', 'must be a list of names')
  const names = topics.map((topic, index) => {
    if (typeof topic !== 'string') throw fault(`topics[${index}]`, 'must be a string')
    return topic
  })
  const memberId = fields['member_id'] ?? null
  if (memberId !== null && typeof memberId !== 'string') throw fault('member_id', 'must be a string or null')
  return { topics: names, memberId }
}

export interface HeartbeatForm {
  readonly memberId: string
  readonly generation: GroupOffset
}

/** The body of `POST /groups/:group/heartbeat`. @throws BrokerError FIELD_INVALID */
export function readHeartbeat(body: ExactJson): HeartbeatForm {
  const fields = fieldsOf(body, 'body')
  return { memberId: requireText(fields, 'member_id'), generation: narrow(requireWhole(fields, 'generation', U64_MAX)) }
}

/** The body of `POST /groups/:group/leave`. @throws BrokerError FIELD_INVALID */
export function readLeave(body: ExactJson): string {
  return requireText(fieldsOf(body, 'body'), 'member_id')
}

/** The body of `POST /groups/:group/reset`. @throws BrokerError FIELD_INVALID */
export function readReset(body: ExactJson): ResetRequest {
  const fields = fieldsOf(body, 'body')
  const topic = requireText(fields, 'topic')
  const isWhole = (fields['partition'] ?? null) === null
  const partition = isWhole ? null : Number(requireWhole(fields, 'partition', U32_MAX))
  return { topic, partition, to: targetOf(fields['to'] ?? null) }
}

function targetOf(value: ExactJson): ResetTarget {
  if (value === null) throw fault('to', 'is missing')
  if (value === 'earliest' || value === 'latest') return value
  const time = typeof value === 'object' && !Array.isArray(value) ? value['timestamp_ms'] : null
  if (typeof time === 'bigint' && time >= I64_MIN && time <= U64_MAX) return { timestampMs: time }
  throw fault('to', `must be "earliest", "latest" or {"timestamp_ms": a whole number from ${I64_MIN} to ${U64_MAX}}`)
}

/** The body of `POST /admin/reset-offsets`. @throws BrokerError FIELD_INVALID */
export function readResetTopic(body: ExactJson): string {
  return requireText(fieldsOf(body, 'body'), 'topic')
}
