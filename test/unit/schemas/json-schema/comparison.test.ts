/**
 * The rules for JSON Schema in the modes backward, forward and full. Source of the rules: Confluent Platform documentation,
 * "Schema Evolution and Compatibility for Schema Registry", JSON Schema compatibility rules (content models, combined
 * schemas, constraints). In everything the new schema is the reader.
 */
import { keyword, least, most, testRules } from '../rules.ts'

const string = { type: 'string' }
const number = { type: 'number' }
const integer = { type: 'integer' }

testRules('json_schema', 'what a schema says about itself may change', [
  ['$id', { $id: 'http://a.example/x' }, { $id: 'http://a.example/y' }, null],
  ['title', { title: 'a' }, { title: 'b' }, null],
  ['description', { type: 'string', description: 'a' }, { type: 'string', description: 'b' }, null],
  ['default', { type: 'string', default: 'a' }, { type: 'string', default: 'b' }, null],
  ['format', { type: 'string', format: 'date' }, { type: 'string', format: 'uuid' }, null],
  ['an unknown keyword', { type: 'string', unit: 'm' }, { type: 'string' }, null]
])

testRules('json_schema', 'types', [
  ['string → number', string, number, 'type was changed from string to number'],
  ['object → array', { type: 'object' }, { type: 'array' }, 'type was changed from object to array'],
  ['boolean → null', { type: 'boolean' }, { type: 'null' }, 'type was changed from boolean to null'],
  ['boolean → boolean', { type: 'boolean' }, { type: 'boolean' }, null],
  ['integer → number', integer, number, null],
  ['number → integer', number, integer, 'type went from number to integer'],
  ['anything → a type', {}, string, 'type was changed from anything to string'],
  ['a type → anything', string, {}, null],
  ['a type → true', string, true, null],
  ['true → {}', true, {}, null],
  ['{} → true', {}, true, null],
  ['false → a type', false, string, null],
  ['a type → false', string, false, 'type was changed from string to nothing'],
  ['a type → its list', string, { type: ['string'] }, null],
  ['a list of one → the type', { type: ['string'] }, string, null],
  ['a type more', { type: ['string'] }, { type: ['string', 'null'] }, null],
  ['a type → a list with it', string, { type: ['null', 'string'] }, null],
  ['a type less', { type: ['string', 'null'] }, { type: ['string'] }, 'anyOf has 1 alternatives less than before'],
  ['a list → one of its types', { type: ['string', 'null'] }, string, 'type was changed from a combination of schemas'],
  [
    'a list of two → of two others',
    { type: ['string', 'null'] },
    { type: ['string', 'array'] },
    'fit none of the other'
  ],
  ['a list in another order', { type: ['string', 'null'] }, { type: ['null', 'string'] }, null],
  ['keywords without a type → with', { maxLength: 3 }, { type: 'string', maxLength: 3 }, null]
])

testRules('json_schema', 'strings', [
  ...most('string', 'maxLength'),
  ...least('string', 'minLength'),
  keyword('string', 'pattern', '^a', '^a', null),
  keyword('string', 'pattern', '^a', undefined, null),
  keyword('string', 'pattern', undefined, '^a', 'pattern was added'),
  keyword('string', 'pattern', '^a', '^b', 'pattern was changed')
])

testRules('json_schema', 'numbers', [
  ...most('number', 'maximum'),
  ...least('number', 'minimum'),
  ...most('number', 'exclusiveMaximum'),
  ...least('number', 'exclusiveMinimum'),
  keyword('number', 'multipleOf', 10, 10, null),
  keyword('number', 'multipleOf', 10, undefined, null),
  keyword('number', 'multipleOf', 10, 2, null),
  keyword('number', 'multipleOf', 0.3, 0.1, null),
  keyword('number', 'multipleOf', 2, 10, 'multipleOf was changed from 2 to 10'),
  keyword('number', 'multipleOf', 10, 11, 'multipleOf was changed from 10 to 11'),
  keyword('number', 'multipleOf', undefined, 2, 'multipleOf 2 was added'),
  [
    'draft-04 exclusive mark added',
    { $schema: 'http://json-schema.org/draft-04/schema#', type: 'number', maximum: 5 },
    { $schema: 'http://json-schema.org/draft-04/schema#', type: 'number', maximum: 5, exclusiveMaximum: true },
    'exclusiveMaximum 5 was added'
  ]
])

