/**
 * The slot files of one shard: which hold groups, in which order, and what is wrong with their headers and their chain.
 * Reads headers only. Where a start gives up at the first fault, this goes on, so that all faults are reported at once.
 */
import { DiskError, type Disk } from '../../disk/disk.ts'
import { decisionFileNames, type Decisions } from '../../log/decisions.ts'
import {
  BLOCK_BYTES,
  SLOT_GROUPS_AT,
  SLOT_VERSION,
  decodeSlotHeader,
  saltSeed,
  type SlotHeader,
  type SlotHeaderVerdict
} from '../../log/slot-format.ts'
import { readHeaderBlocks } from '../../log/slot-scan.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import type { ShardJournal } from './data-directory.ts'
import type { Findings } from './findings.ts'

/** One slot that holds groups. */
export interface SurveyedSlot {
  readonly name: string
  /** Absolute. */
  readonly path: string
  /** Relative to the data directory. */
  readonly label: string
  readonly header: SlotHeader
  readonly seed: number
  readonly sizeBytes: number
  /** The slot with the next sequence number, or null: it is the newest one, or that one is missing. */
  next: SurveyedSlot | null
}

export interface Survey {
  /** By sequence. */
  readonly slots: readonly SurveyedSlot[]
  /** Filled ahead and never used, or settled: free either way. */
  readonly spareCount: number
  /** Slot files whose header cannot be read, by name; without those given up. */
  readonly unreadable: readonly string[]
  /** Sequences, both included, of which there is no slot; without those given up. */
  readonly missing: readonly SlotRange[]
  /** The newest slot that is there, or is known to have been. */
  readonly newestSlot: number
}

export interface SlotRange {
  readonly firstSlot: number
  readonly lastSlot: number
}

const keepsShardDown = 'a start refuses this shard until an operator decides'
const costsNothing = 'costs readers nothing'

/** What is known of a journal from elsewhere. */
export interface SurveyKnown {
  /** Sequence of a slot that the store knows to have been written; 0: of none. */
  readonly newestSlot: number
  /** Slots up to this sequence are free; null: the manifest that would say so is damaged. */
  readonly settledSequence: number | null
  readonly decisions: Decisions
}

/**
 * Looks at every file of the journal.
 * @throws StoreOpenError newer-format, for a slot of a later version.
 */
export function surveySlots(disk: Disk, journal: ShardJournal, known: SurveyKnown, findings: Findings): Survey {
  const found: { slot: SurveyedSlot; blocks: Buffer }[] = []
  const unreadable: string[] = []
  const missing: SlotRange[] = []
  let spareCount = 0
  for (const name of disk.list(journal.directory)) {
    const file = `${journal.label}/${name}`
    if (name.endsWith('.filling')) {
      findings.addNote({ file, problem: 'a slot that was being filled', meaning: 'the next start removes it' })
    } else if (name === 'manifest.new') {
      findings.addNote({ file, problem: 'a manifest that was being written', meaning: 'the next start removes it' })
    } else if (name === 'manifest' || decisionFileNames.includes(name)) {
      // manifest-reading.ts has looked at it.
    } else if (known.decisions.skipsFile(name)) {
      findings.addNote({ file, problem: 'an operator gave this slot up', meaning: 'it is kept, and not read' })
    } else if (!/^\d+\.slot$/.test(name)) {
      findings.addNote({ file, problem: 'not a file of the journal', meaning: 'the broker does not look at it' })
    } else {
      const reading = readHeader(disk, journal, name, findings)
      if (reading === null || decodeSlotHeader(reading.blocks).kind === 'damaged') unreadable.push(name)
      if (reading === null) continue
      const slot = judgeHeader(reading, journal, findings)
      const isSettled = slot !== null && slot !== 'spare' && slot.header.sequence <= (known.settledSequence ?? 0)
      if (slot === 'spare' || isSettled) spareCount++
      else if (slot !== null) found.push({ slot, blocks: reading.blocks })
    }
  }
  found.sort((a, b) => a.slot.header.sequence - b.slot.header.sequence)
  found.forEach(({ slot, blocks }, index) => checkBlocks(slot, blocks, index === found.length - 1, findings))
  const settled = known.settledSequence ?? (found[0]?.slot.header.sequence ?? 1) - 1
  const slots = chained(found, { ...known, settledSequence: settled, missing }, journal, findings)
  const last = slots.at(-1)?.header.sequence ?? settled
  const next = known.decisions.behind(last + 1)
  if (next <= known.newestSlot) {
    missing.push({ firstSlot: next, lastSlot: known.newestSlot })
    const problem = `the journal ends with slot ${last}, and slot ${known.newestSlot} was written`
    findings.addDamage({ file: journal.label, problem, meaning: keepsShardDown })
  }
  return { slots, spareCount, unreadable, missing, newestSlot: Math.max(next - 1, known.newestSlot) }
}

interface HeaderReading {
  readonly name: string
  readonly path: string
  readonly label: string
  readonly blocks: Buffer
  readonly sizeBytes: number
}

function readHeader(disk: Disk, journal: ShardJournal, name: string, findings: Findings): HeaderReading | null {
  const path = `${journal.directory}/${name}`
  const label = `${journal.label}/${name}`
  try {
    const file = disk.open('slot.open', path)
    try {
      return { name, path, label, blocks: readHeaderBlocks(file), sizeBytes: file.sizeBytes() }
    } finally {
      file.close()
    }
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
    findings.addDamage({ file: label, problem: `it cannot be read: ${error.code}`, meaning: keepsShardDown })
    return null
  }
}

