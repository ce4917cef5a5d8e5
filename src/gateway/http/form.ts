/** What the forms of JSON bodies share. Pure; main thread. */
import { BrokerError } from '../../model/errors.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'

export const U32_MAX = 0xffff_ffffn
export const U64_MAX = 0xffff_ffff_ffff_ffffn

export type Fields = { [field: string]: ExactJson }

/** A field that is missing, or of the wrong type. */
export function fault(field: string, problem: string): BrokerError {
  return new BrokerError('FIELD_INVALID', { field, problem })
}

/** The fields of an object. @throws BrokerError FIELD_INVALID */
export function fieldsOf(value: ExactJson, field: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(field, 'must be an object')
  return value
}

/** A whole number from 0 that is required. @throws BrokerError FIELD_INVALID */
export function requireWhole(fields: Fields, field: string, max: bigint): bigint {
  // A name such as `constructor` is a field only if the body has it.
  const value = Object.hasOwn(fields, field) ? fields[field] : undefined
  if (value === undefined) throw fault(field, 'is missing')
  if (typeof value === 'bigint' && value >= 0n && value <= max) return value
  throw fault(field, `must be a whole number from 0 to ${max}`)
}
