/**
 * What sealed slots hold, partition by partition: the first half of a settle job. Reads footers only, and the groups of a
 * slot whose footer is damaged or cannot be read. Settler thread, or a tool that holds the directory's lock.
 */
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import type { SlotToSettle } from '../../wire/shard/settle.ts'
import { readDecisions, type Decisions } from '../decisions.ts'
import { readEntries, type DirectoryEntry } from '../group-format.ts'
import { SLOT_GROUPS_AT } from '../slot-format.ts'
import { SlotWindow, readFooter } from '../slot-scan.ts'
import { footerOf, walkSlot, type WalkedSlot } from '../slot-walk.ts'

/** Read-ahead where groups are read one by one. */
const WALK_BYTES = 1024 * 1024

/** Entries that one job takes: they are in memory together, some 200 bytes each. A job takes one slot at least. */
export const PLANNED_ENTRIES_MAX = 500_000

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
 * BrokerError NOT_READY if neither its footer nor all of its groups can be read.
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
    for (const slot of wanted) {
      const { sequence } = slot
      if (sequence !== decisions.behind(lastSequence + 1)) break
      const read = readSlot(disk, `${journalDirectory}/${slot.name}`, slot, decisions)
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
      // A slot without a group ends where the one before it did.
      lastGroup = Math.max(slot.previousLastGroup, slot.lastGroup)
      receiveMsMax = Math.max(receiveMsMax, read.receiveMsMax)
    }
  } catch (error) {
    for (const { file } of slots) file.close()
    throw error
  }
  return { slots, entries, lastSequence, lastGroup, receiveMsMax }
}

interface SlotContents {
  readonly entries: DirectoryEntry[]
  readonly receiveMsMax: number
}

/** Its checksums begin with its salt: what they hold for is that slot, whatever its header says. */
function readSlot(
  disk: Disk,
  path: string,
  wanted: SlotToSettle,
  decisions: Decisions
): SlotContents & { readonly slot: PlannedSlot } {
  const { sequence, seed } = wanted
  const file = disk.open('slot.open', path)
  try {
    // Reads little more than the footer: a bad place in a group costs that group's runs, not the slot.
    const footer = readFooter(new SlotWindow(file, SLOT_GROUPS_AT), seed)
    const contents = footer === null ? contentsOfGroups(file, wanted, decisions) : contentsOf(footer)
    if (contents === null) {
      const problem = `${path} is not the sealed slot ${sequence}: its footer cannot be read, and its groups do not end with ${wanted.lastGroup}`
      throw new DiskError('EIO', 'slot.read', problem)
    }
    return { ...contents, slot: { name: path, file, seed, mayLackOffsets: decisions.mayLackOffsets(sequence) } }
  } catch (error) {
    file.close()
    throw error
  }
}

function contentsOf({ tail, entries }: NonNullable<ReturnType<typeof readFooter>>): SlotContents {
  return { entries, receiveMsMax: tail.receiveMsMax }
}

/** What the footer said, out of the groups themselves, as a start does it. null: they are others. */
function contentsOfGroups(file: DiskFile, wanted: SlotToSettle, decisions: Decisions): SlotContents | null {
  const { name, sequence, seed, previousLastGroup, lastGroup } = wanted
  const slot: WalkedSlot = {
    name,
    header: { sequence, previousLastGroup },
    seed,
    groups: [],
    lastGroup: 0,
    receiveMsMax: 0,
    endPosition: SLOT_GROUPS_AT
  }
  const state = { decisions, cutGroups: 0, cutHandles: [], quarantinedRuns: 0, lastSynced: 0 }
  walkSlot(new SlotWindow(file, WALK_BYTES), slot, previousLastGroup + 1, lastGroup, state)
  if (slot.lastGroup !== lastGroup) return null
  const { footer } = footerOf(slot, lastGroup)
  const entries = readEntries(footer.buffer, 0, footer.bytes)
  return entries === null ? null : { entries, receiveMsMax: footer.receiveMsMax }
}
