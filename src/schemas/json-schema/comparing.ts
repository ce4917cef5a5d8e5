/** A comparison of two JSON Schemas as the rules of one kind see it: they ask it for the pairs below theirs. */
import type { Difference } from '../differences.ts'
import type { Json } from './json.ts'
import type { Part, Shape, ShapedSchema } from './shapes.ts'
import type { StructuralIds } from './structural-ids.ts'

export interface Comparing {
  /** What wrote the data. */
  readonly before: ShapedSchema
  /** What is to read it. */
  readonly after: ShapedSchema
  /** Of the values of both. */
  readonly ids: StructuralIds
  /** What keeps data of a place of `before` from being valid by one of `after`. @throws ComparisonLimitError */
  schemas(before: Json, after: Json): readonly Difference[]
  /** The same of two parts of combinations. */
  parts(before: Part, after: Part): readonly Difference[]
  /** The same of two shapes. */
  shapes(before: Shape, after: Shape): readonly Difference[]
}
