/**
 * `verify` of the journal of one shard: walks every slot, checks every byte that means something, counts what is there.
 * Reads only. Memory: one group, the footer of one slot, a few numbers per partition, and the findings.
 */
import { DiskError } from '../../disk/disk.ts'
import { DirectoryEntry, entryKinds } from '../../log/group-format.ts'
import { LossWatch, type Decisions } from '../../log/decisions.ts'
import type { Manifest } from '../../log/manifest.ts'
import { isRunWhole, type ScannedGroup } from '../../log/slot-scan.ts'
import { leaderEpochOf } from '../../model/leader-epochs.ts'
import { shardOf } from '../../model/ids.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import type { Findings, OffsetRange } from './findings.ts'
import { FooterCheck } from './footer-check.ts'
import { groupFaults } from './group-faults.ts'
import { openSlot, walkGroups, type LostGroups, type OpenSlot, type TornGroup } from './group-walk.ts'
import {
  UNKNOWN,
  applyEntry,
  checkWholeRun,
  locateRunFaults,
  mayBeginAnywhere,
  type PartitionState,
  type RunCount
} from './partition-check.ts'
import type { SurveyedSlot } from './slot-survey.ts'

/** Read at once. */
const PIECE_BYTES = 4 * 1024 * 1024

const refused = 'reads of these offsets are refused, never wrong; the offsets behind them are served'
const givenUp = 'an operator gave it up: reads of what is missing are refused'
const keepsShardDown = 'a start refuses this shard until an operator decides'

/** What one shard holds. Damaged runs are counted with the groups, not with the records. */
export interface ShardCount extends RunCount {
  readonly shard: number
  slots: number
  spares: number
  groups: number
  segments: number
  /** Of the slots, from their starts to the ends of their groups, and of what is settled. */
  bytes: number
}

export interface ShardCheckParts {
  readonly directory: DataDirectory
  readonly journal: ShardJournal
  readonly findings: Findings
  readonly count: ShardCount
  /** Hears how far in a slot, or in what is settled, the check has come. */
  readonly onProgress: (bytes: number) => void
}

export class ShardCheck {
  readonly #parts: ShardCheckParts
  readonly #states = new Map<number, PartitionState>()
  readonly #manifest: Manifest | null
  readonly #decisions: Decisions
  readonly #losses: LossWatch

  /** @param manifest null: what it said is not known, and each partition may begin anywhere. */
  constructor(parts: ShardCheckParts, manifest: Manifest | null, decisions: Decisions) {
    this.#parts = parts
    this.#decisions = decisions
    this.#losses = new LossWatch(decisions, manifest?.settledSequence ?? 0)
    this.#manifest = manifest
    for (const { handle, nextOffset, epochs } of manifest?.partitions.values() ?? []) {
      this.#states.set(handle, { nextOffset, leaderEpoch: leaderEpochOf(epochs) })
      this.#checkHandle(`${parts.journal.label}/manifest`, handle)
    }
  }

  /** Checks one slot; slots come in order. */
  check(slot: SurveyedSlot): void {
    this.#parts.count.slots++
    this.#losses.enterSlot(slot.header.sequence)
    try {
      const open = openSlot(this.#parts.directory.disk, slot, PIECE_BYTES)
      try {
        this.#checkGroups(open)
      } finally {
        open.close()
      }
    } catch (error) {
      if (!(error instanceof DiskError)) throw error
      const problem = `it cannot be read: ${error.code}`
      this.#parts.findings.addDamage({ file: slot.label, problem, meaning: 'what was not read was not checked' })
    }
  }

  #checkGroups(open: OpenSlot): void {
    const { findings, count, onProgress } = this.#parts
    const mayEndEarlier = this.#decisions.positionsIn(open.slot.header.sequence).length > 0
    const footer = new FooterCheck(open, findings, mayEndEarlier)
    let endPosition = footer.groupsStart
    let isTorn = false
    for (const step of walkGroups(open)) {
      if (step.kind === 'group') {
        const { group } = step
        footer.add(group)
        this.#checkGroup(open, group)
        endPosition = group.position + group.totalBytes
      } else if (step.kind === 'lost') {
        const isGivenUp = this.#decisions.skipsGroup(open.slot.header.sequence, step.lost.position)
        if (isGivenUp) this.#addLost(open, step.lost, givenUp)
        else this.#checkLost(open, step.lost, footer.takeLost(step.lost))
        endPosition = step.lost.endPosition
      } else {
        this.#noteTorn(open, step.torn)
        isTorn = true
      }
      onProgress(endPosition)
    }
    footer.finish(endPosition, isTorn)
    count.bytes += endPosition
  }

