/**
 * The bodies of topic requests: JSON types checked here, meaning by the broker. Pure; main thread.
 * Integers are exact: they arrive as bigint and stay so above 2^53 − 1 (D25).
 */
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { CreateTopicRequest } from '../../model/requests.ts'
import { cleanupPolicies, partitioners, timestampTypes } from '../../model/topic.ts'
import type { TopicConfigPatch } from '../../model/topic.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'
import { choiceOf, fault, fieldsOf, narrow, requireText, requireWhole, U32_MAX, U64_MAX, type Fields } from './form.ts'

/** What a limit may be, for the text that refuses it: the least number, which the broker judges, and what −1 stands for. */
interface LimitRange {
  readonly least: number
  readonly cleared: string
}

const retained: LimitRange = { least: 0, cleared: 'never' }
const ofBroker: LimitRange = { least: 1, cleared: "the broker's" }

/** u64 or −1; undefined if it is absent or null. */
function limitOf(fields: Fields, name: string, path: string, range: LimitRange): number | bigint | undefined {
  const value = fields[name] ?? null
  if (value === null) return undefined
  if (typeof value !== 'bigint' || value < -1n || value > U64_MAX) {
    const { least, cleared } = range
    throw fault(path + name, `must be a whole number from ${least} to ${U64_MAX}, -1 for ${cleared}, or null`)
  }
  return narrow(value)
}

function tombstoneRetentionOf(fields: Fields, path: string): number | bigint | undefined {
  const value = fields['tombstone_retention_ms'] ?? null
  if (value === null) return undefined
  if (typeof value !== 'bigint' || value < 0n || value > U64_MAX) {
    throw fault(`${path}tombstone_retention_ms`, `must be a whole number from 0 to ${U64_MAX}, or null`)
  }
  return narrow(value)
}

function segmentBytesOf(fields: Fields, path: string): number | undefined {
  const value = fields['segment_bytes'] ?? null
  if (value === null) return undefined
  const field = `${path}segment_bytes`
  if (typeof value !== 'bigint') throw fault(field, 'must be a whole number or null')
  const { segmentBytesMin: min, segmentBytesMax: max } = limits
  // The broker judges the range; this keeps a number that no double holds from being rounded in the message.
  if (value < 0n || value > BigInt(max)) {
    throw new BrokerError('FIELD_RANGE', { field, value: value.toString(), min, max })
  }
  return Number(value)
}

function validateSchemaOf(fields: Fields, path: string): boolean | undefined {
  const value = fields['validate_schema'] ?? null
  if (value === null) return undefined
  if (typeof value !== 'boolean') throw fault(`${path}validate_schema`, 'must be true, false or null')
  return value
}

function patchOf(fields: Fields, path: string): TopicConfigPatch {
  const retentionMs = limitOf(fields, 'retention_ms', path, retained)
  const retentionBytes = limitOf(fields, 'retention_bytes', path, retained)
  const cleanupPolicy = choiceOf(fields, 'cleanup_policy', cleanupPolicies, path)
  const segmentBytes = segmentBytesOf(fields, path)
  const tombstoneRetentionMs = tombstoneRetentionOf(fields, path)
  const validateSchema = validateSchemaOf(fields, path)
  const timestampType = choiceOf(fields, 'message_timestamp_type', timestampTypes, path)
  const messageBytes = limitOf(fields, 'max_message_bytes', path, ofBroker)
  const segmentMs = limitOf(fields, 'segment_ms', path, ofBroker)
  const partitioner = choiceOf(fields, 'partitioner', partitioners, path)
  return {
    ...(retentionMs === undefined ? {} : { retention_ms: retentionMs }),
    ...(retentionBytes === undefined ? {} : { retention_bytes: retentionBytes }),
    ...(cleanupPolicy === null ? {} : { cleanup_policy: cleanupPolicy }),
    ...(segmentBytes === undefined ? {} : { segment_bytes: segmentBytes }),
    ...(tombstoneRetentionMs === undefined ? {} : { tombstone_retention_ms: tombstoneRetentionMs }),
    ...(validateSchema === undefined ? {} : { validate_schema: validateSchema }),
    ...(timestampType === null ? {} : { message_timestamp_type: timestampType }),
    // Where a number would be rounded it is far above any limit.
    ...(messageBytes === undefined ? {} : { max_message_bytes: Number(messageBytes) }),
    ...(segmentMs === undefined ? {} : { segment_ms: segmentMs }),
    ...(partitioner === null ? {} : { partitioner })
  }
}

/** The body of `POST /topics`. One partition if none are named. @throws BrokerError FIELD_INVALID, FIELD_RANGE */
export function readCreateTopic(body: ExactJson): CreateTopicRequest {
  const fields = fieldsOf(body, 'body')
  const name = requireText(fields, 'name')
  const partitions = fields['partitions'] ?? 1n
  if (typeof partitions !== 'bigint' || partitions < 0n || partitions > U32_MAX) {
    throw fault('partitions', `must be a whole number from 1 to ${limits.partitionsMax}`)
  }
  const config = fields['config'] ?? null
  return {
    name,
    partitions: Number(partitions),
    config: config === null ? {} : patchOf(fieldsOf(config, 'config'), 'config.')
  }
}

/** The body of `PUT /topics/:name/config`. @throws BrokerError FIELD_INVALID, FIELD_RANGE */
export function readConfigPatch(body: ExactJson): TopicConfigPatch {
  return patchOf(fieldsOf(body, 'body'), '')
}

/** The body of `POST /topics/:name/partitions`. @throws BrokerError FIELD_INVALID */
export function readAddPartitions(body: ExactJson): number {
  return Number(requireWhole(fieldsOf(body, 'body'), 'partitions', U32_MAX))
}

/** The body of `POST /topics/:name/delete-records`. @throws BrokerError FIELD_INVALID */
export function readDeleteRecords(body: ExactJson): { partition: number; offset: bigint } {
  const fields = fieldsOf(body, 'body')
  const partition = requireWhole(fields, 'partition', U32_MAX)
  return { partition: Number(partition), offset: requireWhole(fields, 'offset', U64_MAX) }
}
