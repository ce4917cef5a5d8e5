/**
 * What `inspect` walks over: the groups of journals, the batches of one partition. Streams: one group is in memory.
 * Reads only. What it hands out is valid until the next step.
 */
import { entryKinds, type DirectoryEntry } from '../../log/group-format.ts'
import { BatchView, batchStatus, type BatchStatus } from '../../wire/batch/view.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import { Findings } from './findings.ts'
import { openSlot, walkGroups, type OpenSlot, type WalkStep } from './group-walk.ts'
import { batchesIn, runRange } from './run-batches.ts'
import { readShardDecisions, readShardManifest } from './manifest-reading.ts'
import { surveySlots, type SurveyedSlot } from './slot-survey.ts'

/** Read at once: less than `verify` does, because a walk is often over after a few groups. */
const PIECE_BYTES = 512 * 1024

/** Which part of a partition is wanted. */
export interface Wanted {
  readonly handle: number
  /** First offset. */
  readonly offset: number
}

/** One step through a slot. */
export interface PlacedStep {
  readonly journal: ShardJournal
  readonly slot: SurveyedSlot
  readonly step: WalkStep
  /** The group's bytes; empty for groups that are torn or lost. */
  readonly bytes: Buffer
}

/** What slot headers could not tell; the walk goes on with the slots that remain. */
export interface WalkFaults {
  damageCount: number
}

/** Every group that counts, in order. @param wanted null: all; else those with a run of it. @throws DiskError */
export function* groupsOf(
  directory: DataDirectory,
  journals: readonly ShardJournal[],
  wanted: Wanted | null,
  faults: WalkFaults
): Generator<PlacedStep> {
  for (const journal of journals) {
    const findings = new Findings()
    const { manifest, problem } = readShardManifest(directory.disk, journal)
    if (problem !== null) faults.damageCount++
    const { decisions } = readShardDecisions(directory.disk, journal)
    const settledSequence = manifest === null ? null : manifest.settledSequence
    const { slots } = surveySlots(directory.disk, journal, { newestSlot: 0, settledSequence, decisions }, findings)
    faults.damageCount += findings.damageCount
    for (const slot of slots) {
      const open = openSlot(directory.disk, slot, PIECE_BYTES)
      try {
        yield* stepsOf(open, journal, wanted)
      } finally {
        open.close()
      }
    }
  }
}

function* stepsOf(open: OpenSlot, journal: ShardJournal, wanted: Wanted | null): Generator<PlacedStep> {
  const { slot, window, footer } = open
  // A whole footer names all runs of its slot: one that has none of the wanted is passed over without being read.
  if (wanted !== null && footer !== null && !footer.entries.some(entry => isWanted(entry, wanted))) return
  for (const step of walkGroups(open)) {
    if (step.kind !== 'group') {
      yield { journal, slot, step, bytes: Buffer.alloc(0) }
    } else if (wanted === null || step.group.entries.some(entry => isWanted(entry, wanted))) {
      yield { journal, slot, step, bytes: window.view(step.group.position, step.group.totalBytes) }
    }
  }
}

/** True for a run of that partition with something at or behind that offset. */
export function isWanted(entry: DirectoryEntry, { handle, offset }: Wanted): boolean {
  const isRun = entry.kind === entryKinds.run || entry.kind === entryKinds.quarantined
  return isRun && entry.handle === handle && entry.nextOffset > offset
}

/** In which layer a batch lies. */
export type BatchWhere =
  | { readonly kind: 'slot'; readonly slot: string; readonly group: number }
  /** Relative to the data directory. */
  | { readonly kind: 'file'; readonly file: string }

/** A batch where it stands, or bytes that should be one. */
export interface PlacedBatch {
  readonly where: BatchWhere
  /** In the slot or the file. */
  readonly position: number
  readonly byteCount: number
  /** ok, or what is wrong; then only the place is to be trusted. */
  readonly status: BatchStatus
  /** Offsets of the run or the block that it is part of. */
  readonly range: { readonly baseOffset: number; readonly nextOffset: number }
  /** Its header, if the status is ok; the records are in `bytes`. */
  readonly view: BatchView
  readonly bytes: Buffer
}

const view = new BatchView()

/** The batches of a group's wanted runs that reach to the wanted offset. Damaged ones always come. */
export function* batchesOf({ slot, step, bytes }: PlacedStep, wanted: Wanted): Generator<PlacedBatch> {
  if (step.kind !== 'group') return
  const { group } = step
  for (const entry of group.entries) {
    if (!isWanted(entry, wanted)) continue
    const { start, end } = runRange(entry, bytes.length)
    for (const batch of batchesIn(bytes, start, end)) {
      const status = batch.status === batchStatus.ok ? view.open(bytes, batch.start, batch.end) : batch.status
      const isReadable = status === batchStatus.ok || status === batchStatus.compressed
      if (isReadable && view.lastOffset < wanted.offset) continue
      yield {
        where: { kind: 'slot', slot: slot.name, group: group.number },
        position: group.position + batch.start,
        byteCount: batch.end - batch.start,
        status: isReadable ? batchStatus.ok : status,
        range: entry,
        view,
        bytes
      }
    }
  }
}
