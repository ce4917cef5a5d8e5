/** What the job `validateRecords` is given and answers: whether the values of records match a schema. */
import type { SchemaText } from '../model/schemas.ts'
import type { ScannedProduce } from './scanned-records.ts'

/** Records in memory of their own, which goes to the thread with the job. */
export interface PackedRecords extends ScannedProduce {
  readonly memory: ArrayBuffer
}

export interface ValidateRecordsValue {
  readonly records: PackedRecords
  /** An id has one text for ever, so a thread keeps what it has compiled by it. */
  readonly schemaId: number
  /** null: the thread may have the schema ready. It is up to 512 KiB, and goes along only where it is asked for. */
  readonly text: SchemaText | null
}

export type ValidateRecordsResult =
  /** Every value matches, or is empty: a tombstone. The memory comes back. */
  | { readonly kind: 'valid'; readonly memory: ArrayBuffer }
  /** This thread needs the text. The memory comes back. */
  | { readonly kind: 'textless'; readonly memory: ArrayBuffer }
  /** The first record that does not, and why not. */
  | { readonly kind: 'mismatch'; readonly index: number; readonly problem: string }
