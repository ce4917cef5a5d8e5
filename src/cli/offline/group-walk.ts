/**
 * The groups of one slot in order, with what recovery would say of each that is not whole. Pure over a SlotWindow.
 *
 *   group   counts: whole, or damaged with a directory that could be read somewhere
 *   lost    counted on by a footer or a later slot, and nothing says what was in it
 *   torn    not whole, and nothing proves that it was ever synced: the next start cuts it
 */
import type { Disk } from '../../disk/disk.ts'
import type { DirectoryEntry } from '../../log/group-format.ts'
import { judgeBadGroup, type SlotKey } from '../../log/slot-walk.ts'
import { BLOCK_BYTES, SLOT_GROUPS_AT, type SlotTail } from '../../log/slot-format.ts'
import {
  SlotWindow,
  findLaterGroup,
  groupAt,
  groupHeaderAt,
  readFooter,
  type ScannedGroup
} from '../../log/slot-scan.ts'
import { BrokerError } from '../../model/errors.ts'
import type { SurveyedSlot } from './slot-survey.ts'

export interface LostGroups {
  readonly firstNumber: number
  readonly lastNumber: number
  readonly position: number
  readonly endPosition: number
}

export interface TornGroup {
  readonly number: number
  readonly position: number
  /** Behind what its header claims; the next block where that cannot be read. */
  readonly endPosition: number
  /** The runs it would have held; empty if its directory cannot be read. */
  readonly entries: readonly DirectoryEntry[]
}

export type WalkStep =
  | { readonly kind: 'group'; readonly group: ScannedGroup }
  | { readonly kind: 'lost'; readonly lost: LostGroups }
  | { readonly kind: 'torn'; readonly torn: TornGroup }

/** A slot opened for walking. */
export interface OpenSlot {
  readonly slot: SurveyedSlot
  readonly window: SlotWindow
  /** null: not sealed, or tail or footer are damaged. */
  readonly footer: { readonly tail: SlotTail; readonly entries: readonly DirectoryEntry[] } | null
  /** The last group that counts; MAX_SAFE_INTEGER: as many as there are. */
  readonly endGroup: number
  close(): void
}

/** Opens a slot and reads its footer. The caller closes it. @param pieceBytes read at once. @throws DiskError */
export function openSlot(disk: Disk, slot: SurveyedSlot, pieceBytes: number): OpenSlot {
  const file = disk.open('slot.open', slot.path)
  try {
    const window = new SlotWindow(file, pieceBytes)
    const footer = readFooter(window, slot.seed)
    const endGroup = endGroupOf(slot, footer?.tail ?? null)
    return { slot, window, footer, endGroup, close: () => file.close() }
  } catch (error) {
    file.close()
    throw error
  }
}

function endGroupOf(slot: SurveyedSlot, tail: SlotTail | null): number {
  if (tail !== null) return tail.lastGroup
  return slot.next === null ? Number.MAX_SAFE_INTEGER : slot.next.header.previousLastGroup
}

/** Walks all groups that count. The bytes of a group are in the window until the next step. */
export function* walkGroups({ slot, window, endGroup }: OpenSlot): Generator<WalkStep> {
  let position = SLOT_GROUPS_AT
  let number = slot.header.previousLastGroup + 1
  while (number <= endGroup) {
    const own = groupAt(window, position, slot.seed)
    const isGood = own !== null && own.isWhole && own.number === number
    const step: WalkStep | null = isGood
      ? { kind: 'group', group: own }
      : judge(window, slot, position, number, endGroup)
    if (step === null) return
    yield step
    if (step.kind === 'torn') return
    if (step.kind === 'lost') {
      position = step.lost.endPosition
      number = step.lost.lastNumber + 1
    } else {
      position = step.group.position + step.group.totalBytes
      number++
    }
  }
}

/** What stands at a place where a whole group `number` does not. @returns null: nothing, the groups end here. */
function judge(window: SlotWindow, slot: SlotKey, position: number, number: number, endGroup: number): WalkStep | null {
  let verdict
  try {
    verdict = judgeBadGroup(window, slot, position, number, endGroup)
  } catch (error) {
    if (!(error instanceof BrokerError) || error.code !== 'NOT_READY') throw error
    return { kind: 'lost', lost: lostAt(window, slot, position, number, endGroup) }
  }
  if (verdict === 'end') return null
  if (typeof verdict !== 'string') return { kind: 'group', group: verdict }
  const own = groupAt(window, position, slot.seed)
  const isOwn = own !== null && own.number === number
  const endPosition = isOwn ? position + own.totalBytes : Math.min(position + BLOCK_BYTES, window.sizeBytes)
  return { kind: 'torn', torn: { number, position, endPosition, entries: isOwn ? own.entries : [] } }
}

/** Up to the next group whose header is whole; else to the end of the file. */
function lostAt(window: SlotWindow, slot: SlotKey, position: number, number: number, endGroup: number): LostGroups {
  const later = findLaterGroup(window, position + BLOCK_BYTES, number + 1, slot.seed)
  if (later !== null && later.header.number <= endGroup) {
    return { firstNumber: number, lastNumber: later.header.number - 1, position, endPosition: later.position }
  }
  const lastNumber = endGroup === Number.MAX_SAFE_INTEGER ? number : endGroup
  return { firstNumber: number, lastNumber, position, endPosition: window.sizeBytes }
}

/** True if a group header of this slot stands there: a group behind the last one that counts. */
export function hasDeadGroup({ slot, window }: OpenSlot, position: number): boolean {
  return groupHeaderAt(window, position, slot.seed) !== null
}
