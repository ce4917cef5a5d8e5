/** What requests to the Confluent-compatible routes hold: checked here, its meaning by the broker. Pure; main thread. */
import {
  compatibilityModes,
  schemaTypes,
  type CompatibilityMode,
  type RegisterRequest,
  type SchemaType,
  type VersionWanted
} from '../../../model/schemas.ts'
import { confluentLevels, confluentTypes, levelOf } from '../../../wire/json/confluent-json.ts'
import type { ExactJson } from '../../../wire/json/exact-json.ts'
import { fault, fieldsOf, requireText, type Fields } from '../form.ts'
import { parseQuery } from '../query.ts'

/** Fields of a body with a schema. */
export const schemaFields = ['schema', 'schemaType', 'references', 'metadata', 'ruleSet'] as const

/** As Confluent's registry has it: a signed number of 32 bits. */
const VERSION_MAX = 2 ** 31 - 1

/** A body with a schema. @throws BrokerError FIELD_INVALID */
export function readSchema(subject: string, body: ExactJson): RegisterRequest {
  const fields = fieldsOf(body, 'body')
  checkAlone(fields)
  return { subject, type: readType(fields), schema: requireText(fields, 'schema') }
}

/** What a schema would need beside its text is refused: without it, it would mean something else. */
function checkAlone(fields: Fields): void {
  const references = fields['references'] ?? null
  if (references !== null && !Array.isArray(references)) throw fault('references', 'must be a list')
  if (references !== null && references.length > 0) {
    throw fault('references', 'are not supported: send a schema that has all of its types in its own text')
  }
  for (const name of ['metadata', 'ruleSet'] as const) {
    if ((fields[name] ?? null) !== null) throw fault(name, 'is not supported, and would not be kept: leave it out')
  }
}

function readType(fields: Fields): SchemaType {
  const name = fields['schemaType'] ?? null
  if (name === null) return 'avro'
  const type = schemaTypes.find(known => confluentTypes[known] === name)
  if (type === undefined) throw fault('schemaType', `must be one of "${Object.values(confluentTypes).join('", "')}"`)
  return type
}

/** The body that chooses a level. @throws BrokerError FIELD_INVALID */
export function readLevel(body: ExactJson): CompatibilityMode {
  const name = fieldsOf(body, 'body')['compatibility'] ?? null
  const level = typeof name === 'string' ? name.toUpperCase() : null
  const mode = compatibilityModes.find(known => known !== 'default' && levelOf(known) === level)
  if (mode === undefined) throw fault('compatibility', `must be one of "${confluentLevels.join('", "')}"`)
  return mode
}

/** The version in a path: a number from 1, `latest`, or −1 for it. @throws BrokerError FIELD_INVALID */
export function readVersion(text: string): VersionWanted {
  if (text === 'latest' || text === '-1') return null
  const version = /^\d{1,10}$/.test(text) ? Number(text) : 0
  if (version >= 1 && version <= VERSION_MAX) return version
  throw fault('version', `must be a whole number from 1 to ${VERSION_MAX}, "latest", or -1 for it`)
}

/** A parameter that is true or false; false if it is absent. @throws BrokerError FIELD_INVALID */
export function readFlag(query: string, name: string): boolean {
  const text = parseQuery(query, [name]).get(name) ?? 'false'
  if (text !== 'true' && text !== 'false') throw fault(name, 'must be true or false')
  return text === 'true'
}
