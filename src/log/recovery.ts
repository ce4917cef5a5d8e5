/**
 * What a start finds in the slots of a shard, and how it makes that safe before anyone reads (durability, V1 to V5).
 * Shard thread only, before the shard is ready.
 *
 *   sealed slot   footer says everything, nothing is scanned
 *   open slot     scanned group by group
 *   bad group     nothing valid behind it that proves it was synced → torn tail, cut
 *                 else damage: its runs are named by directory or trailer and quarantined; if neither can be read,
 *                 recovery fails and the shard stays down until an operator decides (decisions.ts)
 *   last groups   not known to be synced → copied into a fresh slot and synced before the watermark is published
 */
import { BrokerError } from '../model/errors.ts'
import type { Disk } from '../disk/disk.ts'
import { LossWatch, type Decisions } from './decisions.ts'
import { DirectoryEntry, GROUP_HEADER_BYTES, claimsGroup, entryKinds, writeEntry, entryBytes } from './group-format.ts'
import { SlotFooter } from './slot-footer.ts'
import { lostManifestProblem } from './lost-manifest.ts'
import type { SlotFiles } from './slot-files.ts'
import {
  BLOCK_BYTES,
  SLOT_GROUPS_AT,
  SLOT_VERSION,
  decodeSlotHeader,
  saltSeed,
  type SlotHeader
} from './slot-format.ts'
import {
  SlotWindow,
  findLaterGroup,
  findTrailerEnd,
  groupAt,
  groupBefore,
  readFooter,
  type ScannedGroup
} from './slot-scan.ts'

/** Read-ahead of the scan. */
const WINDOW_BYTES = 4 * 1024 * 1024

/** How a refusal ends that `millrace quarantine` can resolve. */
const operatorDecides = "an operator must decide: 'millrace quarantine list' shows what"

/** One slot that counts, as found. */
export interface FoundSlot {
  readonly name: string
  readonly header: SlotHeader
  readonly seed: number
  ordinal: number
  sizeBytes: number
  isSealed: boolean
  /** Groups found by a scan; a sealed slot has only entries. */
  groups: ScannedGroup[]
  entries: DirectoryEntry[]
  lastGroup: number
  receiveMsMax: number
  /** Behind the last group that counts. */
  endPosition: number
}

/** What tells the groups of one slot from all other bytes. */
export type SlotKey = Pick<FoundSlot, 'name' | 'header' | 'seed'>

/** All that recovery found, not yet made safe. */
export interface Findings {
  readonly slots: FoundSlot[]
  /** Sequence of the newest slot, those that were given up included. */
  readonly lastSequence: number
  /** Offsets that may be missing, because an operator gave up what held them. */
  readonly losses: LossWatch
  /** Groups that were perhaps never synced, oldest first; all in the last slot. */
  readonly inDoubt: ScannedGroup[]
  readonly lastSynced: number
  /** Handles whose data a torn tail may have held: their epochs go up (V5). Empty: nothing was cut. */
  readonly cutHandles: readonly number[]
  readonly cutGroups: number
  readonly quarantinedRuns: number
  readonly receiveMsMax: number
  readonly scannedBytes: number
}

/** What is known of a journal from elsewhere. */
export interface JournalKnown {
  readonly shard: number
  /** Sequence of the newest slot that was written (from the store); 0: none is known of. */
  readonly newestSlot: number
  /** Slots up to this sequence were settled (from the manifest): their files are free. */
  readonly settledSequence: number
  /** The last group in them, and their greatest receive time. */
  readonly settledGroup: number
  readonly receiveMsMax: number
  readonly decisions: Decisions
  /** There are packs and no manifest: a slot that is not there was settled, or nobody knows. */
  readonly lacksManifest?: boolean
}

/** Hears how far the scan of a journal has come, of all that it has to look through; never goes back. */
export type ScanListener = (doneBytes: number, totalBytes: number) => void

