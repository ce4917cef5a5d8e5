/** Bodies, versions and levels of the Confluent-compatible routes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFlag, readLevel, readSchema, readVersion } from '../../../../../src/gateway/http/confluent/form.ts'
import { BrokerError } from '../../../../../src/model/errors.ts'
import { compatibilityModes } from '../../../../../src/model/schemas.ts'
import { confluentLevels, levelOf } from '../../../../../src/wire/json/confluent-json.ts'

/** @param field that FIELD_INVALID names. */
function assertFault(read: () => unknown, field: string): void {
  assert.throws(read, (error: unknown) => {
    assert.ok(error instanceof BrokerError)
    assert.deepEqual([error.code, error.details['field']], ['FIELD_INVALID', field], error.message)
    return true
  })
}

test('a schema without a type is Avro, and the names of types are exact', () => {
  const read = (rest: Record<string, string | null>): unknown => readSchema('s', { schema: 'x', ...rest })
  assert.deepEqual(read({}), { subject: 's', type: 'avro', schema: 'x' })
  for (const [schemaType, type] of [
    [null, 'avro'],
    ['AVRO', 'avro'],
    ['JSON', 'json_schema'],
    ['PROTOBUF', 'protobuf']
  ] as const)
    assert.deepEqual(read({ schemaType }), { subject: 's', type, schema: 'x' })
  for (const schemaType of ['json', 'json_schema', ' AVRO', '']) assertFault(() => read({ schemaType }), 'schemaType')
})

test('what a schema cannot be kept without is refused, and what says nothing is passed over', () => {
  const schema = '{}'
  const nothing = { references: [], metadata: null, ruleSet: null, id: -1n, version: 0n }
  assert.equal(readSchema('s', { schema, ...nothing }).schema, schema)
  assertFault(() => readSchema('s', { schema, references: [null] }), 'references')
  assertFault(() => readSchema('s', { schema, references: 'x' }), 'references')
  assertFault(() => readSchema('s', { schema, metadata: {} }), 'metadata')
  assertFault(() => readSchema('s', { schema, ruleSet: {} }), 'ruleSet')
  assertFault(() => readSchema('s', {}), 'schema')
  assertFault(() => readSchema('s', []), 'body')
})

test('a version is a number of 31 bits from 1, or the latest under either name', () => {
  for (const [text, version] of [
    ['1', 1],
    ['2147483647', 2_147_483_647],
    ['latest', null],
    ['-1', null]
  ] as const)
    assert.equal(readVersion(text), version)
  for (const text of ['0', '-0', '-2', '2147483648', '9'.repeat(400), '', '1.0', '1e1', 'Latest', ' 1'])
    assertFault(() => readVersion(text), 'version')
})

test('levels are the modes in capitals, default apart, and are read whatever their case', () => {
  const modes = compatibilityModes.filter(mode => mode !== 'default')
  assert.deepEqual([...confluentLevels].sort(), modes.map(levelOf).sort())
  for (const mode of modes) {
    assert.equal(readLevel({ compatibility: levelOf(mode) }), mode)
    assert.equal(readLevel({ compatibility: mode }), mode)
  }
  assert.equal(levelOf('default'), 'BACKWARD')
  for (const compatibility of ['DEFAULT', 'default', '', 'backwards', null, 5n, {}])
    assertFault(() => readLevel({ compatibility }), 'compatibility')
})

test('a flag is true or false, and false if it is not there', () => {
  assert.deepEqual(
    ['verbose=true', 'verbose=false', '', 'other=true'].map(query => readFlag(query, 'verbose')),
    [true, false, false, false]
  )
  for (const query of ['verbose', 'verbose=', 'verbose=1', 'verbose=TRUE', 'verbose=true&verbose=true'])
    assertFault(() => readFlag(query, 'verbose'), 'verbose')
})
