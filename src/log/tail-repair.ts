/**
 * Makes safe what a start found: headers that may stand in the page cache only, groups in doubt, cut ends, slots without
 * a footer (durability, V1 to V5). Shard thread only, before anything is read.
 */
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import type { Clock } from '../base/clock.ts'
import { DiskError } from '../disk/disk.ts'
import { batchBytesAt } from '../wire/batch/view.ts'
import { writeEntryGroup } from './entry-group.ts'
import { BATCH_COVERED_BY_RUN, DirectoryEntry, ENTRY_BYTES, entryKinds, groupBytes } from './group-format.ts'
import { sealSlot, writeSlotHeader, type Journal } from './journal.ts'
import type { LogTable } from './log-table.ts'
import type { Findings, FoundSlot } from './recovery.ts'
import { replayEntry } from './replay.ts'
import type { SealedSlot } from './sealed-slots.ts'
import { blockAligned } from './slot-format.ts'
import type { SlotFiles } from './slot-files.ts'
import type { ScannedGroup } from './slot-scan.ts'
import { footerOf } from './slot-walk.ts'

/** Beside records and directories: new epochs of some thousand partitions, headers and tails, and what the file system takes itself. */
const REPAIR_SURPLUS_BYTES = 1024 * 1024

export interface RepairParts {
  readonly files: SlotFiles
  readonly journal: Journal
  readonly table: LogTable
  readonly clock: Clock
}

/** On return all that was found is durable and every slot found has its footer. @throws DiskError; the next start does it again. */
export function repairTail(parts: RepairParts, findings: Findings): void {
  confirmHeaders(parts, findings)
  try {
    copyDoubtful(parts, findings)
    sealFound(parts, findings)
  } catch (error) {
    if (!(error instanceof DiskError) || !error.isFull) throw error
    const problem = `the disk is full, and a start writes the newest records anew before it serves them: make ${roomFor(findings)} bytes free for ${parts.files.directory}, and start again`
    throw new DiskError(error.code, error.point, `${problem} (${error.message})`, error)
  }
}

/** Bytes that a repair may take of the disk, if no spare slot is there. */
function roomFor({ slots, inDoubt }: Findings): number {
  const copies = inDoubt.reduce((sum, group) => sum + 2 * group.totalBytes - group.bodyBytes, 0)
  const footers = slots.reduce((sum, slot) => sum + (slot.isSealed ? 0 : directoryBytesOf(slot)), 0)
  return copies + footers + REPAIR_SURPLUS_BYTES
}

function directoryBytesOf({ groups }: FoundSlot): number {
  return groups.reduce((sum, group) => sum + group.totalBytes - group.bodyBytes, 0)
}

/**
 * Writes the headers of unsealed slots again, and syncs them. They may stand in the page cache only, or be held for
 * clean after a failed sync; if a later slot became durable before them, the chain would have a gap for ever.
 */
function confirmHeaders({ files }: RepairParts, findings: Findings): void {
  for (const slot of findings.slots) if (!slot.isSealed) writeSlotHeader(files.file(slot.ordinal), slot.header)
}

/**
 * Copies what was perhaps never synced into a fresh slot and begins new epochs where data was cut. The slot counts
 * only when all of it is on disk: both happen, or neither, and the next start does it again (V3, V5).
 */
function copyDoubtful({ files, journal, table }: RepairParts, findings: Findings): void {
  const { inDoubt } = findings
  const raised = handlesToRaise(findings, table)
  if (inDoubt.length === 0 && raised.length === 0) return
  const epochBytes = raised.length * ENTRY_BYTES
  const copiedBytes = inDoubt.reduce((sum, group) => sum + group.totalBytes, 0)
  const copiedDirectories = inDoubt.reduce((sum, group) => sum + group.totalBytes - group.bodyBytes, 0)
  let ordinal = -1
  try {
    journal.openForCopies(copiedBytes + groupBytes(epochBytes, 0), copiedDirectories + epochBytes)
    ordinal = journal.slotOrdinal
    writeCopies({ files, journal, table }, findings, raised)
  } catch (error) {
    // What was begun of the slot does not count, and takes room.
    if (ordinal >= 0 && error instanceof DiskError && !journal.isPoisoned) files.discard(ordinal)
    throw error
  }
}

