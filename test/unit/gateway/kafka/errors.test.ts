/** What Kafka clients are told of the broker's errors. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { errorName } from '../../../../src/gateway/kafka/error-names.ts'
import { recordErrorsOf, throttleMsOf, toldOf, toldOfConfig } from '../../../../src/gateway/kafka/refusals.ts'
import { BrokerError, errorTable, type ErrorCode } from '../../../../src/model/errors.ts'
import { apis } from '../../../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../../../src/wire/kafka/errors.ts'
import { responseFrame } from '../../../../src/wire/kafka/headers.ts'

/** Of what no Kafka request can meet: routes and bodies of HTTP, frames of ES01, ways of other protocols to say a thing. */
const unknownServerError = kafkaErrors.UNKNOWN_SERVER_ERROR.code

test('every error of the broker has a code that Kafka knows', () => {
  const known = new Set<number>(Object.values(kafkaErrors).map(({ code }) => code))
  for (const [code, { kafka }] of Object.entries(errorTable)) assert.ok(known.has(kafka), `${code} has ${kafka}`)
})

test('what may be tried again says so to Kafka clients, and what may be written is not told as a plain failure', () => {
  const isRetriable = new Map<number, boolean>(Object.values(kafkaErrors).map(error => [error.code, error.isRetriable]))
  const met: readonly ErrorCode[] = [
    'TOPIC_NOT_FOUND',
    'DISK_FULL',
    'WRITE_FAILED',
    'SHARD_DOWN',
    'SHARD_DIED',
    'OVERLOADED',
    'STOPPING',
    'READ_FAILED',
    'RATE_LIMITED'
  ]
  // A producer takes UNKNOWN_SERVER_ERROR for final, and its application then writes again (KAFKA-14034).
  for (const code of met) assert.equal(isRetriable.get(errorTable[code].kafka), true, code)
  for (const code of met) assert.notEqual(errorTable[code].kafka, unknownServerError, code)
})

test('a bug is no refusal: it is thrown on', () => {
  const bug = new Error('a bug')
  assert.throws(() => toldOf(bug), bug)
  assert.throws(() => toldOfConfig(bug), bug)
})

test('a setting that is wrong is INVALID_CONFIG, a number of partitions INVALID_PARTITIONS', () => {
  const range = { value: '0', min: 1, max: 5 }
  const codeOf = (field: string): number => toldOfConfig(new BrokerError('FIELD_RANGE', { field, ...range })).errorCode
  assert.equal(codeOf('partitions'), kafkaErrors.INVALID_PARTITIONS.code)
  assert.equal(codeOf('config.retention_ms'), kafkaErrors.INVALID_CONFIG.code)
  assert.equal(toldOfConfig(new BrokerError('TOPIC_EXISTS', { topic: 't' })).errorCode, 36)
})

test('one topic more than there may be is POLICY_VIOLATION: nothing is wrong with its settings', () => {
  const told = toldOfConfig(new BrokerError('TOPICS_TOO_MANY', { topic: 't', limit: 5 }))
  assert.equal(told.errorCode, kafkaErrors.POLICY_VIOLATION.code)
})

test('only a quota throttles', () => {
  const limited = new BrokerError('RATE_LIMITED', { problem: 'x', seconds: '1.3', retryAfterSeconds: 2 })
  assert.equal(throttleMsOf(limited), 1300)
  assert.equal(throttleMsOf(new BrokerError('STOPPING')), 0)
})

test('the codes of a response are found at any depth, and have their names', () => {
  const nothing = { committedOffset: -1, metadata: null }
  const partitions = [
    { ...nothing, partitionIndex: 0, errorCode: -1 },
    { ...nothing, partitionIndex: 1, errorCode: 0 }
  ]
  const response = { errorCode: 25, topics: [{ name: 't', partitions }] }
  const { errorCodes } = responseFrame(apis.offsetFetch, 5, 1, { ...response, groups: [] })
  assert.deepEqual(errorCodes.map(errorName).sort(), ['UNKNOWN_MEMBER_ID', 'UNKNOWN_SERVER_ERROR'])
  assert.equal(errorName(4711), '4711')
})

test('an error about a record of a batch says which one', () => {
  const error = new BrokerError('BATCH_INVALID', { problem: 'it has no key', index: 3 })
  assert.deepEqual(recordErrorsOf(error), [{ batchIndex: 3, batchIndexErrorMessage: error.message }])
  assert.deepEqual(recordErrorsOf(new BrokerError('BATCH_INVALID', { problem: 'it is not alone' })), [])
})
