/**
 * What a topic may be called and configured to: the checks of the HTTP API's sections 1.14 and 3, protocol-neutral.
 * Pure. Types are checked by the gateways (an integer is an integer, exact as bigint above 2^53 − 1); ranges here.
 */
import { BrokerError } from '../model/errors.ts'
import { limits } from '../model/limits.ts'
import { cleanupPolicies, partitioners, timestampTypes, valueSubjectOf } from '../model/topic.ts'
import type { TopicConfig, TopicConfigPatch } from '../model/topic.ts'
import { echo } from './echo.ts'

const U64_MAX = 18_446_744_073_709_551_615n
const PRODUCER_RULE = `1 to ${limits.nameBytesMax} of A-Z a-z 0-9 . _ -`
const NAME_RULE = `${PRODUCER_RULE}, and neither '.' nor '..'`
const namePattern = /^[A-Za-z0-9._-]+$/

/** @throws BrokerError NAME_INVALID */
export function checkTopicName(name: string): void {
  const isValid = namePattern.test(name) && name.length <= limits.nameBytesMax && name !== '.' && name !== '..'
  if (!isValid) throw new BrokerError('NAME_INVALID', { field: 'name', value: echo(name), rule: NAME_RULE })
}

/** @throws BrokerError NAME_INVALID */
export function checkProducerId(id: string): void {
  if (namePattern.test(id) && id.length <= limits.nameBytesMax) return
  throw new BrokerError('NAME_INVALID', { field: 'producer_id', value: echo(id), rule: PRODUCER_RULE })
}

/** @throws BrokerError NAME_INVALID */
export function checkGroupName(name: string): void {
  if (isGroupName(name)) return
  throw new BrokerError('NAME_INVALID', { field: 'group', value: echo(name), rule: NAME_RULE })
}

export function isGroupName(name: string): boolean {
  return namePattern.test(name) && name.length <= limits.nameBytesMax && name !== '.' && name !== '..'
}

/** Of a schema. @throws BrokerError NAME_INVALID */
export function checkSubject(subject: string): void {
  if (namePattern.test(subject) && subject.length <= limits.nameBytesMax) return
  throw new BrokerError('NAME_INVALID', { field: 'subject', value: echo(subject), rule: PRODUCER_RULE })
}

/** @throws BrokerError NAME_INVALID */
export function checkMemberId(id: string): void {
  if (namePattern.test(id) && id.length <= limits.nameBytesMax) return
  throw new BrokerError('NAME_INVALID', { field: 'member_id', value: echo(id), rule: PRODUCER_RULE })
}

/** @throws BrokerError FIELD_RANGE */
export function checkPartitionCount(partitions: number): void {
  if (Number.isInteger(partitions) && partitions >= 1 && partitions <= limits.partitionsMax) return
  throw outOfRange('partitions', partitions, 1, limits.partitionsMax)
}

/**
 * The configuration that a change leads to. Absent and null fields keep their value; −1 clears a retention limit.
 *
 * @param fieldPrefix stands before field names in errors: `config.` where the fields are nested.
 * @param batchBytesMax of this broker: no topic takes more.
 * @throws BrokerError FIELD_RANGE, FIELD_INVALID
 */
export function changedConfig(
  base: TopicConfig,
  patch: TopicConfigPatch,
  fieldPrefix: string,
  batchBytesMax: number
): TopicConfig {
  return {
    retention_ms: changedLimit(base.retention_ms, patch.retention_ms, `${fieldPrefix}retention_ms`),
    retention_bytes: changedLimit(base.retention_bytes, patch.retention_bytes, `${fieldPrefix}retention_bytes`),
    cleanup_policy: changedChoice(
      base.cleanup_policy,
      patch.cleanup_policy,
      cleanupPolicies,
      `${fieldPrefix}cleanup_policy`
    ),
    segment_bytes: changedSegmentBytes(base.segment_bytes, patch.segment_bytes, `${fieldPrefix}segment_bytes`),
    tombstone_retention_ms: checkedU64(
      patch.tombstone_retention_ms ?? base.tombstone_retention_ms,
      0,
      `${fieldPrefix}tombstone_retention_ms`
    ),
    validate_schema: patch.validate_schema ?? base.validate_schema,
    message_timestamp_type: changedChoice(
      base.message_timestamp_type,
      patch.message_timestamp_type,
      timestampTypes,
      `${fieldPrefix}message_timestamp_type`
    ),
    max_message_bytes: changedMessageBytes(
      base.max_message_bytes,
      patch.max_message_bytes,
      batchBytesMax,
      `${fieldPrefix}max_message_bytes`
    ),
    segment_ms: changedSegmentMs(base.segment_ms, patch.segment_ms, `${fieldPrefix}segment_ms`),
    partitioner: changedChoice(base.partitioner, patch.partitioner, partitioners, `${fieldPrefix}partitioner`)
  }
}

/**
 * That there can be a subject for the values of such a topic.
 * @throws BrokerError FIELD_INVALID
 */
export function checkValidation(name: string, config: TopicConfig, fieldPrefix: string): void {
  const { nameBytesMax: limit } = limits
  const subject = valueSubjectOf(name)
  if (!config.validate_schema || subject.length <= limit) return
  const problem = `subject '${subject}' would have ${subject.length} characters: a subject has at most ${limit}; nothing was changed`
  throw new BrokerError('FIELD_INVALID', { field: `${fieldPrefix}validate_schema`, problem })
}

type Limit = number | bigint | null

function changedLimit(base: Limit, value: Limit | undefined, field: string): Limit {
  if (value === undefined || value === null) return base
  const checked = checkedU64(value, -1, field)
  return checked === -1 ? null : checked
}

/** Within [min, 2^64 − 1]; a number wherever a number is exact, so that equal values have one form (D25). */
function checkedU64(value: number | bigint, min: number, field: string): number | bigint {
  const isExact = typeof value === 'bigint' || Number.isSafeInteger(value)
  if (!isExact || value < min || value > U64_MAX) throw outOfRange(field, value, min, U64_MAX)
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}

function changedSegmentBytes(base: number, value: number | null | undefined, field: string): number {
  if (value === undefined || value === null) return base
  const { segmentBytesMin: min, segmentBytesMax: max } = limits
  if (!Number.isInteger(value) || value < min || value > max) throw outOfRange(field, value, min, max)
  return value
}

/** −1: what the broker takes. */
function changedMessageBytes(
  base: number | null,
  value: number | null | undefined,
  max: number,
  field: string
): number | null {
  if (value === undefined || value === null) return base
  if (value === -1) return null
  if (!Number.isInteger(value) || value < 1 || value > max) throw outOfRange(field, value, 1, max)
  return value
}

/** −1: that of the broker. A segment that ends at once would be one a record. */
function changedSegmentMs(base: Limit, value: Limit | undefined, field: string): Limit {
  if (value === 0) throw outOfRange(field, value, 1, U64_MAX)
  return changedLimit(base, value, field)
}

function changedChoice<T extends string>(
  base: T,
  value: T | null | undefined,
  choices: readonly T[],
  field: string
): T {
  if (value === undefined || value === null) return base
  const known = choices.find(choice => choice === value)
  if (known !== undefined) return known
  const allowed = choices.map(choice => `'${choice}'`).join(', ')
  throw new BrokerError('FIELD_INVALID', { field, problem: `'${echo(value)}' is not one of ${allowed}` })
}

function outOfRange(field: string, value: number | bigint, min: number, max: number | bigint): BrokerError {
  return new BrokerError('FIELD_RANGE', { field, value: String(value), min, max: String(max) })
}