testRules('json_schema', 'values', [
  ['enum with more', { enum: ['a'] }, { enum: ['a', 'b'] }, null],
  ['enum with less', { enum: ['a', 'b'] }, { enum: ['a'] }, 'enum no longer has "b"'],
  ['enum with others', { enum: ['a'] }, { enum: ['b'] }, 'enum no longer has "a"'],
  ['enum in another order', { enum: ['a', { x: 1, y: 2 }] }, { enum: [{ y: 2, x: 1 }, 'a'] }, null],
  ['enum gone beside a type', { type: 'string', enum: ['a'] }, string, null],
  [
    'enum added beside a type',
    string,
    { type: 'string', enum: ['a'] },
    'type was changed from string to a combination'
  ],
  ['enum with more beside a type', { type: 'string', enum: ['a'] }, { type: 'string', enum: ['a', 'b'] }, null],
  ['enum with less beside a type', { type: 'string', enum: ['a', 'b'] }, { type: 'string', enum: ['a'] }, 'fit none'],
  ['const the same', { const: { a: [1] } }, { const: { a: [1] } }, null],
  ['const another', { const: 1 }, { const: 2 }, 'const was changed'],
  ['const gone', { const: 1 }, {}, null],
  ['const → enum', { const: 1 }, { enum: [1] }, 'type was changed from const to enum'],
  ['not narrower', { not: number }, { not: integer }, null],
  ['not wider', { not: integer }, { not: number }, 'not excludes more than before'],
  ['not something else', { not: string }, { not: number }, 'not excludes more than before'],
  ['not of not, wider inside', { not: { not: integer } }, { not: { not: number } }, null],
  ['not of not, narrower inside', { not: { not: number } }, { not: { not: integer } }, 'not excludes more'],
  ['if and then', { if: string, then: { maxLength: 1 } }, { if: string, then: { maxLength: 2 } }, null]
])

const foo = { foo: string }
const fooBar = { foo: string, bar: string }
const open = { properties: foo }
const modern = { $schema: 'https://json-schema.org/draft/2020-12/schema' }
testRules('json_schema', 'the words of 2019-09 and later', [
  [
    'prefixItems added, closed',
    { ...modern, prefixItems: [string], items: false },
    { ...modern, prefixItems: [string, number], items: false },
    null
  ],
  [
    'prefixItems added, open',
    { ...modern, prefixItems: [string] },
    { ...modern, prefixItems: [string, number] },
    'was added where any item'
  ],
  [
    'prefixItems removed, open',
    { ...modern, prefixItems: [string, number] },
    { ...modern, prefixItems: [string] },
    null
  ],
  [
    'prefixItems another type',
    { ...modern, prefixItems: [string] },
    { ...modern, prefixItems: [number] },
    "at '/items/0': type was changed"
  ],
  [
    'unevaluatedItems closes',
    { ...modern, prefixItems: [string] },
    { ...modern, prefixItems: [string], unevaluatedItems: false },
    'no longer allows any'
  ],
  [
    'unevaluatedItems opens',
    { ...modern, prefixItems: [string], unevaluatedItems: false },
    { ...modern, prefixItems: [string] },
    null
  ],
  [
    'dependentRequired asks for more',
    { ...modern, dependentRequired: { a: ['b'] } },
    { ...modern, dependentRequired: { a: ['b', 'c'] } },
    'asks for property "c" too'
  ],
  ['dependentSchemas gone', { ...modern, dependentSchemas: { a: open } }, { ...modern, type: 'object' }, null],
  [
    'maxContains down',
    { ...modern, contains: string, maxContains: 3 },
    { ...modern, contains: string, maxContains: 2 },
    'maxContains went down'
  ],
  [
    'minContains down',
    { ...modern, contains: string, minContains: 3 },
    { ...modern, contains: string, minContains: 2 },
    null
  ],
  [
    'a condition beside $ref gone',
    { ...modern, $defs: { a: string }, $ref: '#/$defs/a', maxLength: 3 },
    { ...modern, type: 'string' },
    null
  ],
  [
    'a condition beside $ref added',
    { ...modern, $defs: { a: string }, $ref: '#/$defs/a' },
    { ...modern, $defs: { a: string }, $ref: '#/$defs/a', maxLength: 3 },
    'a combination'
  ],
  [
    'draft-07 → 2020-12',
    { properties: foo, additionalProperties: false },
    { ...modern, properties: fooBar, additionalProperties: false },
    null
  ]
])

