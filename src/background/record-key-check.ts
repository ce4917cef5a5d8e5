/** What the job `checkRecordKeys` is given and answers: whether the records of a client's batch have keys. */
import type { KeyVerdict } from '../wire/batch/batch-keys.ts'

/** One batch, which goes to the thread with the job, and comes back. */
export interface CheckRecordKeysValue {
  readonly batch: ArrayBuffer
}

export interface CheckRecordKeysResult {
  readonly verdict: KeyVerdict
  readonly batch: ArrayBuffer
}