/** @returns null: it holds nothing that counts, or nothing that can be told from other bytes. */
function judgeHeader(reading: HeaderReading, journal: ShardJournal, findings: Findings): SurveyedSlot | 'spare' | null {
  const { label: file, blocks, sizeBytes } = reading
  const bytes = { startByte: 0, endByte: SLOT_GROUPS_AT }
  const verdict: SlotHeaderVerdict = decodeSlotHeader(blocks)
  switch (verdict.kind) {
    case 'newer':
      throw new StoreOpenError(
        'newer-format',
        `${file} was written by a newer version (journal format ${verdict.version}; this one reads up to ${SLOT_VERSION})`
      )
    case 'damaged':
      findings.addDamage({
        file,
        bytes,
        problem: 'both header blocks are damaged, so the groups of this slot cannot be told from other bytes',
        meaning: keepsShardDown
      })
      return null
    case 'torn':
      findings.addNote({
        file,
        bytes,
        problem: 'its header was never wholly written',
        meaning: 'nothing in it was ever acknowledged; it does not count'
      })
      return null
    case 'blank':
      if (sizeBytes > SLOT_GROUPS_AT) return 'spare'
      findings.addNote({ file, problem: 'an empty slot', meaning: 'the next start removes it' })
      return null
    case 'header':
      return ownSlot(reading, verdict.header, journal, findings)
  }
}

function ownSlot(
  reading: HeaderReading,
  header: SlotHeader,
  journal: ShardJournal,
  findings: Findings
): SurveyedSlot | null {
  const { name, path, label, sizeBytes } = reading
  if (header.shard === journal.shard) {
    return { name, path, label, header, seed: saltSeed(header.salt), sizeBytes, next: null }
  }
  findings.addDamage({
    file: label,
    bytes: { startByte: 0, endByte: SLOT_GROUPS_AT },
    problem: `it says that it belongs to shard ${header.shard}, and lies in the journal of shard ${journal.shard}`,
    meaning: keepsShardDown
  })
  return null
}

/** Either block will do for reading; both must be whole, and the same. */
function checkBlocks(slot: SurveyedSlot, blocks: Buffer, isNewest: boolean, findings: Findings): void {
  const halves = [blocks.subarray(0, BLOCK_BYTES), blocks.subarray(BLOCK_BYTES)]
  const kinds = halves.map(half => decodeSlotHeader(half).kind)
  kinds.forEach((kind, index) => {
    if (kind === 'header') return
    const words = { file: slot.label, bytes: { startByte: index * BLOCK_BYTES, endByte: (index + 1) * BLOCK_BYTES } }
    const which = index === 0 ? 'first' : 'second'
    // A header is synced before the slot after it begins, so only that of the newest slot can be unfinished.
    if (isNewest && (kind === 'torn' || kind === 'blank')) {
      const problem = `the ${which} header block was never wholly written`
      findings.addNote({ ...words, problem, meaning: `${costsNothing}: the other one is whole` })
    } else {
      const problem = `the ${which} header block is damaged`
      findings.addDamage({ ...words, problem, meaning: `${costsNothing}: the other one is whole` })
    }
  })
  const [first, second] = halves
  if (kinds.every(kind => kind === 'header') && first !== undefined && second !== undefined && !first.equals(second)) {
    findings.addDamage({
      file: slot.label,
      bytes: { startByte: 0, endByte: SLOT_GROUPS_AT },
      problem: 'its two header blocks are whole and differ',
      meaning: 'the first one counts'
    })
  }
}

interface Chain {
  readonly settledSequence: number
  readonly decisions: Decisions
  /** Takes what is missing. */
  readonly missing: SlotRange[]
}

/** Links each slot to the next. A gap is damage (V2): the groups in between are nowhere. */
function chained(
  found: readonly { slot: SurveyedSlot }[],
  known: Chain,
  journal: ShardJournal,
  findings: Findings
): SurveyedSlot[] {
  const slots: SurveyedSlot[] = []
  for (const { slot } of found) {
    const { sequence, previousSequence, previousLastGroup } = slot.header
    const before = slots.at(-1)
    const expected = known.decisions.behind((before?.header.sequence ?? known.settledSequence) + 1)
    if (known.decisions.skipsSlot(sequence)) {
      const problem = `an operator gave slot ${sequence} up, and here it is`
      findings.addNote({ file: slot.label, problem, meaning: 'it is kept, and not read' })
      continue
    }
    if (sequence < expected) {
      const problem = `it says that it is slot ${sequence}, which ${before?.name ?? 'another'} is as well`
      findings.addDamage({ file: slot.label, problem, meaning: keepsShardDown })
      continue
    }
    if (sequence > expected) {
      const missing = sequence - expected === 1 ? `slot ${expected} is` : `slots ${expected} to ${sequence - 1} are`
      const problem = `${missing} missing: ${slot.name} is slot ${sequence}`
      findings.addDamage({ file: journal.label, problem, meaning: keepsShardDown })
      known.missing.push({ firstSlot: expected, lastSlot: sequence - 1 })
    } else if (before?.header.sequence === sequence - 1) {
      before.next = slot
    }
    const last = before?.header.previousLastGroup ?? 0
    if (previousSequence !== sequence - 1 || previousLastGroup < last) {
      findings.addDamage({
        file: slot.label,
        bytes: { startByte: 0, endByte: SLOT_GROUPS_AT },
        problem: `its header says that slot ${previousSequence} with group ${previousLastGroup} came before it`,
        meaning: 'the slots before it are not what its broker saw; records may be missing'
      })
    }
    slots.push(slot)
  }
  return slots
}
