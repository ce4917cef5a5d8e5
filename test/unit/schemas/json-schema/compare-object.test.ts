/**
 * Properties and content models of objects. Source of the rules: Confluent Platform documentation, "Schema Evolution and Compatibility for Schema
 * Registry", JSON Schema compatibility rules. In everything the new schema is the reader.
 */
import { keyword, least, most, testRules } from '../rules.ts'

const string = { type: 'string' }
const number = { type: 'number' }
const integer = { type: 'integer' }
const nullOrString = { oneOf: [{ type: 'null' }, string] }

const foo = { foo: string }
const fooBar = { foo: string, bar: string }
const open = { properties: foo }
const closed = { properties: foo, additionalProperties: false }
const partly = { properties: foo, additionalProperties: string }
const patterns = { '^S_': string, '^I_': integer }
const patterned = { properties: foo, additionalProperties: false, patternProperties: patterns }

testRules('json_schema', 'properties of open content models', [
  ['property removed', { properties: fooBar }, open, null],
  ['property added', open, { properties: fooBar }, 'was added to an open content model'],
  ['property that may be anything added', open, { properties: { foo: string, bar: true } }, null],
  ['property with {} added', open, { properties: { foo: string, bar: {} } }, null],
  [
    'property renamed',
    open,
    { properties: { bar: string } },
    "at '/properties/bar': was added to an open content model"
  ],
  ['type of a property changed', open, { properties: { foo: number } }, "at '/properties/foo': type was changed"],
  [
    'nested property added',
    { properties: { a: open } },
    { properties: { a: { properties: fooBar } } },
    '/properties/a/properties/bar'
  ],
  ['required property dropped, as it is described no more', { ...open, required: ['foo'] }, {}, null],
  ['all properties removed, still an object', open, { type: 'object' }, null]
])

testRules('json_schema', 'properties of closed content models', [
  ['optional property added', closed, { properties: fooBar, additionalProperties: false }, null],
  [
    'property removed',
    { properties: fooBar, additionalProperties: false },
    closed,
    'was removed from a closed content model'
  ],
  [
    'required property added',
    closed,
    { properties: fooBar, required: ['bar'], additionalProperties: false },
    "required property 'bar' without a default was added"
  ],
  [
    'required property with a default added',
    closed,
    {
      properties: { foo: string, bar: { type: 'string', default: '' } },
      required: ['bar'],
      additionalProperties: false
    },
    null
  ],
  ['property false added', closed, { properties: { foo: string, bar: false }, additionalProperties: false }, null],
  ['property false removed', { properties: { foo: string, bar: false }, additionalProperties: false }, closed, null],
  [
    'unevaluatedProperties false closes too',
    { $schema: 'https://json-schema.org/draft/2020-12/schema', properties: foo, unevaluatedProperties: false },
    { $schema: 'https://json-schema.org/draft/2020-12/schema', properties: fooBar, unevaluatedProperties: false },
    null
  ]
])

testRules('json_schema', 'properties of partially open content models', [
  ['covered property added', partly, { ...partly, properties: fooBar }, null],
  [
    'property added that takes less',
    partly,
    { ...partly, properties: { foo: string, bar: number } },
    'takes less than what covered it before'
  ],
  [
    'covered required property added',
    partly,
    { ...partly, properties: fooBar, required: ['bar'] },
    "required property 'bar' without a default"
  ],
  ['property covered by a pattern added', patterned, { ...patterned, properties: { foo: string, I_1: number } }, null],
  [
    'property added that takes less than its pattern',
    patterned,
    { ...patterned, properties: { foo: string, S_1: number } },
    'takes less'
  ],
  ['property of no pattern added', patterned, { ...patterned, properties: { foo: string, x: number } }, null],
  [
    'property removed that a pattern covers',
    { properties: { foo: string, I_1: integer }, additionalProperties: false },
    { ...patterned, patternProperties: { '^I_': number } },
    null
  ],
  [
    'property removed that a pattern covers less',
    { properties: { foo: string, I_1: number }, additionalProperties: false },
    patterned,
    'what covers it now takes less'
  ],
  ['property removed that the rest covers', { properties: fooBar, additionalProperties: false }, partly, null],
  [
    'property removed that the rest covers less',
    { properties: { foo: string, bar: number }, additionalProperties: false },
    partly,
    'what covers it now takes less'
  ],
  [
    'property removed that the rest covers with more',
    { properties: fooBar, additionalProperties: false },
    { properties: foo, additionalProperties: nullOrString },
    null
  ]
])

testRules('json_schema', 'the rest of properties', [
  ['false → absent', { type: 'object', additionalProperties: false }, { type: 'object' }, null],
  ['false → a schema', { additionalProperties: false }, { additionalProperties: string }, null],
  ['a schema → true', { additionalProperties: string }, { additionalProperties: true }, null],
  ['true → absent', { additionalProperties: true }, { type: 'object' }, null],
  ['true → false', { additionalProperties: true }, { additionalProperties: false }, 'no longer allows any'],
  ['absent → false', { type: 'object' }, { additionalProperties: false }, 'no longer allows any'],
  ['a schema → false', { additionalProperties: string }, { additionalProperties: false }, 'no longer allows any'],
  ['true → a schema', { additionalProperties: true }, { additionalProperties: string }, 'no longer allows everything'],
  ['a schema → a wider one', { additionalProperties: integer }, { additionalProperties: number }, null],
  [
    'a schema → another',
    { additionalProperties: string },
    { additionalProperties: number },
    "at '/additionalProperties': type was changed"
  ]
])

testRules('json_schema', 'required properties', [
  ['dropped', { ...open, required: ['foo'] }, open, null],
  ['the same', { ...open, required: ['foo'] }, { ...open, required: ['foo'] }, null],
  ['added', open, { ...open, required: ['foo'] }, "property 'foo' became required without a default"],
  ['added with a default', open, { properties: { foo: { type: 'string', default: 'x' } }, required: ['foo'] }, null],
  ['of a property that is not described', open, { ...open, required: ['bar'] }, null]
])

testRules('json_schema', 'sizes and dependencies of objects', [
  ...most('object', 'maxProperties'),
  ...least('object', 'minProperties'),
  keyword(null, 'dependencies', { a: ['b'] }, { a: ['b'] }, null),
  keyword(null, 'dependencies', { a: ['b'] }, {}, null),
  keyword(null, 'dependencies', { a: ['b', 'c'] }, { a: ['b'] }, null),
  keyword(null, 'dependencies', { a: ['b'] }, { a: ['b', 'c'] }, 'asks for property "c" too'),
  keyword(null, 'dependencies', { a: ['b'] }, { a: ['c'] }, 'asks for property "c" too'),
  keyword(null, 'dependencies', { a: ['b'] }, { b: ['a'] }, "at '/dependencies/b': was added"),
  keyword(null, 'dependencies', { a: string, b: string }, { a: string }, null),
  keyword(null, 'dependencies', { a: integer }, { a: number }, null),
  keyword(null, 'dependencies', { a: string }, { a: number }, "at '/dependencies/a': type was changed"),
  keyword(null, 'dependencies', { a: string }, { b: string }, 'was added'),
  keyword(null, 'dependencies', { a: string }, { a: ['b'] }, 'was added')
])