/** Reads every slot file of the shard and says what counts. Changes nothing on disk, but removes half-filled files. */
export function findSlots(
  disk: Disk,
  files: SlotFiles,
  known: JournalKnown,
  onScan: ScanListener = () => undefined
): Findings {
  const slots = listSlots(disk, files, known)
  const lastSequence = checkChain(slots, known, files.directory)
  const { decisions } = known
  const scan = {
    decisions,
    cutGroups: 0,
    cutHandles: [] as number[],
    quarantinedRuns: 0,
    scannedBytes: 0,
    lastSynced: 0
  }
  if (decisions.isNews(slots.at(-1)?.header.sequence ?? known.settledSequence)) scan.cutHandles.push(0)
  let lastGroup = known.settledGroup
  const totalBytes = slots.reduce((sum, slot) => sum + slot.sizeBytes, 0)
  let doneBytes = 0
  onScan(0, totalBytes)
  slots.forEach((slot, index) => {
    const next = slots[index + 1]
    slot.ordinal = files.register(slot.name)
    const file = files.file(slot.ordinal)
    const end = new SlotWindow(file, WINDOW_BYTES)
    // Groups above what the next slot says are dead; those of a slot before that one were cut by its own successor.
    // One behind a slot that is given up counts on that slot's groups as well.
    const isCountedOn = next?.header.sequence === slot.header.sequence + 1
    const endGroup = isCountedOn ? next.header.previousLastGroup : Number.MAX_SAFE_INTEGER
    const footer = readFooter(end, slot.seed)
    if (footer !== null) takeFooter(slot, footer)
    else {
      let scannedTo = 0
      const window = new SlotWindow(file, WINDOW_BYTES, position => {
        scannedTo = Math.max(scannedTo, position)
        onScan(doneBytes + scannedTo, totalBytes)
      })
      scanSlot(window, slot, slot.header.previousLastGroup + 1, endGroup, scan)
      scan.scannedBytes += window.scannedBytes
    }
    scan.lastSynced = Math.max(scan.lastSynced, slot.header.previousLastGroup, footer === null ? 0 : slot.lastGroup)
    lastGroup = Math.max(lastGroup, slot.lastGroup, slot.header.previousLastGroup)
    scan.scannedBytes += end.scannedBytes
    doneBytes += slot.sizeBytes
    onScan(doneBytes, totalBytes)
  })
  const last = slots.at(-1)
  const inDoubt = last === undefined || last.isSealed ? [] : last.groups.filter(group => group.number > scan.lastSynced)
  return {
    slots,
    lastSequence,
    losses: new LossWatch(decisions, known.settledSequence),
    inDoubt,
    lastSynced: inDoubt.length === 0 ? lastGroup : scan.lastSynced,
    cutHandles: scan.cutHandles,
    cutGroups: scan.cutGroups,
    quarantinedRuns: scan.quarantinedRuns,
    receiveMsMax: slots.reduce((most, slot) => Math.max(most, slot.receiveMsMax), known.receiveMsMax),
    scannedBytes: scan.scannedBytes
  }
}

function listSlots(disk: Disk, files: SlotFiles, { shard, settledSequence, decisions }: JournalKnown): FoundSlot[] {
  const slots: FoundSlot[] = []
  for (const name of disk.list(files.directory)) {
    if (name.endsWith('.filling')) {
      disk.remove('slot.remove', files.path(name))
      continue
    }
    if (!/^\d+\.slot$/.test(name)) continue
    files.noteName(name)
    if (decisions.skipsFile(name)) continue
    const file = disk.open('slot.open', files.path(name))
    const blocks = Buffer.alloc(SLOT_GROUPS_AT)
    file.read('slot.read', blocks, 0, SLOT_GROUPS_AT, 0)
    const capacityBytes = file.sizeBytes()
    file.close()
    const verdict = decodeSlotHeader(blocks)
    if (verdict.kind === 'newer') {
      throw new BrokerError('NOT_READY', {
        problem: `journal format ${verdict.version} was written by a newer version; this one reads up to ${SLOT_VERSION}`
      })
    }
    const isSettled = verdict.kind === 'header' && verdict.header.sequence <= settledSequence
    // Given up, and there after all: it is kept as it is.
    if (verdict.kind === 'header' && !isSettled && decisions.skipsSlot(verdict.header.sequence)) continue
    if (verdict.kind === 'header' && !isSettled) slots.push(foundSlot(name, verdict.header, shard, capacityBytes))
    else if (verdict.kind === 'damaged') {
      // It may be the newest slot, which no gap in the sequence would give away.
      throw new BrokerError('NOT_READY', {
        problem: `both header blocks of journal file ${name} are damaged (bytes 0 to ${SLOT_GROUPS_AT}), so its groups cannot be told from other bytes; ${operatorDecides}`
      })
    } else if (capacityBytes > SLOT_GROUPS_AT) {
      // What an earlier use left is no zeros, but it is allocated: writing over it grows nothing either.
      files.addSpare({ name, capacityBytes, isFilled: true, isBlank: verdict.kind === 'blank' })
    } else disk.remove('slot.remove', files.path(name))
  }
  slots.sort((a, b) => a.header.sequence - b.header.sequence)
  return slots
}