  #checkGroup(open: OpenSlot, group: ScannedGroup): void {
    this.#parts.count.groups++
    const bytes = open.window.view(group.position, group.totalBytes)
    if (!group.isWhole) this.#reportGroup(open, group, bytes)
    for (const entry of group.entries) {
      this.#checkEntry(open, { entry, bytes, start: group.position, isDamaged: group.damaged.includes(entry) })
    }
  }

  #reportGroup({ slot, footer }: OpenSlot, group: ScannedGroup, bytes: Buffer): void {
    const { findings } = this.#parts
    const who = footer === null ? 'the other copy of its directory' : 'the footer of the slot'
    const meaning = `costs readers nothing: ${who} names its runs`
    const faults = groupFaults(bytes, group.entries, slot.seed)
    for (const { part, startByte, endByte } of faults) {
      const what = part === 'padding' ? 'has bytes other than zero in its padding' : `has a damaged ${part}`
      const range = { startByte: group.position + startByte, endByte: group.position + endByte }
      findings.addDamage({ file: slot.label, bytes: range, problem: `group ${group.number} ${what}`, meaning })
    }
    if (faults.length > 0 || group.damaged.length > 0) return
    const range = { startByte: group.position, endByte: group.position + group.totalBytes }
    const problem = `group ${group.number} is whole, and its header contradicts its trailer`
    findings.addDamage({ file: slot.label, bytes: range, problem, meaning })
  }

  #addLost({ slot }: OpenSlot, lost: LostGroups, meaning: string): void {
    const { position, endPosition, firstNumber, lastNumber } = lost
    const which =
      firstNumber === lastNumber ? `group ${firstNumber} has` : `groups ${firstNumber} to ${lastNumber} have`
    const problem = `${which} neither a readable directory nor a readable trailer`
    const bytes = { startByte: position, endByte: endPosition }
    this.#parts.findings.addDamage({ file: slot.label, bytes, problem, meaning })
  }

  /** Groups of which nothing can be read; a whole footer still names their runs, and readers go by that. */
  #checkLost(open: OpenSlot, lost: LostGroups, entries: readonly DirectoryEntry[] | null): void {
    const { slot, window } = open
    const { firstNumber, lastNumber } = lost
    const namesRuns = 'costs readers nothing: the footer of the slot names the runs'
    this.#addLost(open, lost, entries === null ? keepsShardDown : namesRuns)
    if (entries === null) return
    this.#parts.count.groups += lastNumber - firstNumber + 1
    // A run is viewed by itself: lost groups together may be larger than memory.
    for (const entry of entries) {
      const bytes = window.view(entry.position, entry.bytes)
      const own = Object.assign(new DirectoryEntry(), entry, { position: 0 })
      this.#checkEntry(open, {
        entry: own,
        bytes,
        start: entry.position,
        isDamaged: !isRunWhole(bytes, own, slot.seed)
      })
    }
  }

  #noteTorn({ slot }: OpenSlot, torn: TornGroup): void {
    const { findings, directory } = this.#parts
    const words = {
      file: slot.label,
      bytes: { startByte: torn.position, endByte: torn.endPosition },
      problem: `group ${torn.number} is not whole, and nothing proves that it was ever synced`,
      meaning: 'the next start cuts it, with all behind it'
    }
    const runs = torn.entries.filter(entry => entry.kind === entryKinds.run)
    if (runs.length === 0) findings.addNote(words)
    for (const run of runs) findings.addNote({ ...words, offsets: offsetsOf(run, directory) })
  }

  #checkEntry(open: OpenSlot, run: EntryInGroup): void {
    const { entry } = run
    const state = this.#stateOf(open, entry)
    if (entry.kind === entryKinds.run || entry.kind === entryKinds.quarantined) {
      this.#checkContinuity(open, run, state)
      this.#checkRun(open, run, state)
      this.#losses.noteRun(entry.handle)
    }
    applyEntry(state, entry)
  }

  #checkRun(open: OpenSlot, { entry, bytes, start, isDamaged }: EntryInGroup, state: PartitionState): void {
    const { findings, directory, count } = this.#parts
    const offsets = offsetsOf(entry, directory)
    const file = open.slot.label
    if (entry.kind === entryKinds.quarantined) {
      const range = { startByte: start + entry.position, endByte: start + entry.position + entry.bytes }
      findings.addDamage({
        file,
        bytes: range,
        offsets,
        problem: 'a run that an earlier start quarantined',
        meaning: refused
      })
      return
    }
    const whole = isDamaged ? null : checkWholeRun(bytes, entry, state.leaderEpoch, count)
    const faults = isDamaged ? locateRunFaults(bytes, entry) : whole === null ? [] : [whole]
    for (const { startByte, endByte, problem } of faults) {
      const range = { startByte: start + startByte, endByte: start + endByte }
      findings.addDamage({ file, bytes: range, offsets, problem, meaning: refused })
    }
  }

  /** A start stops at the first run that does not begin where the one before it ended. */
  #checkContinuity(open: OpenSlot, { entry, start }: EntryInGroup, state: PartitionState): void {
    const isExplained = this.#losses.explains(entry.handle, start + entry.position)
    if (state.nextOffset === UNKNOWN) {
      state.nextOffset = entry.baseOffset
      state.leaderEpoch = entry.leaderEpoch
    }
    if (entry.baseOffset === state.nextOffset) return
    const { findings, directory } = this.#parts
    const partition = directory.names.nameOf(entry.handle)
    const isGap = entry.baseOffset > state.nextOffset
    findings.addDamage({
      file: open.slot.label,
      bytes: { startByte: start + entry.position, endByte: start + entry.position + entry.bytes },
      offsets: isGap
        ? { partition, firstOffset: state.nextOffset, lastOffset: entry.baseOffset - 1 }
        : { partition, firstOffset: entry.baseOffset, lastOffset: Math.min(state.nextOffset, entry.nextOffset) - 1 },
      problem: isGap ? 'no readable group holds these offsets' : 'these offsets are given a second time',
      meaning: isGap && isExplained ? givenUp : keepsShardDown
    })
  }

  #stateOf(open: OpenSlot, entry: DirectoryEntry): PartitionState {
    let state = this.#states.get(entry.handle)
    if (state === undefined) {
      const name = this.#parts.directory.names.nameOf(entry.handle)
      state = { nextOffset: mayBeginAnywhere(name, this.#manifest) ? UNKNOWN : 0, leaderEpoch: 0 }
      this.#states.set(entry.handle, state)
      this.#checkHandle(open.slot.label, entry.handle)
    }
    return state
  }

  /** Once per partition: the store must know it, and give it to this shard. */
  #checkHandle(file: string, handle: number): void {
    const { directory, journal, findings } = this.#parts
    const { image } = directory.store
    if (image === null) return
    if (directory.names.nameOf(handle).topic === null) {
      const problem = `the store has no topic for partition handle ${handle}, nor a deleted one`
      findings.addDamage({ file, problem, meaning: 'its records are kept, and nobody can read them' })
      return
    }
    const owner = image.shardCount === null ? journal.shard : shardOf(handle, image.shardCount)
    if (owner === journal.shard) return
    const problem = `partition handle ${handle} belongs to shard ${owner}`
    findings.addDamage({ file, problem, meaning: 'its records in this journal are not served' })
  }
}

interface EntryInGroup {
  readonly entry: DirectoryEntry
  /** What its position is counted in. */
  readonly bytes: Buffer
  /** Where `bytes` begin in the slot. */
  readonly start: number
  readonly isDamaged: boolean
}

function offsetsOf(entry: DirectoryEntry, directory: DataDirectory): OffsetRange {
  const partition = directory.names.nameOf(entry.handle)
  return { partition, firstOffset: entry.baseOffset, lastOffset: entry.nextOffset - 1 }
}
