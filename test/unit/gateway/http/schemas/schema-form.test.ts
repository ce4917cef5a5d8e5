/** Ids of schemas in paths, on the native routes and on those for Confluent's clients. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSchemaId } from '../../../../../src/gateway/http/schemas/schema-form.ts'
import { BrokerError } from '../../../../../src/model/errors.ts'

function refusalOf(text: string): BrokerError {
  try {
    readSchemaId(text)
  } catch (error) {
    assert.ok(error instanceof BrokerError)
    return error
  }
  return assert.fail(`'${text}' is taken for an id`)
}

test('an id is a whole number, and one beyond all that are given is that of no schema', () => {
  assert.deepEqual([readSchemaId('1'), readSchemaId('007')], [1, 7])
  assert.equal(refusalOf('18446744073709551615').code, 'SCHEMA_NOT_FOUND')
  for (const text of ['', 'x', '-1', '1.0', '18446744073709551616']) {
    const { code, details } = refusalOf(text)
    assert.deepEqual([code, details['field']], ['FIELD_INVALID', 'id'])
  }
})