/** Into the slot just opened, which counts at the end. */
function writeCopies(
  { files, journal, table }: Omit<RepairParts, 'clock'>,
  findings: Findings,
  raised: number[]
): void {
  const source = findings.slots.at(-1)
  for (const group of findings.inDoubt) {
    assert(source !== undefined, 'a group in doubt lies in the last slot')
    const bytes = Buffer.alloc(group.totalBytes)
    const read = files.file(source.ordinal).read('slot.read', bytes, 0, bytes.length, group.position)
    assert(read === bytes.length, 'a group that was found whole can be read again')
    const position = writeCopy(journal, bytes, group)
    for (const entry of group.entries)
      replayEntry(entry, { ordinal: journal.slotOrdinal, base: position }, table, findings.losses)
  }
  if (raised.length > 0) writeEpochs(journal, table, raised, findings.receiveMsMax)
  journal.sync()
  journal.commitHeader()
}

/** Seals `bytes` anew, with this slot's salt, and writes them. The runs stay where they are within the group. */
function writeCopy(journal: Journal, bytes: Buffer, group: ScannedGroup): number {
  for (const entry of group.entries) {
    if (entry.kind === entryKinds.run) entry.checksum = runChecksum(bytes, entry, journal.seed)
  }
  return writeEntryGroup(journal, bytes, group.entries, group.bodyBytes, group.receiveMs)
}

function runChecksum(group: Buffer, entry: DirectoryEntry, seed: number): number {
  let sum = seed
  for (let at = entry.position; at < entry.position + entry.bytes; at += batchBytesAt(group, at)) {
    sum = crc32c(group, at, at + BATCH_COVERED_BY_RUN, sum)
  }
  return sum
}

/** One group that begins a new epoch at the end of each of those logs. */
function writeEpochs(journal: Journal, table: LogTable, handles: readonly number[], receiveMs: number): void {
  const entries = handles.map(handle => {
    const log = table.recoveredLog(handle)
    log.beginEpoch(log.leaderEpoch + 1, log.nextOffset)
    const entry = new DirectoryEntry()
    entry.kind = entryKinds.leaderEpoch
    entry.handle = log.handle
    entry.baseOffset = log.nextOffset
    entry.nextOffset = log.nextOffset
    entry.leaderEpoch = log.leaderEpoch
    entry.receiveMs = receiveMs
    return entry
  })
  writeEntryGroup(journal, Buffer.alloc(groupBytes(entries.length * ENTRY_BYTES, 0)), entries, 0, receiveMs)
}

/** Partitions of which data was cut, perhaps. Handle 0 among those found stands for all that the shard has. */
function handlesToRaise(findings: Findings, table: LogTable): number[] {
  const handles = new Set(findings.cutHandles)
  if (!handles.delete(0)) return [...handles]
  for (const log of table.recoveredLogs()) handles.add(log.handle)
  for (const group of findings.inDoubt) for (const entry of group.entries) handles.add(entry.handle)
  return [...handles]
}

/** Gives every slot that had to be scanned its footer, so that the next start need not (V1). Its end is settled now. */
function sealFound({ files, journal, clock }: RepairParts, findings: Findings): void {
  const sealedAtMs = clock.monotonicMs()
  for (const slot of findings.slots) {
    const { name, ordinal, seed, header, endPosition: usedBytes } = slot
    const sealed = slot.isSealed
      ? { capacityBytes: slot.sizeBytes, lastGroup: slot.lastGroup }
      : sealOne(files, slot, findings.lastSynced)
    const { sequence, previousLastGroup } = header
    journal.sealed.add({ name, ordinal, sequence, seed, previousLastGroup, ...sealed, usedBytes, sealedAtMs })
  }
}

/** @returns the size of its file, which is cut behind the footer, and the last group that counts. */
function sealOne(
  files: SlotFiles,
  slot: FoundSlot,
  lastSynced: number
): Pick<SealedSlot, 'capacityBytes' | 'lastGroup'> {
  const { footer, footerAt } = footerOf(slot, lastSynced)
  const file = files.file(slot.ordinal)
  sealSlot(file, { seed: slot.seed, sequence: slot.header.sequence, footer, footerAt, endBytes: undefined })
  return { capacityBytes: blockAligned(file.sizeBytes()), lastGroup: footer.lastGroup }
}