testRules('json_schema', 'combinations', [
  ['oneOf with more', { oneOf: [string] }, { oneOf: [number, string] }, null],
  ['oneOf with less', { oneOf: [number, string] }, { oneOf: [string] }, 'oneOf has 1 alternatives less'],
  ['oneOf with another', { oneOf: [string] }, { oneOf: [number] }, 'oneOf has parts that fit none'],
  ['oneOf with wider parts', { oneOf: [string, integer] }, { oneOf: [number, string] }, null],
  [
    'oneOf, two parts that both need one',
    { oneOf: [integer, { type: 'integer', minimum: 0 }] },
    { oneOf: [number, string] },
    'fit none'
  ],
  [
    'oneOf, partners only in one arrangement',
    { oneOf: [integer, number] },
    { oneOf: [number, { type: 'integer', title: 'i' }] },
    null
  ],
  ['anyOf with more', { anyOf: [string] }, { anyOf: [string, number] }, null],
  ['anyOf with less', { anyOf: [string, number] }, { anyOf: [number] }, 'anyOf has 1 alternatives less'],
  ['allOf with less', { allOf: [string, { maxLength: 3 }] }, { allOf: [string] }, null],
  ['allOf with more', { allOf: [string] }, { allOf: [string, { maxLength: 3 }] }, 'allOf has 1 more conditions'],
  [
    'allOf with another',
    { allOf: [string, { enum: ['a'] }] },
    { allOf: [string, { enum: ['b'] }] },
    'allOf has parts that fit none'
  ],
  ['allOf in another order', { allOf: [{ enum: ['a'] }, string] }, { allOf: [string, { enum: ['a', 'b'] }] }, null],
  ['allOf with a part twice', { allOf: [string] }, { allOf: [string, string] }, null],
  ['allOf with a part once', { allOf: [string, string] }, { allOf: [string] }, null],
  ['oneOf → anyOf', { oneOf: [string, number] }, { anyOf: [string, number] }, null],
  ['allOf → anyOf', { allOf: [string] }, { anyOf: [number, string] }, null],
  ['anyOf → oneOf', { anyOf: [string, number] }, { oneOf: [string, number] }, 'anyOf of 2 became oneOf of 2'],
  ['anyOf of one → oneOf', { anyOf: [string] }, { oneOf: [number, string] }, null],
  ['allOf of one → oneOf', { allOf: [number] }, { oneOf: [number, string] }, null],
  ['oneOf of one → allOf of one', { oneOf: [string] }, { allOf: [string] }, null],
  ['anyOf of one → allOf of two', { anyOf: [string] }, { allOf: [string, number] }, 'anyOf of 1 became allOf of 2'],
  ['oneOf of two → allOf', { oneOf: [string, number] }, { allOf: [string] }, 'oneOf of 2 became allOf of 1'],
  ['a schema → oneOf with it', string, { oneOf: [number, string] }, null],
  ['a schema → anyOf with a wider one', { type: 'string', maxLength: 3 }, { anyOf: [number, string] }, null],
  [
    'a schema → oneOf without it',
    string,
    { oneOf: [number, { type: 'null' }] },
    'type was changed from string to a combination'
  ],
  ['a schema → allOf of it', string, { allOf: [string] }, null],
  ['a schema → allOf with it', string, { allOf: [string, number] }, 'type was changed from string to a combination'],
  ['oneOf of one → the schema', { oneOf: [string] }, string, null],
  ['oneOf of one → another schema', { oneOf: [string] }, number, 'type was changed from a combination'],
  ['oneOf of two → one of them', { oneOf: [string, number] }, string, 'type was changed from a combination'],
  ['allOf → one of its conditions', { allOf: [string, { enum: ['a'] }] }, string, null],
  ['a combination → anything', { oneOf: [string, number] }, {}, null]
])

const tree = {
  $ref: '#/definitions/node',
  definitions: { node: { properties: { value: integer, next: { $ref: '#/definitions/node' } } } }
}
const widerTree = {
  $ref: '#/definitions/node',
  definitions: { node: { properties: { value: number, next: { $ref: '#/definitions/node' } } } }
}

testRules('json_schema', 'references', [
  ['a schema → a reference to the same', string, { $ref: '#/definitions/a', definitions: { a: string } }, null],
  ['a reference → the schema', { $ref: '#/definitions/a', definitions: { a: string } }, string, null],
  [
    'what is referred to changes',
    { items: { $ref: '#/definitions/a' }, definitions: { a: string } },
    { items: { $ref: '#/definitions/a' }, definitions: { a: number } },
    "at '/items': type was changed"
  ],
  [
    'by $id',
    {
      properties: { a: { $ref: 'http://x.example/b' } },
      definitions: { b: { $id: 'http://x.example/b', type: 'integer' } }
    },
    { properties: { a: number } },
    null
  ],
  [
    'by anchor',
    { properties: { a: { $ref: '#b' } }, definitions: { b: { $id: '#b', type: 'number' } } },
    { properties: { a: integer } },
    'type went from number to integer'
  ],
  ['recursive, wider', tree, widerTree, null],
  ['recursive, narrower', widerTree, tree, "at '/properties/value': type went from number to integer"],
  [
    'recursive through the root',
    { properties: { a: { $ref: '#' }, b: integer } },
    { properties: { a: { $ref: '#' }, b: number } },
    null
  ],
  [
    'keywords beside $ref do not count before 2019-09',
    { $ref: '#/definitions/a', definitions: { a: string } },
    { $ref: '#/definitions/a', maxLength: 3, definitions: { a: string } },
    null
  ],
  [
    'another meta-schema',
    { $ref: 'http://json-schema.org/draft-07/schema#' },
    string,
    'a reference to another document'
  ],
  [
    'the same meta-schema',
    { properties: { a: { $ref: 'http://json-schema.org/draft-07/schema#' } } },
    { properties: { a: { $ref: 'http://json-schema.org/draft-07/schema#' } } },
    null
  ],
  [
    'an escaped name',
    { properties: { a: { $ref: '#/definitions/x~1y%25' } }, definitions: { 'x/y%': integer } },
    { properties: { a: number } },
    null
  ]
])
