/**
 * The rule of the mode `default` for JSON Schema: a new version adds no required field and removes no property. It looks at
 * the top level only, and at names only: types are not compared, and a field may stop being required. Pure, any thread.
 */
import type { Problems } from '../problems.ts'
import { isJsonObject } from './json.ts'
import type { Json } from './json.ts'

/**
 * Adds a sentence per required field that `candidate` adds and per property that it removes. A candidate without
 * `properties` removes all of them.
 *
 * @param candidate @param latest texts that parse as JSON Schema.
 */
export function defaultRuleProblems(candidate: string, latest: string, problems: Problems): void {
  const after: Json = JSON.parse(candidate)
  const before: Json = JSON.parse(latest)
  const wasRequired = new Set(requiredOf(before))
  for (const name of requiredOf(after)) {
    if (!wasRequired.has(name)) problems.add(`new schema adds required field '${name}'`)
  }
  const kept = new Set(propertiesOf(after))
  for (const name of propertiesOf(before)) {
    if (!kept.has(name)) problems.add(`new schema removes property '${name}'`)
  }
}

function requiredOf(schema: Json): string[] {
  const required = isJsonObject(schema) ? schema['required'] : undefined
  return Array.isArray(required) ? required.filter(name => typeof name === 'string') : []
}

function propertiesOf(schema: Json): string[] {
  const properties = isJsonObject(schema) ? schema['properties'] : undefined
  return isJsonObject(properties) ? Object.keys(properties) : []
}
