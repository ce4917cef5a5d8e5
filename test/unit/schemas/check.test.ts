/** Schemas parse as what they say they are; each mode asks for its directions; the default rule asks what the seed asks. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { compatibilityModes } from '../../../src/model/schemas.ts'
import type { SchemaText } from '../../../src/model/schemas.ts'
import { limits } from '../../../src/model/limits.ts'
import { incompatibilities, parseProblem } from '../../../src/schemas/check.ts'

function json(schema: unknown): SchemaText {
  return { type: 'json_schema', schema: JSON.stringify(schema) }
}
function avro(schema: unknown): SchemaText {
  return { type: 'avro', schema: JSON.stringify(schema) }
}
function proto(body: string): SchemaText {
  return { type: 'protobuf', schema: `syntax = "proto3"; ${body}` }
}

test('the words of a refused registration are those of the specification', () => {
  const before = json({ type: 'object', properties: { id: { type: 'integer' } }, required: ['id'] })
  const after = json({
    type: 'object',
    properties: { id: { type: 'integer' }, phone: { type: 'string' } },
    required: ['id', 'phone']
  })
  assert.deepEqual(incompatibilities(after, [before], 'default'), ["new schema adds required field 'phone'"])
})

describe('the default mode', () => {
  const before = json({ properties: { id: {}, x: {} }, required: ['id'] })

  test('names every property that a JSON Schema removes; without properties those are all', () => {
    const all = ["new schema removes property 'id'", "new schema removes property 'x'"]
    assert.deepEqual(incompatibilities(json({ properties: { id: {} } }), [before], 'default'), all.slice(1))
    for (const none of [{}, true, { properties: {} }]) {
      assert.deepEqual(incompatibilities(json(none), [before], 'default'), all)
    }
  })

  test('compares names at the top only', () => {
    const after = json({ properties: { id: { type: 'null' }, x: { required: ['y'] }, more: {} } })
    assert.deepEqual(incompatibilities(after, [before], 'default'), [])
  })

  test('takes a property by any name for one', () => {
    const odd = '{"properties":{"__proto__":{},"toString":{}}}'
    const found = incompatibilities(json({ properties: {} }), [{ type: 'json_schema', schema: odd }], 'default')
    assert.deepEqual(found, ["new schema removes property '__proto__'", "new schema removes property 'toString'"])
  })

  test('asks avro and protobuf for backward, and only the latest version of the same type', () => {
    assert.equal(incompatibilities(avro('int'), [avro('string')], 'default').length, 1)
    assert.deepEqual(incompatibilities(avro('long'), [avro('int')], 'default'), [])
    assert.equal(incompatibilities(avro('int'), [avro('long')], 'default').length, 1)
    assert.equal(incompatibilities(proto('message B {}'), [proto('message A {}')], 'default').length, 1)
    assert.deepEqual(incompatibilities(avro('int'), [json({ properties: { a: {} } })], 'default'), [])
    assert.deepEqual(incompatibilities(json({}), [avro('int'), before], 'default'), [])
  })
})

describe('the other modes', () => {
  test('say which side cannot read', () => {
    const [narrow, wide] = [avro('int'), avro('long')]
    assert.deepEqual(incompatibilities(wide, [narrow], 'backward'), [])
    assert.deepEqual(incompatibilities(wide, [narrow], 'forward'), [
      "the old schema cannot read data of the new one: at '/': type long cannot be read as int"
    ])
    assert.deepEqual(incompatibilities(narrow, [wide], 'full'), [
      "the new schema cannot read data of the old one: at '/': type long cannot be read as int"
    ])
  })

  test('a version of another type is incompatible', () => {
    for (const mode of compatibilityModes) {
      const expected = mode === 'default' || mode === 'none' ? [] : ['type went from avro to json_schema']
      assert.deepEqual(incompatibilities(json({}), [avro('int')], mode), expected, mode)
    }
  })

  test('compare with every version that is handed in', () => {
    const versions = [avro('double'), avro('float'), avro('string')]
    const found = incompatibilities(avro('double'), versions, 'backward_transitive')
    assert.deepEqual(found, [
      "the new schema cannot read data of the old one: at '/': type string cannot be read as double"
    ])
  })

  test('nothing is incompatible with no version', () => {
    for (const mode of compatibilityModes) assert.deepEqual(incompatibilities(avro('int'), [], mode), [])
  })

  test('at most so many differences are named, none longer than its limit', () => {
    const name = (index: number): string => `${'n'.repeat(1000)}${index}`
    const schemaOf = (type: string): object => ({
      properties: Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [name(index) + index, { type }]))
    })
    const many = Array.from({ length: 1000 }, (_, index) => [`p${index}`, { type: 'string' }] as const)
    const others = many.map(([key]) => [key, { type: 'number' }] as const)
    const [before, after] = [
      json({ properties: Object.fromEntries(many) }),
      json({ properties: Object.fromEntries(others) })
    ]
    assert.equal(incompatibilities(after, [before], 'backward').length, limits.schemaProblemsMax)
    const long = incompatibilities(json(schemaOf('string')), [json(schemaOf('number'))], 'backward')
    assert.ok(long.length > 0 && long.every(each => each.length <= limits.schemaProblemCharactersMax))
  })
})

describe('a text is refused with the place', () => {
  const refused: readonly (readonly [unknown, RegExp])[] = [
    [5, /^a JSON Schema is an object or a boolean$/],
    [[], /^a JSON Schema is an object or a boolean$/],
    [{ properties: { a: { type: 'strin' } } }, /^at '\/properties\/a\/type': .*allowed values: array, boolean/],
    [{ multipleOf: 0 }, /^at '\/multipleOf': must be > 0$/],
    [{ pattern: '(' }, /Invalid regular expression/],
    [{ $schema: 5 }, /^\$schema is not a string$/],
    [{ $ref: '#/definitions/none' }, /^\$ref #\/definitions\/none leads to nothing in it/],
    [{ $ref: 'http://other.example/schema' }, /^\$ref http:\/\/other\.example\/schema leads to nothing in it/],
    [{ $ref: 'file:///etc/passwd' }, /leads to nothing in it, and other documents are not fetched$/],
    [{ $async: true }, /^\$async is not supported$/],
    [{ $schema: 'http://json-schema.org/draft-04/schema#', minimum: 'x' }, /^at '\/minimum': must be number$/]
  ]
  for (const [schema, problem] of refused) {
    test(`JSON Schema ${JSON.stringify(schema)}`, () => assert.match(String(parseProblem(json(schema))), problem))
  }

  test('no JSON', () => {
    assert.match(String(parseProblem({ type: 'json_schema', schema: '{"type":' })), /^it is not JSON: /)
  })
})

test('JSON Schema of every draft, without one and with an unknown one is taken', () => {
  const drafts = ['http://json-schema.org/draft-04/schema#', 'http://json-schema.org/draft-06/schema#']
  drafts.push('http://json-schema.org/draft-07/schema', 'https://json-schema.org/draft/2019-09/schema')
  drafts.push('https://json-schema.org/draft/2020-12/schema', 'https://vendor.example/meta')
  for (const $schema of drafts) assert.equal(parseProblem(json({ $schema, type: 'object' })), null, $schema)
  assert.equal(parseProblem(json({ id: 'http://a.example/x', type: 'object' })), null)
  assert.equal(parseProblem(json({ properties: { next: { $ref: '#' } } })), null)
  const modern = { $schema: drafts[4], $dynamicAnchor: 'n', properties: { next: { $dynamicRef: '#n' } } }
  assert.equal(parseProblem(json(modern)), null)
})
