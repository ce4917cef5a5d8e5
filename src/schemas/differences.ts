/**
 * Comparing two graphs of types, pair by pair: each pair once, cycles included, so that the cost is the number of pairs and
 * not the number of paths to them. Pure, any thread.
 *
 * A pair that is being compared further up counts as compatible: the answer is the greatest one that agrees with itself. If
 * such an assumption turns out wrong, everything that was found compatible meanwhile is forgotten. What was found
 * incompatible under assumptions stays so without them, because every rule only ever asks for more pairs to be compatible.
 */
import { limits } from '../model/limits.ts'

/** One thing that keeps two schemas apart. */
export interface Difference {
  /** Where, from the pair that was compared: names and keywords, outermost first. */
  readonly path: readonly string[]
  /** What, in words that follow the place. */
  readonly words: string
}

/** Nothing is different. */
export const alike: readonly Difference[] = []

/** One difference at the place itself, or at a keyword of it. */
export function difference(words: string, ...path: readonly string[]): readonly Difference[] {
  return [{ path, words }]
}

/** The same differences, seen from further out; at most `limits.schemaProblemsMax` of them. */
export function below(path: readonly string[], found: readonly Difference[]): readonly Difference[] {
  if (found.length === 0) return alike
  return found.slice(0, limits.schemaProblemsMax).map(each => ({ path: [...path, ...each.path], words: each.words }))
}

/** Differences of several parts, bounded. */
export class Differences {
  readonly found: Difference[] = []

  /** Adds what was found, up to `limits.schemaProblemsMax` in all. */
  add(found: readonly Difference[]): void {
    for (const each of found) {
      if (this.found.length >= limits.schemaProblemsMax) return
      this.found.push(each)
    }
  }
}

/** Two schemas are too large, lead into each other too deeply, or have a pattern that is none; `message` says which. */
export class ComparisonLimitError extends Error {
  override readonly name = 'ComparisonLimitError'
}

/** Compares pairs by `compare`, which asks for further pairs through `of`. */
export class PairMemo<Before extends object, After extends object> {
  readonly #compare: (before: Before, after: After) => readonly Difference[]
  readonly #known = new Map<Before, Map<After, readonly Difference[]>>()
  readonly #running = new Map<Before, Map<After, { isAssumed: boolean }>>()
  /** Pairs found compatible, in that order: what a wrong assumption makes doubtful is a tail of it. */
  readonly #compatible: [Before, After][] = []
  #depth = 0
  #count = 0

  constructor(compare: (before: Before, after: After) => readonly Difference[]) {
    this.#compare = compare
  }

  /** @throws ComparisonLimitError beyond `limits.schemaReferencesDepthMax` and `limits.schemaPairsMax`. */
  of(before: Before, after: After): readonly Difference[] {
    const known = this.#known.get(before)?.get(after)
    if (known !== undefined) return known
    const running = this.#running.get(before)?.get(after)
    if (running !== undefined) {
      running.isAssumed = true
      return alike
    }
    if (this.#depth >= limits.schemaReferencesDepthMax) {
      throw new ComparisonLimitError(`types lead into each other deeper than ${limits.schemaReferencesDepthMax}`)
    }
    this.#count += 1
    if (this.#count > limits.schemaPairsMax) {
      throw new ComparisonLimitError(`more than ${limits.schemaPairsMax} pairs of types would have to be compared`)
    }
    return this.#compareNow(before, after)
  }

  #compareNow(before: Before, after: After): readonly Difference[] {
    const state = { isAssumed: false }
    const compatibleBefore = this.#compatible.length
    rowOf(this.#running, before).set(after, state)
    this.#depth += 1
    const found = this.#compare(before, after)
    this.#depth -= 1
    this.#running.get(before)?.delete(after)
    rowOf(this.#known, before).set(after, found)
    if (found.length === 0) this.#compatible.push([before, after])
    else if (state.isAssumed) this.#forgetSince(compatibleBefore)
    return found
  }

  #forgetSince(count: number): void {
    for (const [before, after] of this.#compatible.splice(count)) this.#known.get(before)?.delete(after)
  }
}

function rowOf<Row, Column, Value>(table: Map<Row, Map<Column, Value>>, row: Row): Map<Column, Value> {
  const found = table.get(row)
  if (found !== undefined) return found
  const made = new Map<Column, Value>()
  table.set(row, made)
  return made
}
