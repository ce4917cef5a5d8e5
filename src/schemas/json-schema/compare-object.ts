/**
 * Rules for objects. What may come or go depends on the content model:
 *
 *   open            no patternProperties, additionalProperties absent or true: any other property may stand there
 *   closed          additionalProperties false: none may
 *   partially open  patternProperties, or additionalProperties with a schema: some may
 *
 *   a property is added to     open            only if anything fits it: old data may have any value there
 *                              partially open  if it takes what the pattern took, and is not newly required
 *                              closed          unless it is required without a default
 *   a property is removed from open            always
 *                              partially open  if what covers it now takes what it took
 *                              closed          only if it allowed nothing
 *
 * Pure, any thread.
 */
import { alike, below, ComparisonLimitError, difference, Differences } from '../differences.ts'
import type { Difference } from '../differences.ts'
import { limitsOf } from './compare-limits.ts'
import { remainderDifferences } from './compare-remainder.ts'
import type { Comparing } from './comparing.ts'
import { isJsonObject, own } from './json.ts'
import type { Json, JsonObject } from './json.ts'
import { patternOf } from './pattern.ts'
import type { ShapedSchema } from './shapes.ts'

const sizes = [
  ['maxProperties', 'most'],
  ['minProperties', 'least']
] as const

/** Of two shapes of kind object. */
export function objectDifferences(comparison: Comparing, before: JsonObject, after: JsonObject): readonly Difference[] {
  const all = new Differences()
  all.add(propertyDifferences(comparison, before, after))
  all.add(dependencyDifferences(comparison, before, after))
  all.add(remainderDifferences(comparison, 'additionalProperties', before, after))
  all.add(remainderDifferences(comparison, 'unevaluatedProperties', before, after))
  all.add(limitsOf(sizes, before, after))
  return all.found
}

function propertyDifferences(comparison: Comparing, before: JsonObject, after: JsonObject): readonly Difference[] {
  const all = new Differences()
  const [was, is] = [schemasOf(before, 'properties'), schemasOf(after, 'properties')]
  const [wasRequired, isRequired] = [requiredOf(before), requiredOf(after)]
  for (const [name, schema] of Object.entries(was)) {
    if (schema === undefined) continue
    const path = ['properties', name]
    const now = own(is, name)
    if (now === undefined) {
      all.add(below(path, removedDifferences(comparison, after, name, schema)))
      continue
    }
    all.add(below(path, comparison.schemas(schema, now)))
    if (isRequired.has(name) && !wasRequired.has(name) && !hasDefault(now)) {
      all.add(difference(`property '${name}' became required without a default`, 'required'))
    }
  }
  for (const [name, schema] of Object.entries(is)) {
    if (schema === undefined || Object.hasOwn(was, name)) continue
    all.add(below(['properties', name], addedDifferences(comparison, before, name, schema)))
    if (!isOpen(before) && isRequired.has(name) && !hasDefault(schema)) {
      all.add(difference(`required property '${name}' without a default was added`, 'properties', name))
    }
  }
  return all.found
}

function removedDifferences(
  comparison: Comparing,
  after: JsonObject,
  name: string,
  schema: Json
): readonly Difference[] {
  if (isOpen(after)) return alike
  const cover = coverOf(after, name)
  if (cover !== undefined) {
    const found = comparison.schemas(schema, cover)
    return found.length === 0 ? alike : [...difference('was removed, and what covers it now takes less'), ...found]
  }
  return allowsNothing(comparison.before, schema) ? alike : difference('was removed from a closed content model')
}

function addedDifferences(
  comparison: Comparing,
  before: JsonObject,
  name: string,
  schema: Json
): readonly Difference[] {
  if (isOpen(before)) {
    const takesAll = comparison.after.shapeOf(schema).kind === 'any'
    return takesAll ? alike : difference('was added to an open content model')
  }
  const cover = coverOf(before, name)
  if (cover === undefined) return alike
  const found = comparison.schemas(cover, schema)
  return found.length === 0 ? alike : [...difference('was added, and takes less than what covered it before'), ...found]
}

function isOpen(keywords: JsonObject): boolean {
  const additional = restOf(keywords)
  const isAnything = additional === undefined || additional === true
  return isAnything && Object.keys(schemasOf(keywords, 'patternProperties')).length === 0
}

/** The schema of properties of that name which `properties` does not name; undefined: they are not allowed. */
function coverOf(keywords: JsonObject, name: string): Json | undefined {
  for (const [pattern, schema] of Object.entries(schemasOf(keywords, 'patternProperties'))) {
    if (matches(pattern, name)) return schema
  }
  const additional = restOf(keywords)
  return typeof additional === 'boolean' ? undefined : additional
}

/** A pattern over a schema that takes anything is never compiled for values, so it may be none. */
function matches(pattern: string, name: string): boolean {
  try {
    return patternOf(pattern).test(name)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    throw new ComparisonLimitError(`a name in patternProperties is no pattern: ${error.message}`)
  }
}

/** What properties must be that neither a name nor a pattern describes; undefined: anything. */
function restOf(keywords: JsonObject): Json | undefined {
  return own(keywords, 'additionalProperties') ?? own(keywords, 'unevaluatedProperties')
}

function allowsNothing(schema: ShapedSchema, place: Json): boolean {
  return schema.shapeOf(place).kind === 'none'
}

function dependencyDifferences(comparison: Comparing, before: JsonObject, after: JsonObject): readonly Difference[] {
  const all = new Differences()
  for (const keyword of ['dependencies', 'dependentRequired', 'dependentSchemas']) {
    const was = schemasOf(before, keyword)
    for (const [name, now] of Object.entries(schemasOf(after, keyword))) {
      if (now === undefined) continue
      all.add(below([keyword, name], oneDependencyDifferences(comparison, own(was, name), now)))
    }
  }
  return all.found
}

/** A dependency on other properties and one on a schema are two things: one does not replace the other. */
function oneDependencyDifferences(comparison: Comparing, before: Json | undefined, after: Json): readonly Difference[] {
  if (before === undefined || Array.isArray(before) !== Array.isArray(after)) return difference('was added')
  if (!Array.isArray(before) || !Array.isArray(after)) return comparison.schemas(before, after)
  const was = new Set<Json>(before)
  const added = after.find((name: Json) => !was.has(name))
  return added === undefined ? alike : difference(`asks for property ${JSON.stringify(added)} too`)
}

function schemasOf(keywords: JsonObject, keyword: string): JsonObject {
  const found = own(keywords, keyword)
  return isJsonObject(found) ? found : {}
}

function requiredOf(keywords: JsonObject): Set<Json> {
  const required = own(keywords, 'required')
  return new Set<Json>(Array.isArray(required) ? required : [])
}

function hasDefault(schema: Json): boolean {
  return isJsonObject(schema) && Object.hasOwn(schema, 'default')
}
