/** Whether the records of a batch that a client sent have keys. Pure, any thread. */
import { limits } from '../../model/limits.ts'
import { BatchRecords } from './records.ts'
import { batchStatus, BatchView, checkBatch, isWhole } from './view.ts'

/**
 * keyed: all have. keyless: the record with that index has none. undecodable: the records cannot be read to their end, or
 * would be more than the limit. damaged: the batch is not as it was sent, so nothing can be said of its records.
 */
export type KeyVerdict =
  | { readonly kind: 'keyed' }
  | { readonly kind: 'keyless'; readonly index: number }
  | { readonly kind: 'undecodable' }
  | { readonly kind: 'damaged' }

/**
 * Looks at the one batch that bytes[start, end) is. The checksum is computed only where something is wrong.
 * @param inflatedMax bytes of the records, where they are compressed. @cost a pass over the records.
 */
export function keyVerdictOn(
  bytes: Buffer,
  start: number,
  end: number,
  inflatedMax: number = limits.inflatedBatchBytesMax
): KeyVerdict {
  const verdict = walk(bytes, start, end, inflatedMax)
  if (verdict.kind === 'keyed' || checkBatch(bytes, start, end) === batchStatus.ok) return verdict
  return { kind: 'damaged' }
}

function walk(bytes: Buffer, start: number, end: number, inflatedMax: number): KeyVerdict {
  const view = new BatchView()
  if (!isWhole(view.open(bytes, start, end))) return { kind: 'undecodable' }
  const records = new BatchRecords()
  records.open(bytes, view, inflatedMax)
  const { cursor } = records
  for (let index = 0; cursor.next(); index++) if (cursor.keyLength < 0) return { kind: 'keyless', index }
  return cursor.status === batchStatus.ok ? { kind: 'keyed' } : { kind: 'undecodable' }
}
