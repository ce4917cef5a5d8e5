/** Schemas parse as what they say they are, and the default rule asks what the seed asks. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SchemaText } from '../../../src/model/schemas.ts'
import { incompatibilities, parseProblem } from '../../../src/schemas/check.ts'

function json(schema: unknown): SchemaText {
  return { type: 'json_schema', schema: JSON.stringify(schema) }
}

test('a text that is no JSON, no schema or no valid schema is refused with the place', () => {
  assert.match(String(parseProblem({ type: 'json_schema', schema: '{' })), /^it is not JSON: /)
  assert.equal(parseProblem(json(5)), 'a JSON Schema is an object or a boolean')
  assert.match(String(parseProblem(json({ properties: { a: { type: 'strin' } } }))), /'\/properties\/a\/type'/)
  assert.equal(parseProblem(json({ properties: { a: { type: 'string' } } })), null)
  assert.equal(parseProblem(json(true)), null)
})

test('by default a new JSON Schema adds no required field and removes no property', () => {
  const before = json({ properties: { id: {}, x: {} }, required: ['id'] })
  const after = json({ properties: { id: {}, phone: {} }, required: ['id', 'phone'] })
  assert.deepEqual(incompatibilities(after, [before], 'default'), [
    "new schema adds required field 'phone'",
    "new schema removes property 'x'"
  ])
  assert.deepEqual(incompatibilities(json({}), [before], 'default'), [
    "new schema removes property 'id'",
    "new schema removes property 'x'"
  ])
  assert.deepEqual(
    incompatibilities(json({ properties: { id: { type: 'null' }, x: {}, y: {} } }), [before], 'default'),
    []
  )
  assert.deepEqual(incompatibilities(after, [before], 'none'), [])
  assert.deepEqual(incompatibilities(after, [], 'default'), [])
})
