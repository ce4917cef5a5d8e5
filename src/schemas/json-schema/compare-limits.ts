/**
 * Rules for limits that a schema sets by a number or a word: strings, numbers, sizes. A limit may become wider or go away;
 * it may not become narrower or come up. Pure, any thread.
 */
import { alike, difference } from '../differences.ts'
import type { Difference } from '../differences.ts'
import { own } from './json.ts'
import type { JsonObject } from './json.ts'
import { isMultiple } from './multiple.ts'

/** Of one keyword that says the most, or the least, of something. */
function limitDifferences(
  keyword: string,
  side: 'most' | 'least',
  before: number | null,
  after: number | null
): readonly Difference[] {
  if (after === null || before === after) return alike
  if (before === null) return difference(`${keyword} ${after} was added`, keyword)
  const isNarrower = side === 'most' ? after < before : after > before
  if (!isNarrower) return alike
  return difference(`${keyword} went ${side === 'most' ? 'down' : 'up'} from ${before} to ${after}`, keyword)
}

/** The number under that keyword; null: there is none. */
function numberAt(keywords: JsonObject, keyword: string): number | null {
  const value = own(keywords, keyword)
  return typeof value === 'number' ? value : null
}

/** minLength, maxLength, pattern. */
export function stringDifferences(before: JsonObject, after: JsonObject): Difference[] {
  const [was, is] = [own(before, 'pattern'), own(after, 'pattern')]
  const pattern = was === undefined ? 'pattern was added' : 'pattern was changed'
  return [
    ...limitsOf([['maxLength', 'most'] as const, ['minLength', 'least'] as const], before, after),
    ...(is === undefined || is === was ? alike : difference(pattern, 'pattern'))
  ]
}

const numberLimits = [
  ['maximum', 'most'],
  ['minimum', 'least'],
  ['exclusiveMaximum', 'most'],
  ['exclusiveMinimum', 'least']
] as const

/** Limits, multipleOf, and whether only whole numbers are taken. */
export function numberDifferences(
  before: { readonly keywords: JsonObject; readonly isInteger: boolean },
  after: { readonly keywords: JsonObject; readonly isInteger: boolean }
): Difference[] {
  return [
    ...limitsOf(numberLimits, before.keywords, after.keywords),
    ...multipleDifferences(numberAt(before.keywords, 'multipleOf'), numberAt(after.keywords, 'multipleOf')),
    ...(after.isInteger && !before.isInteger ? difference('type went from number to integer') : alike)
  ]
}

function multipleDifferences(before: number | null, after: number | null): readonly Difference[] {
  if (after === null || after === before) return alike
  if (before === null) return difference(`multipleOf ${after} was added`, 'multipleOf')
  if (isMultiple(before, after)) return alike
  return difference(`multipleOf was changed from ${before} to ${after}`, 'multipleOf')
}

/** Several limits at once. */
export function limitsOf(
  limits: readonly (readonly [string, 'most' | 'least'])[],
  before: JsonObject,
  after: JsonObject
): Difference[] {
  return limits.flatMap(([keyword, side]) =>
    limitDifferences(keyword, side, numberAt(before, keyword), numberAt(after, keyword))
  )
}