function foundSlot(name: string, header: SlotHeader, shard: number, sizeBytes: number): FoundSlot {
  if (header.shard !== shard) {
    throw new BrokerError('NOT_READY', {
      problem: `journal file ${name} of shard ${shard} says it belongs to shard ${header.shard}`
    })
  }
  return {
    name,
    header,
    seed: saltSeed(header.salt),
    ordinal: -1,
    sizeBytes,
    isSealed: false,
    groups: [],
    entries: [],
    lastGroup: 0,
    receiveMsMax: 0,
    endPosition: SLOT_GROUPS_AT
  }
}

/**
 * A gap in the sequence numbers is damage (V2): the groups in between are nowhere. So is a newest slot that is not there.
 * @returns the sequence of the newest slot.
 */
function checkChain(slots: readonly FoundSlot[], known: JournalKnown, directory: string): number {
  const { decisions, newestSlot } = known
  let expected = decisions.behind(known.settledSequence + 1)
  for (const { name, header } of slots) {
    if (header.sequence !== expected) {
      if (known.lacksManifest === true) throw new BrokerError('NOT_READY', { problem: lostManifest(directory) })
      throw new BrokerError('NOT_READY', {
        problem: `the journal ${directory} has slot ${header.sequence} (${name}) where slot ${expected} is expected; ${operatorDecides}`
      })
    }
    expected = decisions.behind(expected + 1)
  }
  if (expected > newestSlot) return expected - 1
  if (known.lacksManifest === true) throw new BrokerError('NOT_READY', { problem: lostManifest(directory) })
  throw new BrokerError('NOT_READY', {
    problem: `the journal ${directory} ends with slot ${expected - 1}, but slot ${newestSlot} was written: its file is missing; ${operatorDecides}`
  })
}

function lostManifest(directory: string): string {
  return `${lostManifestProblem(directory)}: bring it back from a backup`
}

function takeFooter(slot: FoundSlot, footer: NonNullable<ReturnType<typeof readFooter>>): void {
  slot.isSealed = true
  slot.entries = footer.entries
  slot.lastGroup = footer.tail.lastGroup
  slot.receiveMsMax = footer.tail.receiveMsMax
  slot.endPosition = footer.tail.footerPosition
}

interface ScanState {
  readonly decisions: Decisions
  cutGroups: number
  cutHandles: number[]
  quarantinedRuns: number
  lastSynced: number
}

/** Walks the groups of an unsealed slot from number `expected` to `endGroup`. */
function scanSlot(window: SlotWindow, slot: FoundSlot, expected: number, endGroup: number, scan: ScanState): void {
  let position = SLOT_GROUPS_AT
  let number = expected
  while (number <= endGroup) {
    const group = groupAt(window, position, slot.seed)
    if (group !== null && group.isWhole && group.number === number) {
      addGroup(slot, group, scan)
    } else if (scan.decisions.skipsGroup(slot.header.sequence, position)) {
      const later = findLaterGroup(window, position + BLOCK_BYTES, number + 1, slot.seed)
      if (later === null || later.header.number > endGroup) return
      position = later.position
      number = later.header.number
      continue
    } else {
      const bad = judgeBadGroup(window, slot, position, number, endGroup)
      if (bad === 'end') return
      if (bad === 'torn' || bad === 'torn, others behind') {
        scan.cutGroups++
        scan.cutHandles.push(...cutHandlesOf(bad === 'torn' ? group : null, slot))
        return
      }
      for (const entry of bad.damaged) entry.kind = entryKinds.quarantined
      scan.quarantinedRuns += bad.damaged.length
      addGroup(slot, bad, scan)
    }
    position = slot.endPosition
    number++
  }
}

function addGroup(slot: FoundSlot, group: ScannedGroup, scan: ScanState): void {
  slot.groups.push(group)
  slot.lastGroup = group.number
  slot.receiveMsMax = Math.max(slot.receiveMsMax, group.receiveMs)
  slot.endPosition = group.position + group.totalBytes
  scan.lastSynced = Math.max(scan.lastSynced, group.lastSynced)
}

