/**
 * What must hold from run to run of one partition, and inside of each run: offsets without a gap, the right leader
 * epoch. Records that cannot be decoded are no damage if their CRC is right: a client sent them so. They are counted.
 * Owned by the check of one shard; a few numbers per partition, whatever it holds. Pure.
 */
import { entryKinds, type DirectoryEntry } from '../../log/group-format.ts'
import type { Manifest } from '../../log/manifest.ts'
import { BatchRecords } from '../../wire/batch/records.ts'
import { BatchView, batchStatus, isWhole } from '../../wire/batch/view.ts'
import type { ByteRange } from './findings.ts'
import type { PartitionName } from './partition-names.ts'
import { batchesIn, runRange, showStatus } from './run-batches.ts'

/** What is known of a partition so far. */
export interface PartitionState {
  /** Offset that the next run must begin with; UNKNOWN: the first one may begin anywhere. */
  nextOffset: number
  leaderEpoch: number
}

/** A fault inside of a run; bytes are places in the group. */
export interface RunFault extends ByteRange {
  /** A sentence about the batch or the run. */
  readonly problem: string
}

export interface RunCount {
  batches: number
  records: number
  /** Of the batches: those whose records cannot be decoded, however they were sent. Their records count as their headers say. */
  undecodable: number
}

/** No offset: nothing says which one is next. */
export const UNKNOWN = -1

/** Describes the batch that batchFault looked at last, if that is as it must be. */
export const storedView = new BatchView()
const view = storedView
const records = new BatchRecords()

/**
 * Whether the first run that is found of a partition which the manifest does not name may have any offset: what a deleted
 * topic had in the manifest is gone, while slots still tell of it. A start takes it so too (log/replay.ts).
 * @param manifest null: it cannot be read, and it may have named any.
 */
export function mayBeginAnywhere({ isDeleted }: PartitionName, manifest: Manifest | null): boolean {
  return manifest === null || (isDeleted && manifest.commit > 0)
}

/** Brings the state to what the entry says. A run is looked at by the others. */
export function applyEntry(state: PartitionState, entry: DirectoryEntry): void {
  if (entry.kind === entryKinds.leaderEpoch) state.leaderEpoch = Math.max(state.leaderEpoch, entry.leaderEpoch)
  else if (entry.kind !== entryKinds.startOffset) state.nextOffset = entry.nextOffset
}

/** Checks a run whose checksum and CRCs are right: what they vouch for must also make sense. Counts it. */
export function checkWholeRun(
  bytes: Buffer,
  entry: DirectoryEntry,
  leaderEpoch: number,
  count: RunCount
): RunFault | null {
  const { start, end } = runRange(entry, bytes.length)
  let expected = entry.baseOffset
  let recordCount = 0
  for (const batch of batchesIn(bytes, start, end)) {
    const problem = batchFault(bytes, batch.start, batch.end, expected) ?? epochFault(leaderEpoch)
    if (problem !== null) return { startByte: batch.start, endByte: batch.end, problem }
    expected = view.lastOffset + 1
    recordCount += view.recordCount
    count.batches++
    if (!isDecodable(bytes)) count.undecodable++
  }
  count.records += recordCount
  const range = { startByte: start, endByte: end }
  if (expected !== entry.nextOffset) {
    return { ...range, problem: `its batches end before offset ${expected}, its directory says ${entry.nextOffset}` }
  }
  if (recordCount === entry.recordCount) return null
  return { ...range, problem: `its batches hold ${recordCount} record(s), its directory says ${entry.recordCount}` }
}

/**
 * What is wrong with a batch whose CRC is right: what the CRC does not cover. @param expected its base offset; UNKNOWN: any,
 * as the batch before it is damaged. @returns null if it is as it must be; then `storedView` describes it.
 */
export function batchFault(bytes: Buffer, start: number, end: number, expected: number): string | null {
  const status = view.open(bytes, start, end)
  if (!isWhole(status)) return `a batch ${showStatus(status)}`
  if (expected === UNKNOWN || view.baseOffset === expected) return null
  return `a batch has base offset ${view.baseOffset} where ${expected} is next`
}

/** Whether readers of records find all of them in the batch that `storedView` describes. @cost inflates what is compressed. */
export function isDecodable(bytes: Buffer): boolean {
  records.open(bytes, view)
  while (records.cursor.next());
  return records.cursor.status === batchStatus.ok
}

/** What is wrong with the leader epoch of the batch looked at last; null: nothing. */
export function epochFault(leaderEpoch: number): string | null {
  if (view.leaderEpoch === leaderEpoch) return null
  return `the batch at offset ${view.baseOffset} has leader epoch ${view.leaderEpoch} where ${leaderEpoch} is right`
}

/** Finds the damaged bytes of a run that is known not to be whole: the bad batches, else all of it. */
export function locateRunFaults(bytes: Buffer, entry: DirectoryEntry): RunFault[] {
  const { start, end } = runRange(entry, bytes.length)
  const faults: RunFault[] = []
  let expected = entry.baseOffset
  for (const batch of batchesIn(bytes, start, end)) {
    const range = { startByte: batch.start, endByte: batch.end }
    if (batch.status !== batchStatus.ok) {
      faults.push({ ...range, problem: `a batch ${showStatus(batch.status)}` })
      // Its fields are not to be trusted: the next batch is compared with nothing.
      expected = UNKNOWN
      continue
    }
    const problem = batchFault(bytes, batch.start, batch.end, expected) ?? epochFault(entry.leaderEpoch)
    if (problem !== null) faults.push({ ...range, problem })
    expected = view.lastOffset + 1
  }
  if (faults.length > 0) return faults
  return [{ startByte: start, endByte: end, problem: 'a run fails its checksum' }]
}
