/** A table of rules as data, and the tests that each of its rows is. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { CompatibilityMode, SchemaText, SchemaType } from '../../../src/model/schemas.ts'
import { incompatibilities, parseProblem } from '../../../src/schemas/check.ts'

/** [what changes, the old schema, the new one, null if the new one reads what the old one wrote, else words of the problem] */
export type Rule = readonly [change: string, before: unknown, after: unknown, problem: string | null]

/** Each row in every mode: what holds backward holds forward with the sides swapped, and full is both. */
export function testRules(type: SchemaType, title: string, rules: readonly Rule[]): void {
  test(`${title}: ${rules.length} rules`, async t => {
    for (const [change, before, after, problem] of rules) {
      await t.test(`${change}: ${problem ?? 'compatible'}`, () => {
        const [old, changed] = [textOf(type, before), textOf(type, after)]
        assert.equal(parseProblem(old), null)
        assert.equal(parseProblem(changed), null)
        assertProblem(incompatibilities(changed, [old], 'backward'), problem)
        assertProblem(incompatibilities(old, [changed], 'forward'), problem)
        assertModesAgree(old, changed)
      })
    }
  })
}

function textOf(type: SchemaType, schema: unknown): SchemaText {
  return { type, schema: typeof schema === 'string' && type === 'protobuf' ? schema : JSON.stringify(schema) }
}

function assertProblem(found: readonly string[], problem: string | null): void {
  if (problem === null) assert.deepEqual(found, [])
  else
    assert.ok(
      found.some(sentence => sentence.includes(problem)),
      `'${problem}' is not in ${JSON.stringify(found)}`
    )
}

/** What holds for any two schemas of one type. */
export function assertModesAgree(old: SchemaText, changed: SchemaText): void {
  const isCompatible = (candidate: SchemaText, latest: SchemaText, mode: CompatibilityMode): boolean =>
    incompatibilities(candidate, [latest], mode).length === 0
  const backward = isCompatible(changed, old, 'backward')
  const forward = isCompatible(changed, old, 'forward')
  assert.equal(isCompatible(old, changed, 'forward'), backward)
  assert.equal(isCompatible(old, changed, 'backward'), forward)
  assert.equal(isCompatible(changed, old, 'full'), backward && forward)
  for (const mode of ['backward', 'forward', 'full'] as const) {
    assert.equal(isCompatible(changed, old, `${mode}_transitive`), isCompatible(changed, old, mode))
    assert.deepEqual(incompatibilities(old, [old], mode), [])
    assert.deepEqual(incompatibilities(changed, [changed], mode), [])
  }
  assert.deepEqual(incompatibilities(changed, [old], 'none'), [])
}

/** One keyword of a type, with the values of both sides; undefined: it is not there. */
export function keyword(
  type: string | null,
  name: string,
  before: unknown,
  after: unknown,
  problem: string | null
): Rule {
  const withValue = (value: unknown): object => ({
    ...(type !== null && { type }),
    ...(value !== undefined && { [name]: value })
  })
  return [`${name} ${JSON.stringify(before)} → ${JSON.stringify(after)}`, withValue(before), withValue(after), problem]
}

/** Of one keyword that says the most of something, all ways. */
export function most(type: string, name: string): Rule[] {
  return [
    keyword(type, name, 5, 5, null),
    keyword(type, name, 5, 6, null),
    keyword(type, name, 5, undefined, null),
    keyword(type, name, 5, 4, `${name} went down from 5 to 4`),
    keyword(type, name, undefined, 5, `${name} 5 was added`)
  ]
}

/** Of one that says the least. */
export function least(type: string, name: string): Rule[] {
  return [
    keyword(type, name, 5, 5, null),
    keyword(type, name, 5, 4, null),
    keyword(type, name, 5, undefined, null),
    keyword(type, name, 5, 6, `${name} went up from 5 to 6`),
    keyword(type, name, undefined, 5, `${name} 5 was added`)
  ]
}
