/**
 * Whether a text is a JSON Schema: JSON of a bounded depth, valid by the meta-schema of its draft, and compilable, which
 * proves its patterns and that every `$ref` leads to a place in it. A `$ref` to another document is refused, never fetched.
 * Background thread.
 *
 * Drafts: 06, 07 (also without `$schema`), 2019-09, 2020-12. Any other `$schema` is read as draft-07, as other registries do.
 */
import { Ajv } from 'ajv'
import type { AnySchema } from 'ajv'
import { Ajv2019 } from 'ajv/dist/2019.js'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { limits } from '../../model/limits.ts'
import { isDeeperThan, isJsonObject } from './json.ts'
import type { Json } from './json.ts'

/** null: it is one. Else what is wrong, and where. */
export function jsonSchemaProblem(text: string): string | null {
  let parsed: Json
  try {
    parsed = JSON.parse(text)
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error
    return `it is not JSON: ${error.message}`
  }
  if (typeof parsed !== 'boolean' && !isJsonObject(parsed)) return 'a JSON Schema is an object or a boolean'
  if (isDeeperThan(parsed, limits.schemaDepthMax)) return `it is nested deeper than ${limits.schemaDepthMax}`
  return validityProblem(parsed)
}

function validityProblem(schema: Json & AnySchema): string | null {
  const declared = isJsonObject(schema) ? schema['$schema'] : undefined
  if (declared !== undefined && typeof declared !== 'string') return '$schema is not a string'
  const ajv = ajvFor(declared ?? '')
  if (ajv.validateSchema(schema) === true) return null
  const first = ajv.errors?.[0]
  return first === undefined ? 'it is not valid' : `at '${first.instancePath}': ${first.message ?? first.keyword}`
}

function ajvFor(draft: string): Ajv {
  const options = { strict: false, logger: false, allErrors: false } as const
  if (draft.includes('2019-09')) return new Ajv2019(options)
  if (draft.includes('2020-12')) return new Ajv2020(options)
  return new Ajv(options)
}
