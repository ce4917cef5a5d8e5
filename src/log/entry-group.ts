/**
 * Groups that are written from their entries alone: copies made at recovery, new epochs, moves of start offsets. Shard
 * thread only. Not for records on their way in: those are the encoder's.
 */
import { GROUP_HEADER_BYTES, sealGroup, writeEntry, type DirectoryEntry } from './group-format.ts'
import type { Journal } from './journal.ts'

/**
 * Writes a group into the open slot; bodies, if any, already stand in `bytes` behind the directory. The caller syncs.
 * @returns its position in the slot. @throws DiskError
 */
export function writeEntryGroup(
  journal: Journal,
  bytes: Buffer,
  entries: readonly DirectoryEntry[],
  bodyBytes: number,
  receiveMs: number
): number {
  let at = GROUP_HEADER_BYTES
  for (const entry of entries) at = writeEntry(bytes, at, entry)
  const number = journal.nextGroup
  const position = journal.groupPosition
  const header = {
    number,
    lastSynced: journal.lastSynced,
    totalBytes: bytes.length,
    directoryBytes: at - GROUP_HEADER_BYTES,
    bodyBytes,
    entryCount: entries.length,
    receiveMs,
    slotSequence: journal.slotSequence
  }
  sealGroup(bytes, 0, header, journal.seed)
  journal.write(bytes, 0, bytes.length)
  journal.noteEntries(bytes, GROUP_HEADER_BYTES, at, position)
  journal.noteGroup(number, receiveMs)
  return position
}
