/** What the forms of JSON bodies share. Pure; main thread. */
import { BrokerError } from '../../model/errors.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'

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