/** Handles of a torn group (null: unknown, or there were others behind it) if its directory can be read, else 0: everything of the shard may be meant. */
function cutHandlesOf(group: ScannedGroup | null, slot: FoundSlot): number[] {
  if (group === null) return slot.groups.length === 0 && slot.header.previousLastGroup === 0 ? [] : [0]
  return group.entries.map(entry => entry.handle)
}

/**
 * A group that is not whole stands at `position`, or none.
 *
 *   | later slot counts on this group | later group valid in this slot | says this one was synced | verdict |
 *   |---|---|---|---|
 *   | yes | –   | –   | damage |
 *   | no  | no  | –   | torn if the group left traces, else end |
 *   | no  | yes | yes | damage |
 *   | no  | yes | no  | torn (syncs were deferred) |
 *
 * Reads only; the offline tools ask it what a start would do.
 * @param endGroup the last group that a later slot or a footer counts on; MAX_SAFE_INTEGER: none does.
 * @throws BrokerError NOT_READY for damage of which neither directory nor trailer can be read.
 */
export function judgeBadGroup(
  window: SlotWindow,
  slot: SlotKey,
  position: number,
  number: number,
  endGroup: number
): 'end' | 'torn' | 'torn, others behind' | ScannedGroup {
  const isCountedOn = endGroup !== Number.MAX_SAFE_INTEGER
  const { later, isProven } = findLaterGroups(window, position + BLOCK_BYTES, number, slot.seed)
  if (!isCountedOn && !isProven) {
    if (later !== null) return 'torn, others behind'
    return hasTraces(window, slot, position, number) ? 'torn' : 'end'
  }
  // Its own directory names the runs if that is whole.
  const own = groupAt(window, position, slot.seed)
  if (own !== null && own.number === number) return own
  // Else the trailer does: right before the next group, or the first one found behind.
  const end =
    later !== null && later.header.number === number + 1
      ? later.position
      : findTrailerEnd(window, position, number, slot.seed)
  const behind = end === 0 ? null : groupBefore(window, end, slot.seed, position)
  if (behind !== null && behind.number === number) return behind
  throw new BrokerError('NOT_READY', {
    problem: `journal file ${slot.name} is damaged at byte ${position}: group ${number} has neither a readable directory nor trailer; ${operatorDecides}`
  })
}

/** True if part of group `number` stands at `position`. Bytes that an earlier use of the file left are none. */
function hasTraces(window: SlotWindow, slot: SlotKey, position: number, number: number): boolean {
  const block = window.view(position, BLOCK_BYTES)
  if (block.length < GROUP_HEADER_BYTES || block.every(byte => byte === 0)) return false
  if (claimsGroup(block, 0, number, slot.header.sequence)) return true
  return findTrailerEnd(window, position, number, slot.seed) !== 0
}

/**
 * The first whole group header of this slot behind `from` with a greater number; and whether any such says that group
 * `number` was synced. With deferred syncs the first often does not, but a later one may.
 */
function findLaterGroups(
  window: SlotWindow,
  from: number,
  number: number,
  seed: number
): { later: ReturnType<typeof findLaterGroup>; isProven: boolean } {
  const first = findLaterGroup(window, from, number + 1, seed)
  let later = first
  while (later !== null) {
    if (later.header.lastSynced >= number) return { later: first, isProven: true }
    later = findLaterGroup(window, later.position + later.header.totalBytes, number + 1, seed)
  }
  return { later: first, isProven: false }
}

/** The footer of a slot from the groups found in it, those up to `lastGroup`. */
export function footerOf(slot: FoundSlot, lastGroup: number): { footer: SlotFooter; footerAt: number } {
  const footer = new SlotFooter()
  let footerAt = SLOT_GROUPS_AT
  for (const group of slot.groups) {
    if (group.number > lastGroup) break
    const directory = Buffer.alloc(group.entries.reduce((sum, entry) => sum + entryBytes(entry), 0))
    let at = 0
    for (const entry of group.entries) at = writeEntry(directory, at, entry)
    footer.add(directory, 0, at, group.position)
    footer.noteGroup(group.number, group.receiveMs)
    footerAt = group.position + group.totalBytes
  }
  return { footer, footerAt }
}
