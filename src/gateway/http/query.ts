/** Query strings: exact, strict about what is known, silent about what is not. Pure; any thread. */
import { BrokerError } from '../../model/errors.ts'
import { I64_MIN, U32_MAX, U64_DIGITS, U64_MAX } from './form.ts'

/** Of a value that an error names. */
const SHOWN_MAX = 40

const decode = (text: string): string => decodeURIComponent(text.replaceAll('+', ' '))

/**
 * The known parameters of a query.
 * @throws BrokerError FIELD_INVALID for one given twice or a broken percent escape.
 */
export function parseQuery(query: string, known: readonly string[]): Map<string, string> {
  const found = new Map<string, string>()
  for (const part of query.split('&')) {
    if (part === '') continue
    const equals = part.indexOf('=')
    const rawName = equals < 0 ? part : part.slice(0, equals)
    try {
      const name = decode(rawName)
      if (!known.includes(name)) continue
      if (found.has(name)) throw new BrokerError('FIELD_INVALID', { field: name, problem: 'is given twice' })
      found.set(name, equals < 0 ? '' : decode(part.slice(equals + 1)))
    } catch (error) {
      if (!(error instanceof URIError)) throw error
      throw new BrokerError('FIELD_INVALID', { field: rawName, problem: 'has a broken percent escape' })
    }
  }
  return found
}

/** A parameter as u64; null if it is absent. @throws BrokerError FIELD_INVALID */
export function readU64(parameters: ReadonlyMap<string, string>, field: string): bigint | null {
  const text = parameters.get(field)
  if (text === undefined) return null
  const digits = /^\d+$/.test(text) ? text.replace(/^0+(?=\d)/, '') : ''
  const value = digits === '' || digits.length > U64_DIGITS ? -1n : BigInt(digits)
  if (value < 0n || value > U64_MAX) {
    throw new BrokerError('FIELD_INVALID', { field, problem: `must be a whole number from 0 to ${U64_MAX}` })
  }
  return value
}

/** A value brought into least … most, silently (spec 5). */
export function clamp(value: bigint, least: number, most: number): number {
  if (value < BigInt(least)) return least
  return value > BigInt(most) ? most : Number(value)
}

/** Whether bytes are asked for as base64; as text if nothing is said. @throws BrokerError FIELD_INVALID */
export function readIsBase64(parameters: ReadonlyMap<string, string>): boolean {
  const encoding = parameters.get('encoding') ?? 'utf8'
  if (encoding === 'base64') return true
  if (encoding === 'utf8' || encoding === 'utf-8') return false
  throw new BrokerError('FIELD_INVALID', { field: 'encoding', problem: 'must be utf8 or base64' })
}

/** A partition number that stands in a path. Whether the topic has it is not asked. @throws BrokerError FIELD_INVALID */
export function readPathPartition(text: string): number {
  return readPartition(new Map([['partition', text]])) ?? 0
}

/** The parameter `partition`; null if it is absent. Whether the topic has it is not asked. @throws BrokerError FIELD_INVALID */
export function readPartition(parameters: ReadonlyMap<string, string>): number | null {
  const partition = readU64(parameters, 'partition')
  if (partition === null || partition <= U32_MAX) return partition === null ? null : Number(partition)
  const problem = `must be a whole number from 0 to ${U32_MAX}`
  throw new BrokerError('FIELD_INVALID', { field: 'partition', problem })
}

/**
 * A time in Unix milliseconds, negative ones before 1970; null if it is absent. Any i64 or u64 is one (D25).
 * @throws BrokerError FIELD_INVALID, FIELD_RANGE
 */
export function readTime(parameters: ReadonlyMap<string, string>, field: string): bigint | null {
  const text = parameters.get(field)
  if (text === undefined) return null
  if (!/^-?\d+$/.test(text)) {
    const shown = text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text
    const problem = `'${shown}' is not a whole number of milliseconds, from ${I64_MIN} to ${U64_MAX}`
    throw new BrokerError('FIELD_INVALID', { field, problem })
  }
  const digits = text.replace(/^(-?)0+(?=\d)/, '$1')
  const value = digits.length > U64_DIGITS ? null : BigInt(digits)
  if (value === null || value < I64_MIN || value > U64_MAX) {
    const shown = digits.length > SHOWN_MAX ? `${digits.slice(0, SHOWN_MAX)}…` : digits
    throw new BrokerError('FIELD_RANGE', { field, value: shown, min: String(I64_MIN), max: String(U64_MAX) })
  }
  return value
}
