/**
 * Rules for arrays. Items are one schema for all of them, or a list of schemas and one for the rest; what may come into or
 * go from the list depends on what the rest may be, as with the properties of objects (compare-object.ts). Pure, any thread.
 */
import { alike, below, difference, Differences } from '../differences.ts'
import type { Difference } from '../differences.ts'
import { limitsOf } from './compare-limits.ts'
import { remainderChange, remainderDifferences } from './compare-remainder.ts'
import type { Comparing } from './comparing.ts'
import { own } from './json.ts'
import type { Json, JsonObject } from './json.ts'

/** What an array schema says of its items, in whichever words of whichever draft. */
interface Items {
  /** For every item; undefined: nothing is said, or the list below says it. */
  readonly every: Json | undefined
  readonly listed: readonly Json[]
  /** For items after the list; undefined: nothing is said. */
  readonly rest: Json | undefined
  /** What such items must be, whoever says it; undefined: anything. */
  readonly cover: Json | undefined
}

const sizes = [
  ['maxItems', 'most'],
  ['minItems', 'least'],
  ['maxContains', 'most'],
  ['minContains', 'least']
] as const

/** Of two shapes of kind array. */
export function arrayDifferences(comparison: Comparing, before: JsonObject, after: JsonObject): readonly Difference[] {
  const all = new Differences()
  const [was, is] = [itemsOf(before), itemsOf(after)]
  all.add(everyItemDifferences(comparison, was.every, is.every))
  all.add(listDifferences(comparison, was, is))
  all.add(remainderChange(comparison, 'additionalItems', was.rest, is.rest))
  all.add(remainderDifferences(comparison, 'unevaluatedItems', before, after))
  all.add(limitsOf(sizes, before, after))
  if (own(after, 'uniqueItems') === true && own(before, 'uniqueItems') !== true) {
    all.add(difference('uniqueItems was added', 'uniqueItems'))
  }
  return all.found
}

/** `prefixItems` and `items`, or the older `items` and `additionalItems`, which counts only beside a list. */
function itemsOf(keywords: JsonObject): Items {
  const items = own(keywords, 'items')
  const prefix = own(keywords, 'prefixItems')
  const unevaluated = own(keywords, 'unevaluatedItems')
  if (Array.isArray(prefix)) return { every: undefined, listed: prefix, rest: items, cover: items ?? unevaluated }
  if (items !== undefined && !Array.isArray(items)) return { every: items, listed: [], rest: undefined, cover: items }
  const rest = own(keywords, 'additionalItems')
  return { every: undefined, listed: items ?? [], rest, cover: rest ?? unevaluated }
}

function everyItemDifferences(
  comparison: Comparing,
  before: Json | undefined,
  after: Json | undefined
): readonly Difference[] {
  if (after === undefined) return alike
  if (before === undefined) return after === true ? alike : difference('a schema for all items was added', 'items')
  return below(['items'], comparison.schemas(before, after))
}

function listDifferences(comparison: Comparing, before: Items, after: Items): readonly Difference[] {
  const all = new Differences()
  for (let index = 0; index < Math.max(before.listed.length, after.listed.length); index += 1) {
    const [was, is] = [before.listed[index], after.listed[index]]
    const path = ['items', String(index)]
    if (was !== undefined && is !== undefined) all.add(below(path, comparison.schemas(was, is)))
    else if (was !== undefined) all.add(below(path, removedDifferences(comparison, was, after.cover)))
    else if (is !== undefined) all.add(below(path, addedDifferences(comparison, is, before.cover)))
  }
  return all.found
}

function removedDifferences(comparison: Comparing, before: Json, rest: Json | undefined): readonly Difference[] {
  if (rest === undefined || rest === true) return alike
  if (rest === false) {
    const allowedNothing = comparison.before.shapeOf(before).kind === 'none'
    return allowedNothing ? alike : difference('was removed, and no further items are allowed')
  }
  const found = comparison.schemas(before, rest)
  return found.length === 0
    ? alike
    : [...difference('was removed, and the schema of further items takes less'), ...found]
}

function addedDifferences(comparison: Comparing, after: Json, rest: Json | undefined): readonly Difference[] {
  if (rest === false) return alike
  if (rest === undefined || rest === true) {
    const takesAll = comparison.after.shapeOf(after).kind === 'any'
    return takesAll ? alike : difference('was added where any item was allowed')
  }
  const found = comparison.schemas(rest, after)
  return found.length === 0 ? alike : [...difference('was added, and takes less than further items took'), ...found]
}
