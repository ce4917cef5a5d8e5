/** Schemas that were made to take long, or to use up the stack, are answered: what is too much is refused in words. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SchemaText, SchemaType } from '../../../src/model/schemas.ts'
import { incompatibilities, parseProblem } from '../../../src/schemas/check.ts'

function range<Value>(count: number, make: (index: number) => Value): Value[] {
  return Array.from({ length: count }, (_, index) => make(index))
}
function named(count: number, make: (index: number) => unknown): object {
  return Object.fromEntries(range(count, index => [`n${index}`, make(index)]))
}
function text(type: SchemaType, schema: unknown): SchemaText {
  return { type, schema: typeof schema === 'string' ? schema : JSON.stringify(schema) }
}
const refTo = (index: number): object => ({ $ref: `#/definitions/n${index}` })
const rooted = (definitions: object): object => ({ ...refTo(0), definitions })

test('what is nested too deeply is refused', () => {
  const deep: readonly (readonly [SchemaType, string, string])[] = [
    ['json_schema', '{"not":'.repeat(70_000) + '{}' + '}'.repeat(70_000), 'it is nested deeper than 128'],
    ['avro', '{"type":"array","items":'.repeat(20_000) + '"int"' + '}'.repeat(20_000), 'it is nested deeper than 128'],
    ['protobuf', 'message A {'.repeat(40_000) + '}'.repeat(40_000), 'max depth exceeded'],
    ['protobuf', `option (x) = ${'{a:'.repeat(50_000)}1${'}'.repeat(50_000)}; message A {}`, 'max depth exceeded']
  ]
  for (const [type, schema, problem] of deep) assert.equal(parseProblem(text(type, schema)), problem)
})

test('a pattern that is too deep for the stack is refused before any value meets it', () => {
  const pattern = '('.repeat(30_000) + ')'.repeat(30_000)
  for (const schema of [{ pattern }, { patternProperties: { [pattern]: { type: 'null' } } }]) {
    assert.match(parseProblem(text('json_schema', schema)) ?? '', /^Invalid regular expression: /)
  }
})

test('a pattern that is none, over a schema that takes anything, is a sentence of the comparison', () => {
  const before = { properties: { a: {} }, additionalProperties: false }
  for (const pattern of ['(', '('.repeat(30_000) + ')'.repeat(30_000)]) {
    const after = text('json_schema', { patternProperties: { [pattern]: {} }, additionalProperties: false })
    const found = incompatibilities(after, [text('json_schema', before)], 'backward')
    assert.equal(found.length, 1)
    assert.match(found[0] ?? '', /^the schemas cannot be compared: a name in patternProperties is no pattern: Invalid/)
  }
})

test('a chain of references that is too long is not followed', () => {
  const chain = (last: object): object =>
    rooted(named(5000, index => (index === 4999 ? last : { properties: { next: refTo(index + 1) } })))
  const found = incompatibilities(
    text('json_schema', chain({})),
    [text('json_schema', chain({ type: 'null' }))],
    'backward'
  )
  assert.deepEqual(found, ['the schemas cannot be compared: types lead into each other deeper than 500'])
})

test('references that branch 2^40 times are compared once each', () => {
  const doubling = (type: string): object =>
    rooted(named(41, index => (index === 40 ? { type } : { properties: { a: refTo(index + 1), b: refTo(index + 1) } })))
  const [before, after] = [text('json_schema', doubling('string')), text('json_schema', doubling('number'))]
  assert.deepEqual(incompatibilities(before, [before], 'full'), [])
  assert.ok(incompatibilities(after, [before], 'backward').length > 0)
})

test('definitions that all refer to each other, as alternatives, are compared', () => {
  const all = (count: number, last: object): object =>
    rooted(
      named(count, index => ({
        anyOf: [...range(count, to => ({ properties: { [`p${to}`]: refTo(to) } })), index === 3 ? last : {}]
      }))
    )
  const [before, after] = [all(20, { type: 'string' }), all(20, { type: 'number' })]
  const found = incompatibilities(text('json_schema', after), [text('json_schema', before)], 'full')
  assert.ok(found.every(each => !each.includes('cannot be compared')))
})

test('a wrong assumption about a cycle is not kept', () => {
  // `a` and `b` lead into each other; `a` differs, which only shows after `b` was found alike under the assumption.
  const ring = (type: string): object => ({
    properties: { one: { anyOf: [{ $ref: '#/definitions/a' }, { type: 'null' }] }, two: { $ref: '#/definitions/b' } },
    definitions: {
      a: { properties: { b: { $ref: '#/definitions/b' }, leaf: { type } } },
      b: { properties: { a: { $ref: '#/definitions/a' } } }
    }
  })
  const found = incompatibilities(
    text('json_schema', ring('number')),
    [text('json_schema', ring('string'))],
    'backward'
  )
  assert.ok(
    found.some(each => each.includes("at '/properties/two/properties/a/properties/leaf'")),
    found.join('\n')
  )
})

test('alternatives by the thousand are compared up to a bound', () => {
  const alternatives = (from: number): SchemaText =>
    text('json_schema', { anyOf: range(10_000, index => ({ const: from + index })) })
  assert.deepEqual(incompatibilities(alternatives(0), [alternatives(0)], 'backward'), [])
  const found = incompatibilities(alternatives(10_000), [alternatives(0)], 'backward')
  assert.deepEqual(found, ['the schemas cannot be compared: more than 500000 pairs of types would have to be compared'])
})

test('large enums and unions are compared', () => {
  const symbols = (prefix: string): SchemaText =>
    text('avro', { type: 'enum', name: 'E', symbols: range(40_000, index => `${prefix}${index}`) })
  assert.equal(incompatibilities(symbols('b'), [symbols('a')], 'backward').length, 20)
  const union = text(
    'avro',
    range(10_000, index => ({ type: 'fixed', name: `F${index}`, size: 1 }))
  )
  assert.equal(parseProblem(union), null)
  assert.deepEqual(incompatibilities(union, [union], 'full'), [])
  const values = (from: number): SchemaText => text('json_schema', { enum: range(40_000, index => `v${from + index}`) })
  assert.equal(parseProblem(values(0)), null)
  assert.equal(incompatibilities(values(1), [values(0)], 'backward').length, 1)
})

test('Avro records that all lead into each other are compared', () => {
  const records = (type: string): SchemaText =>
    text(
      'avro',
      range(60, index => ({
        type: 'record',
        name: `R${index}`,
        fields: range(index + 1, to => ({ name: `f${to}`, type: index === 59 && to === 0 ? type : `R${to}` }))
      }))
    )
  assert.deepEqual(incompatibilities(records('R0'), [records('R0')], 'full'), [])
  assert.ok(incompatibilities(records('string'), [records('int')], 'backward').length > 0)
})
