/**
 * Which JSON Schema draft a schema is written in, and one form for the oldest of them. Pure, any thread.
 *
 * Without `$schema`, and with one that is not known, a schema counts as draft-07: that is what Confluent's registry takes
 * it for, and refusing a private meta-schema would help nobody.
 */
import { isJsonObject, own } from './json.ts'
import type { Json, JsonObject } from './json.ts'

export type Draft = 'draft-04' | 'draft-06' | 'draft-07' | '2019-09' | '2020-12'

const drafts: ReadonlyMap<string, Draft> = new Map([
  ['json-schema.org/draft-04/schema', 'draft-04'],
  ['json-schema.org/draft-06/schema', 'draft-06'],
  ['json-schema.org/draft-07/schema', 'draft-07'],
  ['json-schema.org/draft/2019-09/schema', '2019-09'],
  ['json-schema.org/draft/2020-12/schema', '2020-12']
])

/** @param schema a whole schema: `$schema` counts at its top only. */
export function draftOf(schema: Json): Draft {
  const declared = isJsonObject(schema) ? own(schema, '$schema') : undefined
  if (typeof declared !== 'string') return 'draft-07'
  return drafts.get(declared.replace(/^https?:\/\//, '').replace(/#$/, '')) ?? 'draft-07'
}

/** True of the drafts in which keywords beside `$ref` count. */
export function isModern(draft: Draft): boolean {
  return draft === '2019-09' || draft === '2020-12'
}

/**
 * The schema without `$schema`, and a draft-04 one in the words of draft-07: `id` is `$id` there, and an exclusive limit is
 * a number instead of a mark on the inclusive one. In draft-04 a schema is never a boolean, so a property that is called
 * `exclusiveMinimum` is not taken for the keyword.
 */
export function inModernWords(schema: Json, draft: Draft): Json {
  if (draft === 'draft-04') return translated(schema)
  if (!isJsonObject(schema) || !Object.hasOwn(schema, '$schema')) return schema
  const { $schema: _, ...rest } = schema
  return rest
}

function translated(value: Json): Json {
  if (Array.isArray(value)) return value.map((each: Json) => translated(each))
  if (!isJsonObject(value)) return value
  const made: Record<string, Json | undefined> = {}
  for (const [name, each] of Object.entries(value)) {
    if (each === undefined || name === '$schema') continue
    if (name === 'id' && typeof each === 'string') define(made, '$id', each)
    else if (typeof each === 'boolean' && isExclusive(name)) addExclusive(made, name, value, each)
    else if (!isMarkedExclusive(value, name)) define(made, name, translated(each))
  }
  return made
}

function isExclusive(name: string): boolean {
  return name === 'exclusiveMinimum' || name === 'exclusiveMaximum'
}

function addExclusive(made: Record<string, Json | undefined>, name: string, of: JsonObject, isSet: boolean): void {
  const limit = own(of, name === 'exclusiveMinimum' ? 'minimum' : 'maximum')
  if (isSet && limit !== undefined) define(made, name, limit)
}

/** True of an inclusive limit that its mark makes exclusive. */
function isMarkedExclusive(of: JsonObject, name: string): boolean {
  if (name === 'minimum') return own(of, 'exclusiveMinimum') === true
  return name === 'maximum' && own(of, 'exclusiveMaximum') === true
}

/** Also for a name like `__proto__`, which JSON.parse takes as any other. */
function define(object: Record<string, Json | undefined>, name: string, value: Json): void {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true })
}
