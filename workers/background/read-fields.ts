/** The job `readFields`. Background thread. It is given the body's memory and frees it. */
import { freeMemory } from '../../src/base/free-memory.ts'
import type { ReadFieldsResult, ReadFieldsValue } from '../../src/background/read-fields.ts'
import { parseRoundedJson, type ExactJson } from '../../src/wire/json/exact-json.ts'

/** A body of which a few fields are wanted; see src/background/read-fields.ts. */
export function readFields({ body, length, names }: ReadFieldsValue): ReadFieldsResult {
  const parsed = parseRoundedJson(Buffer.from(body, 0, length))
  freeMemory(body)
  if (parsed.problem !== null) return parsed
  const { value } = parsed
  if (!isObject(value)) return { value: emptied(value), problem: null }
  const wanted = names.filter(name => Object.hasOwn(value, name))
  return { value: Object.fromEntries(wanted.map(name => [name, emptied(value[name] ?? null)])), problem: null }
}

function isObject(value: ExactJson): value is { [field: string]: ExactJson } {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Of the same kind, and small; a text is as it is. */
function emptied(value: ExactJson): ExactJson {
  if (Array.isArray(value)) return value.length === 0 ? [] : [null]
  return isObject(value) ? {} : value
}
