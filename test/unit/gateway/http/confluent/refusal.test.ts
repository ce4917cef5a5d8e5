/** Which code of Confluent's registry an error of this broker is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { confluentRefusal } from '../../../../../src/gateway/http/confluent/refusal.ts'
import { BrokerError, errorTable, type ErrorCode, type ErrorDetails } from '../../../../../src/model/errors.ts'

function codesOf(code: ErrorCode, details: ErrorDetails = {}, method = 'GET'): readonly unknown[] {
  const { status, body } = confluentRefusal(method, new BrokerError(code, details), 'what is told')
  const { error_code: errorCode, ...rest } = JSON.parse(body.toString()) as Record<string, unknown>
  assert.deepEqual(Object.keys(rest), ['message'])
  return [status, errorCode, rest['message']]
}

test('what was not found is told apart, for clients register upon it', () => {
  const text = 'what is told'
  assert.deepEqual(codesOf('SUBJECT_NOT_FOUND'), [404, 40401, text])
  assert.deepEqual(codesOf('VERSION_NOT_FOUND'), [404, 40402, text])
  assert.deepEqual(codesOf('SCHEMA_NOT_FOUND'), [404, 40403, text])
  assert.deepEqual(codesOf('LEVEL_NOT_FOUND'), [404, 40408, text])
  assert.deepEqual(codesOf('ROUTE_NOT_FOUND'), [404, 404, text])
})

test('what is not valid is told apart by the field', () => {
  for (const [field, errorCode] of [
    ['schema', 42201],
    ['schemaType', 42201],
    ['references', 42201],
    ['version', 42202],
    ['compatibility', 42203]
  ] as const)
    assert.deepEqual(codesOf('FIELD_INVALID', { field }).slice(0, 2), [422, errorCode], field)
  for (const field of ['body', 'path', 'verbose', 'constructor', 'toString'])
    assert.deepEqual(codesOf('FIELD_INVALID', { field }).slice(0, 2), [400, 400], field)
  assert.deepEqual(codesOf('NAME_INVALID').slice(0, 2), [422, 42208])
})

test('every error has a code that begins with its status, and only our own failures are those of 5xx', () => {
  for (const code of Object.keys(errorTable) as ErrorCode[]) {
    const [status, errorCode] = codesOf(code)
    assert.ok(String(errorCode).startsWith(String(status)), code)
    // Clients send again what failed with 5xx.
    assert.equal(Number(status) >= 500, errorTable[code].http >= 500, code)
  }
})

test('a refused deletion says that there is none', () => {
  assert.match(String(codesOf('METHOD_NOT_ALLOWED', {}, 'DELETE')[2]), /nothing of this registry is ever deleted$/)
  assert.equal(codesOf('METHOD_NOT_ALLOWED', {}, 'PATCH')[2], 'what is told')
})
