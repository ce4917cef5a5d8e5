/** What the job `readFields` is given and answers: a large JSON body of which a few fields are wanted. */
import type { ParsedJson } from '../wire/json/exact-json.ts'

export interface ReadFieldsValue {
  /** Moves with the job. */
  readonly body: ArrayBuffer
  /** Of body, from its start. */
  readonly length: number
  /** Fields that are wanted. */
  readonly names: readonly string[]
}

/**
 * The body with the wanted fields alone, or why it is not JSON. Objects in them are empty, lists have a null if they have
 * anything, and so has a body that is a list: of what kind they are can be told, and nothing large comes back. Numbers are
 * rounded.
 */
export type ReadFieldsResult = ParsedJson
