/** The bodies of group requests: JSON types checked here, meaning by the broker. Pure; main thread. */
import { BrokerError } from '../../model/errors.ts'
import type { GroupOffset, JoinRequest, ResetRequest, ResetTarget, TopicPartition } from '../../model/groups.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'

const U32_MAX = 0xffff_ffffn
const U64_MAX = 0xffff_ffff_ffff_ffffn
const I64_MIN = -(2n ** 63n)

type Fields = { [field: string]: ExactJson }

function fault(field: string, problem: string): BrokerError {
  return new BrokerError('FIELD_INVALID', { field, problem })
}

function fieldsOf(value: ExactJson, field: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(field, 'must be an object')
  return value
}

function textOf(fields: Fields, name: string): string {
  const value = fields[name] ?? null
  if (value === null) throw fault(name, 'is missing')
  if (typeof value !== 'string') throw fault(name, 'must be a string')
  return value
}

/** A whole number of that range. */
function wholeOf(fields: Fields, name: string, max: bigint): bigint {
  const value = fields[name] ?? null
  if (value === null) throw fault(name, 'is missing')
  if (typeof value !== 'bigint' || value < 0n || value > max)
    throw fault(name, `must be a whole number from 0 to ${max}`)
  return value
}

/** A number where that is exact. */
function narrow(value: bigint): GroupOffset {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}

export interface CommitForm {
  readonly place: TopicPartition
  readonly offset: GroupOffset
}

/** The body of `POST /groups/:group/commit`. @throws BrokerError FIELD_INVALID */
export function readCommit(body: ExactJson): CommitForm {
  const fields = fieldsOf(body, 'body')
  const place = { topic: textOf(fields, 'topic'), partition: Number(wholeOf(fields, 'partition', U32_MAX)) }
  return { place, offset: narrow(wholeOf(fields, 'offset', U64_MAX)) }
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
  return { memberId: textOf(fields, 'member_id'), generation: narrow(wholeOf(fields, 'generation', U64_MAX)) }
}

/** The body of `POST /groups/:group/leave`. @throws BrokerError FIELD_INVALID */
export function readLeave(body: ExactJson): string {
  return textOf(fieldsOf(body, 'body'), 'member_id')
}

/** The body of `POST /groups/:group/reset`. @throws BrokerError FIELD_INVALID */
export function readReset(body: ExactJson): ResetRequest {
  const fields = fieldsOf(body, 'body')
  const topic = textOf(fields, 'topic')
  const isWhole = (fields['partition'] ?? null) === null
  const partition = isWhole ? null : Number(wholeOf(fields, 'partition', U32_MAX))
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
  return textOf(fieldsOf(body, 'body'), 'topic')
}
