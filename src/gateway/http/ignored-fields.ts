/**
 * Fields that a body has and its route does not: they are passed over (spec 1.7), and the answer names them in a header, or else
 * nobody would notice one that is misspelt. What a route has is what the description of the API says. Pure; main thread.
 */
import { limits } from '../../model/limits.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'
import { nouns } from './openapi/nouns.ts'
import { nameOfNoun, type Schema } from './openapi/schema.ts'

/** The header that names them. */
export const IGNORED_HEADER = 'x-millrace-ignored'

/** What it says of a body; null: the route has all of its fields. @param schema of the body. */
export function ignoredFields(body: ExactJson, schema: Schema): string | null {
  const found: string[] = []
  collect(body, choicesOf(schema), '', found)
  if (found.length === 0) return null
  const { ignoredFieldsMax: max } = limits
  return found.length <= max ? found.join(', ') : `${found.slice(0, max).join(', ')}, ...`
}

/** What a value may be, without names and alternatives. */
function choicesOf(schema: Schema): readonly Schema[] {
  const name = nameOfNoun(schema)
  if (name !== null) return choicesOf(nouns[name])
  return schema.oneOf === undefined ? [schema] : schema.oneOf.flatMap(choicesOf)
}

/** Goes no deeper than the schemas, and ends when there are more than will be told. @param path of the value. */
function collect(value: ExactJson, choices: readonly Schema[], path: string, found: string[]): void {
  if (found.length > limits.ignoredFieldsMax || typeof value !== 'object' || value === null) return
  if (Array.isArray(value)) {
    const items = choices.flatMap(({ items }) => (items ? choicesOf(items) : []))
    if (items.length > 0) value.forEach((item, index) => collect(item, items, `${path}[${index}]`, found))
    return
  }
  const known = choices.flatMap(({ properties }) => (properties === undefined ? [] : [properties]))
  if (known.length === 0) return
  for (const [name, field] of Object.entries(value)) {
    const schemas = known.flatMap(properties => (Object.hasOwn(properties, name) ? [properties[name] as Schema] : []))
    const fieldPath = path === '' ? shown(name) : `${path}.${shown(name)}`
    if (schemas.length > 0) collect(field, schemas.flatMap(choicesOf), fieldPath, found)
    else found.push(fieldPath)
    if (found.length > limits.ignoredFieldsMax) return
  }
}

/** A name as a header may have it: its beginning, percent-encoded, and dots where more would follow. */
function shown(name: string): string {
  const start = name.slice(0, limits.ignoredFieldCharactersMax)
  return encodeURIComponent(start.toWellFormed()) + (start.length < name.length ? '...' : '')
}
