/**
 * Brings partition logs to what the entries of slots say: the second half of a start. Shard thread only, before anything
 * is read. Reads and writes no file.
 */
import { BrokerError } from '../model/errors.ts'
import type { LossWatch } from './decisions.ts'
import { RUN_HAS_GIVEN_TIMES, RUN_ROLLS, entryKinds, type DirectoryEntry } from './group-format.ts'
import type { LogTable } from './log-table.ts'
import type { PartitionLog } from './partition-log.ts'
import type { Findings } from './recovery.ts'

/** Brings the logs to what the slots say, in order. Entries of groups in doubt are left to the caller, who copies them. */
export function replay(findings: Findings, table: LogTable): void {
  const doubtful = new Set(findings.inDoubt)
  const { losses } = findings
  for (const slot of findings.slots) {
    losses.enterSlot(slot.header.sequence)
    if (slot.isSealed) {
      for (const entry of slot.entries) replayEntry(entry, { ordinal: slot.ordinal, base: 0 }, table, losses)
      continue
    }
    for (const group of slot.groups) {
      if (doubtful.has(group)) continue
      const place = { ordinal: slot.ordinal, base: group.position }
      for (const entry of group.entries) replayEntry(entry, place, table, losses)
    }
  }
}

/** A slot, and what is added to positions in it. */
export interface ReplayPlace {
  readonly ordinal: number
  readonly base: number
}

/** Applies one entry. */
export function replayEntry(entry: DirectoryEntry, place: ReplayPlace, table: LogTable, losses: LossWatch): void {
  const { ordinal, base } = place
  const log = table.recoveredLog(entry.handle)
  const isExplained = losses.explains(entry.handle, base + entry.position)
  if (isExplained && entry.baseOffset > log.nextOffset) recoverLost(log, entry, place)
  // What a deleted topic had in the manifest is gone, while slots may still tell of it. Of a topic that is there the table refuses it.
  if (entry.baseOffset > log.nextOffset && table.hasManifest && log.isUnknown) log.beginAt(entry.baseOffset)
  if (entry.kind === entryKinds.startOffset) {
    // Also if the manifest knows it: segments that it could not drop, because they went on in slots, go now.
    if (entry.baseOffset >= log.startOffset) log.moveStart(entry.baseOffset)
    return
  }
  if (entry.kind === entryKinds.leaderEpoch) {
    if (entry.leaderEpoch > log.leaderEpoch) log.beginEpoch(entry.leaderEpoch, entry.baseOffset)
    return
  }
  if (entry.baseOffset !== log.nextOffset) {
    throw new BrokerError('NOT_READY', {
      problem: `the journal gives partition handle ${entry.handle} offset ${entry.baseOffset} where ${log.nextOffset} is next`
    })
  }
  losses.noteRun(entry.handle)
  log.runs.add(entry.baseOffset, ordinal, base + entry.position, entry.bytes, -1)
  if (entry.kind === entryKinds.quarantined) log.runs.quarantineLast()
  log.recoverRun(entry.nextOffset, entry.bytes, (entry.flags & RUN_ROLLS) !== 0, entry.receiveMs)
  log.producers.recover(entry.producers, log.highWatermark)
  if ((entry.flags & RUN_HAS_GIVEN_TIMES) !== 0) log.noteGivenTimes(entry.nextOffset)
}

/** Offsets up to the entry's were in what was given up: reads say that they are damaged. */
function recoverLost(log: PartitionLog, entry: DirectoryEntry, { ordinal, base }: ReplayPlace): void {
  // A run without bytes would be passed over.
  log.runs.add(log.nextOffset, ordinal, base + entry.position, 1, -1)
  log.runs.quarantineLast()
  log.recoverRun(entry.baseOffset, 0, false, entry.receiveMs)
}
