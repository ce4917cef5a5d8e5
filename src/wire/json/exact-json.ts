/**
 * JSON.parse for small bodies, with integers exact to the last digit. Pure; any thread.
 * A number written as an integer arrives as bigint, any other as number: so a field can tell 2 from 2.0 and 2^64−1 from
 * its rounded twin.
 */
import { isUtf8 } from 'node:buffer'
import { JsonCursor, jsonKinds } from './json-cursor.ts'

/** A JSON value whose integers are bigints. */
export type ExactJson = null | boolean | string | number | bigint | ExactJson[] | { [field: string]: ExactJson }

/** Either the value, or what is wrong with the text, for BODY_NOT_JSON. */
export type ParsedJson = { readonly value: ExactJson; readonly problem: null } | { readonly problem: string }

/** Digits of an integer that are turned into a bigint: more than any 64-bit number has, and cheap to convert. */
const INTEGER_DIGITS_MAX = 40

const INTEGER = /^-?\d+$/

function exactNumber(_name: string, value: unknown, context?: { source?: string }): unknown {
  if (typeof value !== 'number') return value
  const source = context?.source ?? ''
  return source.length <= INTEGER_DIGITS_MAX && INTEGER.test(source) ? BigInt(source) : value
}

const cursor = new JsonCursor()

/** Why bytes[0, length) is not JSON, with the place; null if it is. The same words for every body. */
function problemOf(bytes: Buffer): string | null {
  if (!isUtf8(bytes)) return 'it is not UTF-8 text'
  cursor.open(bytes, 0, bytes.length)
  const isSound = cursor.scanValue(0) !== jsonKinds.broken && cursor.scanEnd()
  const problem = isSound ? null : `${cursor.problem}, at byte ${cursor.at}`
  cursor.close()
  return problem
}

/** Parses a whole body. @param bytes borrowed until return. */
export function parseExactJson(bytes: Buffer): ParsedJson {
  const problem = problemOf(bytes)
  if (problem !== null) return { problem }
  return { value: JSON.parse(bytes.toString('utf8'), exactNumber) as ExactJson, problem: null }
}

/** The same where no field that is wanted is a number: numbers are rounded as JSON.parse does. A tenth of the time at worst. */
export function parseRoundedJson(bytes: Buffer): ParsedJson {
  const problem = problemOf(bytes)
  if (problem !== null) return { problem }
  return { value: JSON.parse(bytes.toString('utf8')) as ExactJson, problem: null }
}
