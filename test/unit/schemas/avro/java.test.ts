/** The rules for Avro agree with Java's SchemaCompatibility, which Confluent's registry asks, on random pairs of schemas. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { avroDifferences } from '../../../../src/schemas/avro/compatibility.ts'
import { avroProblem, parseAvro } from '../../../../src/schemas/avro/parse.ts'
import { askAvroJava, avroJavaSkip } from '../../../support/avro-java.ts'

const PAIRS = 5000
const seed = Number(process.env['MILLRACE_SEED'] ?? Date.now() % 2 ** 31)
const replay = `MILLRACE_AVRO_JAVA=1 MILLRACE_SEED=${seed} node --test test/unit/schemas/avro/java.test.ts`

const typeName = fc.constantFrom('A', 'B', 'C', 'x.A', 'y.B')
const fieldName = fc.constantFrom('f', 'g', 'h')
const primitives = ['null', 'boolean', 'int', 'long', 'float', 'double', 'bytes', 'string'] as const
const aliases = fc.option(fc.uniqueArray(typeName, { minLength: 1, maxLength: 2 }), { freq: 3, nil: undefined })
const symbols = fc.uniqueArray(fc.constantFrom('p', 'q', 'r'), { minLength: 1 })

const schemas = fc.letrec<{ type: unknown }>(tie => ({
  type: fc.oneof(
    { depthSize: 'medium', withCrossShrink: true },
    fc.constantFrom(...primitives, 'A', 'B'),
    fc.record({ type: fc.constant('array'), items: tie('type') }),
    fc.record({ type: fc.constant('map'), values: tie('type') }),
    fc.array(tie('type'), { minLength: 1, maxLength: 3 }),
    fc.record({ type: fc.constant('fixed'), name: typeName, size: fc.integer({ min: 1, max: 2 }), aliases }),
    fc
      .record({ type: fc.constant('enum'), name: typeName, symbols, aliases, hasDefault: fc.boolean() })
      .map(({ hasDefault, ...type }) => (hasDefault ? { ...type, default: type.symbols[0] } : type)),
    fc.record({ type: fc.constant('record'), name: typeName, aliases, fields: fieldsOf(tie('type')) })
  )
})).type

function fieldsOf(type: fc.Arbitrary<unknown>): fc.Arbitrary<object[]> {
  const field = fc.record({ name: fieldName, type, hasDefault: fc.boolean(), alias: fc.option(fieldName, { freq: 4 }) })
  return fc.uniqueArray(field, { selector: each => each.name, maxLength: 3 }).map(fields =>
    fields.map(each => ({
      name: each.name,
      type: each.type,
      ...(each.hasDefault && each.type === 'int' && { default: 1 }),
      ...(each.alias !== null && each.alias !== each.name && { aliases: [each.alias] })
    }))
  )
}

test(`Avro rules agree with Java's (${replay})`, { skip: avroJavaSkip, timeout: 900_000 }, async () => {
  const valid = schemas.map(type => JSON.stringify(type)).filter(text => avroProblem(text) === null)
  const pairs = fc.sample(
    fc.oneof(
      fc.tuple(valid, valid),
      valid.map((text): [string, string] => [text, text.replace('"int"', '"long"').replace('"p"', '"q2"')])
    ),
    { seed, numRuns: PAIRS }
  )
  const known = pairs.filter(([, writer]) => avroProblem(writer) === null)
  const answers = await askAvroJava(known)
  assert.equal(answers.length, known.length)
  const counts = { compatible: 0, incompatible: 0 }
  for (const [index, [reader, writer]] of known.entries()) {
    const answer = String(answers[index])
    // Java throws where a field and its aliases name several fields, even in a branch that its name rules out.
    if (answer.startsWith('REFUSED') && answer.includes('matches multiple fields')) continue
    const isCompatible = answer === 'COMPATIBLE'
    assert.ok(!answer.startsWith('REFUSED'), `${answer}: reader ${reader}, writer ${writer}`)
    const found = avroDifferences(parseAvro(writer), parseAvro(reader))
    assert.equal(found.length === 0, isCompatible, `reader ${reader}, writer ${writer}: ${JSON.stringify(found)}`)
    counts[isCompatible ? 'compatible' : 'incompatible'] += 1
  }
  assert.ok(counts.compatible > 100 && counts.incompatible > 100, JSON.stringify(counts))
})
