/**
 * Whether data that was valid by one JSON Schema is valid by another, by the rules of Confluent's registry ("JSON Schema
 * compatibility rules" in "Schema Evolution and Compatibility", and the behaviour of its checker where that page is
 * silent). Pure, any thread. Lives for one comparison.
 *
 * The rules go by kinds of places (shapes.ts); what they do not look at (format, propertyNames, contains, if and then, the
 * `required` of a property that the schema does not describe) may change freely.
 */
import { alike, difference, Differences, PairMemo } from '../differences.ts'
import type { Difference } from '../differences.ts'
import { arrayDifferences } from './compare-array.ts'
import { combinedDifferences, withinAlternatives } from './compare-combined.ts'
import { numberDifferences, stringDifferences } from './compare-limits.ts'
import { objectDifferences } from './compare-object.ts'
import type { Comparing } from './comparing.ts'
import type { Json } from './json.ts'
import type { Part, Shape, ShapedSchema } from './shapes.ts'
import { StructuralIds } from './structural-ids.ts'

const kindNames: Readonly<Record<Shape['kind'], string>> = {
  any: 'anything',
  none: 'nothing',
  boolean: 'boolean',
  null: 'null',
  conditional: 'if, then and else',
  string: 'string',
  number: 'number',
  object: 'object',
  array: 'array',
  enum: 'enum',
  const: 'const',
  not: 'not',
  combined: 'a combination of schemas',
  foreign: 'a reference to another document'
}

/** Two schemas, and the comparison of any two places of them. */
class Comparison implements Comparing {
  readonly before: ShapedSchema
  readonly after: ShapedSchema
  readonly ids = new StructuralIds()
  readonly #memo = new PairMemo<Shape, Shape>((before, after) => this.#shapeDifferences(before, after))
  #reverse: Comparison | null = null

  constructor(before: ShapedSchema, after: ShapedSchema) {
    this.before = before
    this.after = after
  }

  schemas(before: Json, after: Json): readonly Difference[] {
    return this.shapes(this.before.shapeOf(before), this.after.shapeOf(after))
  }

  parts(before: Part, after: Part): readonly Difference[] {
    return this.shapes(this.before.shapeOfPart(before), this.after.shapeOfPart(after))
  }

  shapes(before: Shape, after: Shape): readonly Difference[] {
    return before.kind === 'none' || after.kind === 'any' ? alike : this.#memo.of(before, after)
  }

  #shapeDifferences(before: Shape, after: Shape): readonly Difference[] {
    if (before.kind !== after.kind) {
      if (withinAlternatives(this, before, after)) return alike
      return difference(`type was changed from ${kindNames[before.kind]} to ${kindNames[after.kind]}`)
    }
    const all = new Differences()
    all.add(this.#sameKindDifferences(before, after))
    return all.found.length === 0 ? alike : all.found
  }

  /** @param after of the kind that `before` has. */
  #sameKindDifferences(before: Shape, after: Shape): readonly Difference[] {
    if (before.kind === 'string' && after.kind === 'string') return stringDifferences(before.keywords, after.keywords)
    if (before.kind === 'number' && after.kind === 'number') return numberDifferences(before, after)
    if (before.kind === 'object' && after.kind === 'object') {
      return objectDifferences(this, before.keywords, after.keywords)
    }
    if (before.kind === 'array' && after.kind === 'array')
      return arrayDifferences(this, before.keywords, after.keywords)
    if (before.kind === 'combined' && after.kind === 'combined') return combinedDifferences(this, before, after)
    if (before.kind === 'not' && after.kind === 'not') return this.#notDifferences(before.schema, after.schema)
    if (before.kind === 'foreign' && after.kind === 'foreign') {
      return before.address === after.address ? alike : difference('refers to another document than before', '$ref')
    }
    if ((before.kind === 'enum' || before.kind === 'const') && after.kind === before.kind) {
      return this.#valueDifferences(before.kind, before.values, after.values)
    }
    return alike
  }

  /** What must not match may only become narrower: everything that is excluded now was excluded before. */
  #notDifferences(before: Json, after: Json): readonly Difference[] {
    const reverse = (this.#reverse ??= new Comparison(this.after, this.before))
    reverse.#reverse = this
    const found = reverse.schemas(after, before)
    return found.length === 0 ? alike : difference('not excludes more than before', 'not')
  }

  #valueDifferences(kind: 'enum' | 'const', before: readonly Json[], after: readonly Json[]): readonly Difference[] {
    const allowed = new Set(after.map(value => this.ids.of(value)))
    const gone = before.find(value => !allowed.has(this.ids.of(value)))
    if (gone === undefined) return alike
    const words = kind === 'enum' ? `enum no longer has ${JSON.stringify(gone)}` : 'const was changed'
    return difference(words, kind)
  }
}

/** The differences of two whole schemas. @throws ComparisonLimitError */
export function schemaDifferences(before: ShapedSchema, after: ShapedSchema): readonly Difference[] {
  return new Comparison(before, after).schemas(before.root, after.root)
}
