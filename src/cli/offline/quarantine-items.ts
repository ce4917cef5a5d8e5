/**
 * Every damaged range that a stopped broker's directory knows of, and everything that keeps a shard from starting until
 * an operator decides. Reads manifests, slot headers, footers, and the groups of slots that have none: not all data, so
 * what nobody has met yet is `verify`'s to find.
 */
import { entryKinds, type DirectoryEntry } from '../../log/group-format.ts'
import type { Manifest, ManifestPartition } from '../../log/manifest.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import { Findings, type ByteRange, type OffsetRange } from './findings.ts'
import { openSlot, walkGroups, type LostGroups, type OpenSlot } from './group-walk.ts'
import { readShardDecisions, readShardManifest } from './manifest-reading.ts'
import { mayBeginAnywhere } from './partition-check.ts'
import { surveySlots, type SlotRange, type SurveyedSlot } from './slot-survey.ts'
import { newestSlotOf } from './verification.ts'

const PIECE_BYTES = 512 * 1024
/** Problem of items that are offsets without bytes: something before them was lost. */
export const NO_GROUP = 'no readable group holds these offsets'

/** What a decision would give up. */
export type GivenUp =
  | {
      readonly action: 'skip-group'
      readonly slot: number
      readonly position: number
      /** Absolute path of the slot file, and the bytes that are lost: they are copied before the file is used again. */
      readonly path: string
      readonly bytes: ByteRange
    }
  | { readonly action: 'skip-file'; readonly file: string }
  | ({ readonly action: 'skip-slots' } & SlotRange)

export interface QuarantineItem {
  readonly journal: ShardJournal
  /** Relative to the data directory. */
  readonly file: string
  readonly bytes: ByteRange | null
  /** null: whose records they were is not known. */
  readonly offsets: OffsetRange | null
  readonly problem: string
  /** Of something that keeps the shard from starting: its name for `quarantine skip`, and what that gives up. */
  readonly undecided: { readonly id: string; readonly givesUp: GivenUp } | null
}

/** What was found of one shard. */
export interface ShardItems {
  readonly journal: ShardJournal
  readonly items: readonly QuarantineItem[]
  /** The newest slot that is there, or is known to have been. */
  readonly newestSlot: number
  /** Sequences that are missing and undecided. */
  readonly missing: readonly SlotRange[]
  /** Files that must be brought back: no decision helps. */
  readonly refusals: readonly string[]
}

/** @throws DiskError, StoreOpenError newer-format. */
export function findItems(directory: DataDirectory, journal: ShardJournal): ShardItems {
  const { manifest, problem, file } = readShardManifest(directory.disk, journal)
  const { decisions, problem: decisionProblem } = readShardDecisions(directory.disk, journal)
  const settledSequence = manifest === null ? null : manifest.settledSequence
  const known = { newestSlot: newestSlotOf(directory, journal), settledSequence, decisions }
  const survey = surveySlots(directory.disk, journal, known, new Findings())
  const finder = new ItemFinder(directory, journal, manifest)
  for (const partition of manifest?.partitions.values() ?? []) finder.addPartition(partition)
  for (const name of survey.unreadable) finder.addFile(name)
  for (const range of survey.missing) finder.addMissing(range)
  for (const slot of survey.slots)
    finder.addSlot(slot, position => decisions.skipsGroup(slot.header.sequence, position))
  const refusals = [
    ...(problem === null ? [] : [`${file}: ${problem}`]),
    ...(decisionProblem === null ? [] : [decisionProblem])
  ]
  return { journal, items: finder.items, newestSlot: survey.newestSlot, missing: survey.missing, refusals }
}

/** First offset behind the item that no other item of the partition takes; null: the item has no offsets. */
export function nextReadable({ offsets }: QuarantineItem, items: readonly QuarantineItem[]): number | null {
  if (offsets === null) return null
  let next = offsets.lastOffset + 1
  const contains = ({ offsets: other }: QuarantineItem): boolean =>
    other !== null &&
    other.partition.handle === offsets.partition.handle &&
    other.firstOffset <= next &&
    next <= other.lastOffset
  for (let found = items.find(contains); found !== undefined; found = items.find(contains)) {
    next = (found.offsets?.lastOffset ?? next) + 1
  }
  return next
}

class ItemFinder {
  readonly items: QuarantineItem[] = []
  readonly #directory: DataDirectory
  readonly #journal: ShardJournal
  readonly #manifest: Manifest | null
  readonly #nextOffsets = new Map<number, number>()

  constructor(directory: DataDirectory, journal: ShardJournal, manifest: Manifest | null) {
    this.#directory = directory
    this.#journal = journal
    this.#manifest = manifest
  }

