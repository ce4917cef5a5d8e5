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
 * The body with the wanted fields alone, or why it is not JSON. Objects and lists in them are empty, and so is a body that
 * is a list: that they are of the wrong kind can be told, and nothing large comes back. Numbers are rounded.
 */
export type ReadFieldsResult = ParsedJson
