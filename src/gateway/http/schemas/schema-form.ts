/** What requests about schemas hold: JSON types checked here, meaning by the broker. Pure; main thread. */
import { BrokerError } from '../../../model/errors.ts'
import {
  compatibilityModes,
  schemaTypes,
  type CompatibilityMode,
  type RegisterRequest,
  type VersionWanted
} from '../../../model/schemas.ts'
import type { ExactJson } from '../../../wire/json/exact-json.ts'
import { choiceOf, fault, fieldsOf, requireText, U32_MAX } from '../form.ts'
import { readU64 } from '../query.ts'

/** Fields of the body of `POST /schemas`. */
export const registerFields = ['subject', 'type', 'schema'] as const

/** The body of `POST /schemas`. @throws BrokerError FIELD_INVALID */
export function readRegister(body: ExactJson): RegisterRequest {
  const fields = fieldsOf(body, 'body')
  const subject = requireText(fields, 'subject')
  const type = choiceOf(fields, 'type', schemaTypes) ?? 'json_schema'
  return { subject, type, schema: requireText(fields, 'schema') }
}

/** The body of the routes that set a mode; null: none of its own. @throws BrokerError FIELD_INVALID */
export function readCompatibility(body: ExactJson): CompatibilityMode | null {
  return choiceOf(fieldsOf(body, 'body'), 'compatibility', compatibilityModes)
}

/** The id in a path. @throws BrokerError FIELD_INVALID; SCHEMA_NOT_FOUND for one that no schema can have. */
export function readSchemaId(text: string): number {
  const id = readU64(new Map([['id', text]]), 'id') ?? 0n
  if (id > Number.MAX_SAFE_INTEGER) throw new BrokerError('SCHEMA_NOT_FOUND', { schema: String(id) })
  return Number(id)
}

/** The version in a path. @throws BrokerError FIELD_INVALID */
export function readVersion(text: string): VersionWanted {
  if (text === 'latest') return null
  if (/^\d{1,10}$/.test(text) && BigInt(text) <= U32_MAX) return Number(text)
  throw fault('version', `must be "latest", or a whole number up to ${U32_MAX}`)
}
