/**
 * Rules for what a schema says of everything that it does not name: additionalProperties, additionalItems and the
 * unevaluated ones. From nothing to something, and from some things to everything, is allowed; the ways back are not. Pure,
 * any thread.
 */
import { alike, below, difference } from '../differences.ts'
import type { Difference } from '../differences.ts'
import type { Comparing } from './comparing.ts'
import { own } from './json.ts'
import type { Json, JsonObject } from './json.ts'

/** Of one such keyword, where both schemas write it under the same name. */
export function remainderDifferences(
  comparison: Comparing,
  keyword: string,
  before: JsonObject,
  after: JsonObject
): readonly Difference[] {
  return remainderChange(comparison, keyword, own(before, keyword), own(after, keyword))
}

/** Of two such values; undefined: everything is allowed. */
export function remainderChange(
  comparison: Comparing,
  keyword: string,
  before: Json | undefined,
  after: Json | undefined
): readonly Difference[] {
  if (before === false || after === undefined || after === true) return alike
  if (after === false) return difference('no longer allows any', keyword)
  if (before === undefined || before === true) return difference('no longer allows everything', keyword)
  return below([keyword], comparison.schemas(before, after))
}
