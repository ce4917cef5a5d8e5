/** What the forms of JSON bodies share. Pure; main thread. */
import { BrokerError } from '../../model/errors.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'

export const U32_MAX = 0xffff_ffffn
export const U64_MAX = 0xffff_ffff_ffff_ffffn
export const I64_MIN = -(2n ** 63n)
/** Digits of U64_MAX. */
export const U64_DIGITS = 20

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

/** A text that is required. @param path of the fields, with a dot at its end. @throws BrokerError FIELD_INVALID */
export function requireText(fields: Fields, name: string, path = ''): string {
  const value = fields[name] ?? null
  if (value === null) throw fault(path + name, 'is missing')
  if (typeof value !== 'string') throw fault(path + name, 'must be a string')
  return value
}

/** A whole number from 0 that is required. @throws BrokerError FIELD_INVALID */
export function requireWhole(fields: Fields, name: string, max: bigint): bigint {
  const value = fields[name] ?? null
  if (value === null) throw fault(name, 'is missing')
  if (typeof value === 'bigint' && value >= 0n && value <= max) return value
  throw fault(name, `must be a whole number from 0 to ${max}`)
}

/** One of some words; null: none is named. @param path of the fields, with a dot at its end. @throws BrokerError FIELD_INVALID */
export function choiceOf<T extends string>(fields: Fields, name: string, choices: readonly T[], path = ''): T | null {
  const value = fields[name] ?? null
  if (value === null) return null
  const choice = choices.find(known => known === value)
  if (choice === undefined) throw fault(path + name, `must be one of "${choices.join('", "')}", or null`)
  return choice
}

/** A number where that is exact (D25). */
export function narrow(value: bigint): number | bigint {
  return value <= BigInt(Number.MAX_SAFE_INTEGER) ? Number(value) : value
}
