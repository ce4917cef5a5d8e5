/**
 * What sealed slots hold, partition by partition: the first half of a settle job. Reads footers only. Settler thread, or
 * a tool that holds the directory's lock.
 */
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import { readDecisions, type Decisions } from '../decisions.ts'
import type { DirectoryEntry } from '../group-format.ts'
import { SLOT_GROUPS_AT, decodeSlotHeader, saltSeed } from '../slot-format.ts'
import { SlotWindow, readFooter } from '../slot-scan.ts'

/** Entries that one job takes: they are in memory together, some 200 bytes each. A job takes one slot at least. */
export const PLANNED_ENTRIES_MAX = 500_000

export interface SlotToSettle {
  /** In the journal's directory. */
  readonly name: string
  readonly sequence: number
}

/** An entry with the slot that it stands in; positions count from the slot's start. */
export interface PlannedEntry {
  readonly slot: PlannedSlot
  readonly entry: DirectoryEntry
}

export interface PlannedSlot {
  readonly name: string
  readonly file: DiskFile
  /** Salted start of its checksums. */
  readonly seed: number
  /** An operator gave up something before it: runs may begin behind the next offset of their partition. */
  readonly mayLackOffsets: boolean
}

export interface SettlePlan {
  readonly slots: readonly PlannedSlot[]
  /** Entries of each handle, in the order in which they were written. */
  readonly entries: Map<number, PlannedEntry[]>
  readonly lastSequence: number
  readonly lastGroup: number
  readonly receiveMsMax: number
}

/**
 * Takes up the slots that follow `settledSequence`, as many as a job may hold. The caller closes their files.
 * @throws DiskError; EIO also if a slot is not what it was said to be: the next start of the shard looks at it anew.
 */
export function planSettle(
  disk: Disk,
  journalDirectory: string,
  settledSequence: number,
  wanted: readonly SlotToSettle[]
): SettlePlan {
  const slots: PlannedSlot[] = []
  const entries = new Map<number, PlannedEntry[]>()
  let entryCount = 0
  let lastSequence = settledSequence
  let lastGroup = 0
  let receiveMsMax = 0
  const decisions = readDecisions(disk, journalDirectory)
  try {
    for (const { name, sequence } of wanted) {
      if (sequence !== decisions.behind(lastSequence + 1)) break
      const read = readSlot(disk, `${journalDirectory}/${name}`, sequence, decisions)
      if (slots.length > 0 && entryCount + read.entries.length > PLANNED_ENTRIES_MAX) {
        read.slot.file.close()
        break
      }
      slots.push(read.slot)
      for (const entry of read.entries) {
        const known = entries.get(entry.handle)
        if (known === undefined) entries.set(entry.handle, [{ slot: read.slot, entry }])
        else known.push({ slot: read.slot, entry })
      }
      entryCount += read.entries.length
      lastSequence = sequence
      lastGroup = read.lastGroup
      receiveMsMax = Math.max(receiveMsMax, read.receiveMsMax)
    }
  } catch (error) {
    for (const { file } of slots) file.close()
    throw error
  }
  return { slots, entries, lastSequence, lastGroup, receiveMsMax }
}

function readSlot(
  disk: Disk,
  path: string,
  sequence: number,
  decisions: Decisions
): { slot: PlannedSlot; entries: DirectoryEntry[]; lastGroup: number; receiveMsMax: number } {
  const file = disk.open('slot.open', path)
  try {
    // Reads little more than header and footer: a bad place in a group costs that group's runs, not the slot.
    const window = new SlotWindow(file, SLOT_GROUPS_AT)
    const verdict = decodeSlotHeader(window.view(0, SLOT_GROUPS_AT))
    const header = verdict.kind === 'header' && verdict.header.sequence === sequence ? verdict.header : null
    const footer = header === null ? null : readFooter(window, saltSeed(header.salt))
    if (header === null || footer === null) {
      throw new DiskError(
        'EIO',
        'slot.read',
        `${path} is not the sealed slot ${sequence}: its header or footer is damaged`
      )
    }
    const { tail } = footer
    // A slot without a group ends where the one before it did.
    const lastGroup = tail.lastGroup === 0 ? header.previousLastGroup : tail.lastGroup
    return {
      slot: { name: path, file, seed: saltSeed(header.salt), mayLackOffsets: decisions.mayLackOffsets(sequence) },
      entries: footer.entries,
      lastGroup,
      receiveMsMax: tail.receiveMsMax
    }
  } catch (error) {
    file.close()
    throw error
  }
}
