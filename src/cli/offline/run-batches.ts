/**
 * The batches of a run, one after the other, from bytes that nobody vouches for. Pure.
 */
import type { DirectoryEntry } from '../../log/group-format.ts'
import { BATCH_HEADER_BYTES, batchBytesAt, batchStatus, checkBatch, type BatchStatus } from '../../wire/batch/view.ts'

/** Where a batch stands in the bytes given. */
export interface BatchPlace {
  readonly start: number
  /** Exclusive. Of a batch that is cut short or lies about its length: the end of the run. */
  readonly end: number
  /** badCrc, badMagic: its length may be right and the next batch follows. truncated, badLength: nothing can follow. */
  readonly status: BatchStatus
}

/** Every batch of the run that lies at bytes[start, end), with its CRC checked. The last may be bad. */
export function* batchesIn(bytes: Buffer, start: number, end: number): Generator<BatchPlace> {
  let at = start
  while (at < end) {
    const length = at + BATCH_HEADER_BYTES > end ? 0 : batchBytesAt(bytes, at)
    if (length < BATCH_HEADER_BYTES || length > end - at) {
      yield { start: at, end, status: length < BATCH_HEADER_BYTES ? batchStatus.badLength : batchStatus.truncated }
      return
    }
    yield { start: at, end: at + length, status: checkBatch(bytes, at, at + length) }
    at += length
  }
}

/** Bytes of the run that are there, as a range of the group's bytes; its end may be beyond a group that is cut short. */
export function runRange(entry: DirectoryEntry, length: number): { readonly start: number; readonly end: number } {
  const start = Math.min(entry.position, length)
  return { start, end: Math.min(entry.position + entry.bytes, length) }
}

const statusWords: Readonly<Record<BatchStatus, string>> = {
  [batchStatus.ok]: 'is whole',
  [batchStatus.truncated]: 'says that it is longer than its run',
  [batchStatus.badLength]: 'has a length that no batch has',
  [batchStatus.badMagic]: 'is not a record batch of version 2',
  [batchStatus.badCrc]: 'fails its CRC',
  [batchStatus.badHeader]: 'has a header that contradicts itself',
  [batchStatus.compressed]: 'is compressed, and cannot be inflated',
  [batchStatus.badRecord]: 'holds records that cannot be decoded',
  [batchStatus.numberRange]: 'has a timestamp beyond what this broker can hold'
}

/** What a status says of a batch, to follow "a batch". */
export function showStatus(status: BatchStatus): string {
  return statusWords[status]
}
