/** Random schemas: each goes together with itself in every mode, and backward one way is forward the other way. */
import { test } from 'node:test'
import fc from 'fast-check'
import type { SchemaText } from '../../../src/model/schemas.ts'
import { parseProblem } from '../../../src/schemas/check.ts'
import { assertModesAgree } from './rules.ts'

const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 2 ** 31)
const replay = `MILLRACE_SEED=${seed} node --test test/unit/schemas/property.test.ts`

const name = fc.constantFrom('a', 'b', 'c')

const jsonSchemas = fc.letrec<{ schema: unknown }>(tie => {
  const properties = fc.dictionary(name, tie('schema'), { maxKeys: 3 })
  const numbers = {
    minimum: fc.integer({ max: 5 }),
    maximum: fc.integer({ min: 5 }),
    multipleOf: fc.integer({ min: 1, max: 9 })
  }
  const object = {
    properties,
    required: fc.uniqueArray(name),
    additionalProperties: fc.oneof(fc.boolean(), tie('schema'))
  }
  return {
    schema: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      fc.boolean(),
      fc.record(
        { type: fc.constantFrom('string', 'null', 'boolean'), maxLength: fc.nat(9) },
        { requiredKeys: ['type'] }
      ),
      fc.record({ type: fc.constantFrom('number', 'integer'), ...numbers }, { requiredKeys: ['type'] }),
      fc.record({ enum: fc.uniqueArray(fc.oneof(fc.integer(), fc.string()), { minLength: 1, maxLength: 4 }) }),
      fc.record({ type: fc.constant('object'), ...object }, { requiredKeys: [] }),
      fc.record({ type: fc.constant('array'), items: tie('schema'), minItems: fc.nat(3) }, { requiredKeys: ['type'] }),
      fc.record({ not: tie('schema') }),
      fc.record({ $ref: fc.constantFrom('#/definitions/x', '#/definitions/y') }),
      ...(['anyOf', 'oneOf', 'allOf'] as const).map(keyword =>
        fc.record({ [keyword]: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) })
      )
    )
  }
}).schema

/** References stand below a keyword only: a ring of them alone is refused. */
const jsonDocuments: fc.Arbitrary<SchemaText> = fc
  .record({ a: jsonSchemas, x: jsonSchemas, y: jsonSchemas })
  .map(({ a, x, y }) => ({ properties: { a }, definitions: { x: { items: x }, y: { properties: { b: y } } } }))
  .map(schema => ({ type: 'json_schema', schema: JSON.stringify(schema) }))

const avroTypes = fc.letrec<{ type: unknown }>(tie => ({
  type: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    fc.constantFrom('null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string', 'Root'),
    fc.record({ type: fc.constant('array'), items: tie('type') }),
    fc.record({ type: fc.constant('map'), values: tie('type') }),
    fc.uniqueArray(fc.constantFrom('null', 'int', 'long', 'string', 'Root'), { minLength: 1, maxLength: 4 })
  )
})).type

const avroDocuments: fc.Arbitrary<SchemaText> = fc
  .uniqueArray(fc.record({ name, type: avroTypes }), { selector: field => field.name, maxLength: 3 })
  .map(fields => ({ type: 'avro', schema: JSON.stringify({ type: 'record', name: 'Root', fields }) }))

const fieldTypes = fc.constantFrom('int32', 'sint64', 'string', 'bytes', 'double', 'A', 'N', 'E', 'map<string, N>')
const protobufDocuments: fc.Arbitrary<SchemaText> = fc
  .uniqueArray(
    fc.record({
      id: fc.integer({ min: 1, max: 6 }),
      type: fieldTypes,
      place: fc.constantFrom('', 'repeated', 'oneof')
    }),
    {
      selector: field => field.id,
      maxLength: 5
    }
  )
  .map(fields => {
    const isIn = (field: (typeof fields)[number]): boolean => field.place === 'oneof' && !field.type.startsWith('map')
    const line = ({ id, type, place }: (typeof fields)[number], isInOneof: boolean): string =>
      `${place === 'repeated' && !isInOneof && !type.startsWith('map') ? 'repeated ' : ''}${type} f${id} = ${id};`
    const inside = fields
      .filter(isIn)
      .map(field => line(field, true))
      .join(' ')
    const outside = fields
      .filter(field => !isIn(field))
      .map(field => line(field, false))
      .join(' ')
    return `syntax = "proto3"; message A { ${outside} ${inside === '' ? '' : `oneof o { ${inside} }`} message N {} enum E { Z = 0; } }`
  })
  .map(schema => ({ type: 'protobuf', schema }))

const families = { json_schema: jsonDocuments, avro: avroDocuments, protobuf: protobufDocuments }
for (const [type, documents] of Object.entries(families)) {
  test(`${type}: modes agree on random schemas (${replay})`, () => {
    fc.assert(
      fc.property(documents, documents, (old, changed) => {
        for (const each of [old, changed]) {
          const problem = parseProblem(each)
          if (problem !== null) throw new Error(`${problem}: ${each.schema}`)
        }
        assertModesAgree(old, changed)
      }),
      { seed, numRuns: 100 }
    )
  })
}
