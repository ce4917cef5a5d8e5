/**
 * Keywords of ajv that we have ourselves: what its own answer wrongly, throw at, or take long for. Pure; background thread.
 *
 *   uniqueItems   its own compares each item with each other one: 20 s for an enum of 512 KiB, which meta-schemas ask this of
 *   multipleOf    its own divides binary fractions, by which 4.35 is no multiple of 0.01
 *   const, enum   its own call the value's `toString`, which a value may have as a field
 */
import { _ } from 'ajv'
import type { Ajv, KeywordDefinition } from 'ajv'
import { isJsonObject } from './json.ts'
import type { Json } from './json.ts'
import { isMultiple } from './multiple.ts'
import { StructuralIds } from './structural-ids.ts'

const keywords: readonly (KeywordDefinition & { readonly keyword: string })[] = [
  {
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    error: { message: 'must NOT have duplicate items' },
    validate: (isAsked: boolean, items: readonly Json[]) => !isAsked || areDistinct(items)
  },
  {
    keyword: 'multipleOf',
    type: 'number',
    schemaType: 'number',
    error: { message: ({ schema }) => `must be multiple of ${schema}` },
    validate: (of: number, value: number) => isMultiple(value, of)
  },
  {
    keyword: 'const',
    error: { message: 'must be equal to constant' },
    validate: (only: Json, value: Json) => isEqual(only, value)
  },
  {
    keyword: 'enum',
    schemaType: 'array',
    error: {
      message: 'must be equal to one of the allowed values',
      params: ({ schemaCode }) => _`{allowedValues: ${schemaCode}}`
    },
    compile: among
  }
]

/** Puts ours in the place of its own. */
export function replaceKeywords(ajv: Ajv): void {
  for (const definition of keywords) {
    ajv.removeKeyword(definition.keyword)
    ajv.addKeyword(definition)
  }
}

function areDistinct(items: readonly Json[]): boolean {
  const ids = new StructuralIds()
  return new Set(items.map(item => ids.of(item))).size === items.length
}

/** Numbers, words and the like are looked up; lists and objects are compared one by one. */
function among(allowed: readonly Json[]): (value: Json) => boolean {
  const plain = new Set(allowed.filter(each => !isStructure(each)))
  const structures = allowed.filter(isStructure)
  return value => (isStructure(value) ? structures.some(each => isEqual(each, value)) : plain.has(value))
}

function isStructure(value: Json): boolean {
  return typeof value === 'object' && value !== null
}

/** @param left nested at most `limits.schemaDepthMax` deep: the comparison goes no deeper. */
function isEqual(left: Json, right: Json | undefined): boolean {
  if (Array.isArray(left)) {
    const isSameLength = Array.isArray(right) && left.length === right.length
    return isSameLength && left.every((each: Json, index) => isEqual(each, right[index]))
  }
  if (!isJsonObject(left)) return left === right
  if (!isJsonObject(right)) return false
  const entries = Object.entries<Json | undefined>(left)
  if (entries.length !== Object.keys(right).length) return false
  return entries.every(([name, each]) => each !== undefined && Object.hasOwn(right, name) && isEqual(each, right[name]))
}