  addPartition({ handle, nextOffset, damaged, directory }: ManifestPartition): void {
    this.#nextOffsets.set(handle, nextOffset)
    for (const { firstOffset, nextOffset: next, path } of damaged) {
      const bytes = path === null ? null : this.#sizeOf(path)
      this.#add({
        file: path ?? directory,
        bytes,
        offsets: this.#offsets(handle, firstOffset, next),
        problem:
          path === null
            ? 'nothing readable holds these offsets'
            : 'found damaged when it was settled; its bytes are kept here'
      })
    }
  }

  addFile(name: string): void {
    const problem = 'the header of this slot cannot be read, so nothing says which groups it had, or whether it had any'
    this.#add({
      file: `${this.#journal.label}/${name}`,
      bytes: null,
      offsets: null,
      problem,
      undecided: { id: `${this.#journal.shard}/${name}`, givesUp: { action: 'skip-file', file: name } }
    })
  }

  addMissing({ firstSlot, lastSlot }: SlotRange): void {
    const isOne = firstSlot === lastSlot
    this.#add({
      file: this.#journal.label,
      bytes: null,
      offsets: null,
      problem: isOne ? `slot ${firstSlot} is missing` : `slots ${firstSlot} to ${lastSlot} are missing`,
      undecided: {
        id: `${this.#journal.shard}/${isOne ? `slot-${firstSlot}` : `slots-${firstSlot}-${lastSlot}`}`,
        givesUp: { action: 'skip-slots', firstSlot, lastSlot }
      }
    })
  }

  addSlot(slot: SurveyedSlot, isGivenUp: (position: number) => boolean): void {
    const open = openSlot(this.#directory.disk, slot, PIECE_BYTES)
    try {
      if (open.footer !== null) {
        for (const entry of open.footer.entries) this.#addEntry(open, entry, 0, false)
        return
      }
      for (const step of walkGroups(open)) {
        if (step.kind === 'lost') this.#addLost(open, step.lost, isGivenUp(step.lost.position))
        if (step.kind !== 'group') continue
        const { entries, damaged, position } = step.group
        for (const entry of entries) this.#addEntry(open, entry, position, damaged.includes(entry))
      }
    } finally {
      open.close()
    }
  }

  #addEntry(open: OpenSlot, entry: DirectoryEntry, base: number, isDamaged: boolean): void {
    const isQuarantined = entry.kind === entryKinds.quarantined
    if (entry.kind !== entryKinds.run && !isQuarantined) return
    const next = this.#nextOffsets.get(entry.handle) ?? this.#beginOf(entry)
    const file = open.slot.label
    if (entry.baseOffset > next) {
      const offsets = this.#offsets(entry.handle, next, entry.baseOffset)
      this.#add({ file, bytes: null, offsets, problem: NO_GROUP })
    }
    this.#nextOffsets.set(entry.handle, entry.nextOffset)
    if (!isQuarantined && !isDamaged) return
    const startByte = base + entry.position
    this.#add({
      file,
      bytes: { startByte, endByte: startByte + entry.bytes },
      offsets: this.#offsets(entry.handle, entry.baseOffset, entry.nextOffset),
      problem: isQuarantined
        ? 'a run that an earlier start quarantined'
        : 'a damaged run: the next start quarantines it'
    })
  }

  #beginOf({ handle, baseOffset }: DirectoryEntry): number {
    return mayBeginAnywhere(this.#directory.names.nameOf(handle), this.#manifest) ? baseOffset : 0
  }

  #addLost({ slot }: OpenSlot, lost: LostGroups, isGivenUp: boolean): void {
    const { firstNumber, lastNumber, position, endPosition } = lost
    const bytes = { startByte: position, endByte: endPosition }
    const which =
      firstNumber === lastNumber ? `group ${firstNumber} has` : `groups ${firstNumber} to ${lastNumber} have`
    const givesUp = { action: 'skip-group', slot: slot.header.sequence, position, path: slot.path, bytes } as const
    this.#add({
      file: slot.label,
      bytes,
      offsets: null,
      problem: `${which} neither a readable directory nor a readable trailer${isGivenUp ? ': given up' : ''}`,
      undecided: isGivenUp ? null : { id: `${this.#journal.shard}/${slot.name}/${position}`, givesUp }
    })
  }

  #offsets(handle: number, firstOffset: number, nextOffset: number): OffsetRange {
    return { partition: this.#directory.names.nameOf(handle), firstOffset, lastOffset: nextOffset - 1 }
  }

  #sizeOf(path: string): ByteRange | null {
    const absolute = `${this.#directory.path}/${path}`
    return this.#directory.disk.exists(absolute)
      ? { startByte: 0, endByte: this.#directory.disk.sizeOf(absolute) }
      : null
  }

  #add(item: Omit<QuarantineItem, 'journal' | 'undecided'> & Partial<Pick<QuarantineItem, 'undecided'>>): void {
    this.items.push({ undecided: null, ...item, journal: this.#journal })
  }
}
