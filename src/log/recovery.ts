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
import type { DirectoryEntry } from './group-format.ts'
import { lostManifestProblem } from './lost-manifest.ts'
import type { SlotFiles } from './slot-files.ts'
import { SLOT_GROUPS_AT, SLOT_VERSION, decodeSlotHeader, saltSeed, type SlotHeader } from './slot-format.ts'
import { SlotWindow, readFooter, readHeaderBlocks, type ScannedGroup } from './slot-scan.ts'
import { operatorDecides, walkSlot, type WalkedSlot } from './slot-walk.ts'

/** Read-ahead of the scan. */
const WINDOW_BYTES = 4 * 1024 * 1024

/** One slot that counts, as found. */
export interface FoundSlot extends WalkedSlot {
  readonly header: SlotHeader
  ordinal: number
  sizeBytes: number
  /** Then it has only entries, and no groups. */
  isSealed: boolean
  entries: DirectoryEntry[]
}

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
      walkSlot(window, slot, slot.header.previousLastGroup + 1, endGroup, scan)
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
    const blocks = readHeaderBlocks(file)
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
