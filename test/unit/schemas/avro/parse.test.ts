/** What is an Avro schema, and what is refused with which words. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { avroProblem } from '../../../../src/schemas/avro/parse.ts'

function field(type: unknown, more: object = {}): object {
  return { type: 'record', name: 'R', fields: [{ name: 'f', type, ...more }] }
}

const refused: readonly (readonly [unknown, string])[] = [
  [{}, 'the schema has no type'],
  [5, 'the schema has no type'],
  ['int32', "the schema has the unknown type 'int32'"],
  [{ type: 'record', name: 'R' }, 'record R has no fields'],
  [{ type: 'record', fields: [] }, 'the schema has no name'],
  [{ type: 'record', name: 'a-b', fields: [] }, "'a-b' is no name of a type"],
  [{ type: 'record', name: 'R', fields: [{ name: '1', type: 'int' }] }, 'record R has a field without a valid name'],
  [field('S'), "field 'f' of R has the unknown type 'S'"],
  [field(undefined), "field 'f' of R has no type"],
  [
    { type: 'record', name: 'R', fields: ['x', 'x'].map(name => ({ name, type: 'int' })) },
    "record R has two fields 'x'"
  ],
  [field({ type: 'array' }), "items of field 'f' of R has no type"],
  [field(['int', 'int']), "field 'f' of R is a union with two branches of type int"],
  [field(['int', ['null']]), "field 'f' of R is a union with a union in it"],
  [field({ type: 'fixed', name: 'F', size: -1 }), 'fixed F has no size of 0 to 2147483647'],
  [field({ type: 'enum', name: 'E' }), 'enum E has no symbols'],
  [field({ type: 'enum', name: 'E', symbols: ['a', 'a'] }), "enum E has the symbol 'a' twice"],
  [field({ type: 'enum', name: 'E', symbols: ['a b'] }), 'enum E has a symbol that is no name: "a b"'],
  [
    field({ type: 'enum', name: 'E', symbols: ['a'], default: 'b' }),
    'enum E has a default that is none of its symbols'
  ],
  [field({ type: 'record', name: 'R', fields: [] }), 'the name R is declared twice'],
  [field('int', { default: 'x' }), "the default of field 'f' of R is no int"],
  [field('int', { default: 2 ** 31 }), "the default of field 'f' of R is no int"],
  [field(['null', 'string'], { default: 5 }), "the default of field 'f' of R is no union"],
  [field({ type: 'array', items: 'int' }, { default: [1, 'a'] }), "the default of field 'f' of R is no array"],
  [field({ type: 'fixed', name: 'F', size: 1 }, { default: 'ā' }), "the default of field 'f' of R is no F"]
]

for (const [schema, problem] of refused) {
  test(`refused: ${problem}`, () => {
    assert.equal(avroProblem(JSON.stringify(schema)), problem)
  })
}

test('defaults of every type are taken', () => {
  const inner = { type: 'record', name: 'I', fields: [{ name: 'x', type: 'int', default: 1 }] }
  const fields: readonly (readonly [unknown, unknown])[] = [
    ['null', null],
    ['boolean', true],
    ['int', -(2 ** 31)],
    ['long', 2 ** 40],
    ['float', 1.5],
    ['double', 2],
    ['string', 'ā'],
    ['bytes', 'ÿ'],
    [{ type: 'fixed', name: 'F', size: 2 }, 'ab'],
    [{ type: 'enum', name: 'E', symbols: ['a'] }, 'a'],
    [{ type: 'array', items: 'int' }, [1, 2]],
    [{ type: 'map', values: 'string' }, { a: 'b' }],
    [['null', 'string'], 'second branch'],
    [inner, {}],
    ['I', { x: 5 }]
  ]
  const record = {
    type: 'record',
    name: 'R',
    fields: fields.map(([type, value], index) => ({ name: `f${index}`, type, default: value }))
  }
  assert.equal(avroProblem(JSON.stringify(record)), null)
})

test('no JSON, and JSON that is nested too deeply, are refused', () => {
  assert.match(String(avroProblem('{')), /^it is not JSON: /)
  const deep = `${'{"type":"array","items":'.repeat(200)}"int"${'}'.repeat(200)}`
  assert.equal(avroProblem(deep), 'it is nested deeper than 128')
})
