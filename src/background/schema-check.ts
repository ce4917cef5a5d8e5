/** What the job `checkSchema` is given and answers. */
import type { CompatibilityMode, SchemaText } from '../model/schemas.ts'

export interface CheckSchemaValue {
  readonly candidate: SchemaText
  /** The versions that it is compared with, newest first. */
  readonly previous: readonly SchemaText[]
  readonly mode: CompatibilityMode
}

export type CheckSchemaResult =
  /** It does not parse as its type; one sentence says why. */
  | { readonly kind: 'invalid'; readonly problem: string }
  /** What is incompatible, in words; empty: nothing. */
  | { readonly kind: 'compared'; readonly incompatibilities: readonly string[] }
