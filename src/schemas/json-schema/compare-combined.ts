/**
 * Rules for allOf, anyOf and oneOf. Alternatives may be added, further conditions may go away, and each part that is on both
 * sides must find a partner: as many pairs as the smaller side has parts, each part used once. Pure, any thread.
 */
import { alike, difference } from '../differences.ts'
import type { Difference } from '../differences.ts'
import type { Comparing } from './comparing.ts'
import type { CombinedShape, Criterion, Part, Shape } from './shapes.ts'

const keywordOf: Readonly<Record<Criterion, string>> = { all: 'allOf', any: 'anyOf', one: 'oneOf' }

/**
 * Whether a shape and a combination go together, where only one of the two is a combination:
 *
 *   before        after                    compatible if
 *   X             one part                 X is, with that part
 *   X             anyOf, oneOf             X is, with any of the parts
 *   one part      X                        the part is, with X
 *   allOf         X                        any of the parts is, with X
 */
export function withinAlternatives(comparison: Comparing, before: Shape, after: Shape): boolean {
  if (after.kind === 'combined' && before.kind !== 'combined') {
    if (after.criterion === 'all' && after.parts.length !== 1) return false
    return after.parts.some(part => comparison.shapes(before, comparison.after.shapeOfPart(part)).length === 0)
  }
  if (before.kind === 'combined' && after.kind !== 'combined') {
    if (before.criterion !== 'all' && before.parts.length !== 1) return false
    return before.parts.some(part => comparison.shapes(comparison.before.shapeOfPart(part), after).length === 0)
  }
  return false
}

/** Of two combinations. */
export function combinedDifferences(
  comparison: Comparing,
  before: CombinedShape,
  after: CombinedShape
): readonly Difference[] {
  if (!mayBecome(before, after)) {
    const [was, is] = [keywordOf[before.criterion], keywordOf[after.criterion]]
    return difference(`${was} of ${before.parts.length} became ${is} of ${after.parts.length}`)
  }
  const [was, is] = [distinct(comparison, before.parts), distinct(comparison, after.parts)]
  const keyword = keywordOf[after.criterion]
  if (after.criterion === 'all' && was.length < is.length) {
    return difference(`${keyword} has ${is.length - was.length} more conditions than before`, keyword)
  }
  if (after.criterion !== 'all' && was.length > is.length) {
    return difference(`${keyword} has ${was.length - is.length} alternatives less than before`, keyword)
  }
  const wanted = Math.min(was.length, is.length)
  const pairs = pairCount(comparison, was, is)
  return pairs >= wanted ? alike : difference(`${keyword} has parts that fit none of the other version`, keyword)
}

/** To anyOf from everything; to oneOf and allOf only where a single part makes no difference between them. */
function mayBecome(before: CombinedShape, after: CombinedShape): boolean {
  if (before.criterion === after.criterion || after.criterion === 'any') return true
  if (after.criterion === 'one') return before.parts.length === 1
  return before.parts.length === 1 && after.parts.length === 1
}

/** Without parts that say the same. */
function distinct(comparison: Comparing, parts: readonly Part[]): Part[] {
  const byText = new Map<number | Part, Part>()
  for (const part of parts) byText.set('schema' in part ? comparison.ids.of(part.schema) : part, part)
  return [...byText.values()]
}

/** How many parts find a partner each. Equal texts are paired first: what is long is mostly unchanged. */
function pairCount(comparison: Comparing, before: readonly Part[], after: readonly Part[]): number {
  const fits = (left: number, right: number): boolean => {
    const [was, is] = [before[left], after[right]]
    return was !== undefined && is !== undefined && comparison.parts(was, is).length === 0
  }
  const matching = new Matching(before.length, after.length, fits)
  const rightOf = new Map(after.map((part, right) => [partId(comparison, part), right]))
  for (const [left, part] of before.entries()) {
    const right = rightOf.get(partId(comparison, part))
    if (right !== undefined && fits(left, right)) matching.pair(left, right)
  }
  return matching.complete()
}

function partId(comparison: Comparing, part: Part): number | Part {
  return 'schema' in part ? comparison.ids.of(part.schema) : part
}

/** The largest set of pairs in which each left and each right one stands at most once. Not recursive. */
class Matching {
  readonly #fits: (left: number, right: number) => boolean
  readonly #rightOfLeft: (number | null)[]
  readonly #leftOfRight: (number | null)[]

  constructor(leftCount: number, rightCount: number, fits: (left: number, right: number) => boolean) {
    this.#fits = fits
    this.#rightOfLeft = new Array<number | null>(leftCount).fill(null)
    this.#leftOfRight = new Array<number | null>(rightCount).fill(null)
  }

  /** Makes a pair of two that have no partner yet; else does nothing. */
  pair(left: number, right: number): void {
    if (this.#rightOfLeft[left] !== null || this.#leftOfRight[right] !== null) return
    this.#rightOfLeft[left] = right
    this.#leftOfRight[right] = left
  }

  /** Finds partners for all others as far as there are some. @returns the number of pairs. */
  complete(): number {
    for (const [left, right] of this.#rightOfLeft.entries()) if (right === null) this.#augment(left)
    return this.#rightOfLeft.filter(right => right !== null).length
  }

  /** Breadth first: a partner that is free, or one whose partner can take another. */
  #augment(start: number): void {
    const reachedFrom = new Map<number, number>()
    let lefts = [start]
    while (lefts.length > 0) {
      const following: number[] = []
      for (const left of lefts) {
        for (const [right, partner] of this.#leftOfRight.entries()) {
          if (reachedFrom.has(right) || !this.#fits(left, right)) continue
          reachedFrom.set(right, left)
          if (partner === null) return this.#turn(right, reachedFrom)
          following.push(partner)
        }
      }
      lefts = following
    }
  }

  #turn(free: number, reachedFrom: ReadonlyMap<number, number>): void {
    let right: number | null = free
    while (right !== null) {
      const left = reachedFrom.get(right)
      if (left === undefined) return
      const given: number | null = this.#rightOfLeft[left] ?? null
      this.#rightOfLeft[left] = right
      this.#leftOfRight[right] = left
      right = given
    }
  }
}
