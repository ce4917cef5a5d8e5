/**
 * The groups of a slot without a footer, one by one: which count, which are damaged, and where they end (durability, V2).
 * Reads only, any thread: a start, the settler where a footer cannot be read, and the offline tools.
 */
import { BrokerError } from '../model/errors.ts'
import type { Decisions } from './decisions.ts'
import { GROUP_HEADER_BYTES, claimsGroup, entryBytes, entryKinds, writeEntry } from './group-format.ts'
import { SlotFooter } from './slot-footer.ts'
import { BLOCK_BYTES, SLOT_GROUPS_AT, type SlotHeader } from './slot-format.ts'
import {
  findLaterGroup,
  findTrailerEnd,
  groupAt,
  groupBefore,
  type ScannedGroup,
  type SlotWindow
} from './slot-scan.ts'

/** How a refusal ends that `millrace quarantine` can resolve. */
export const operatorDecides = "an operator must decide: 'millrace quarantine list' shows what"

/** What tells the groups of one slot from all other bytes. */
export interface SlotKey {
  readonly name: string
  readonly header: Pick<SlotHeader, 'sequence' | 'previousLastGroup'>
  /** Salted start of its checksums. */
  readonly seed: number
}

/** A slot, and the groups found in it so far. */
export interface WalkedSlot extends SlotKey {
  groups: ScannedGroup[]
  lastGroup: number
  receiveMsMax: number
  /** Behind the last group that counts. */
  endPosition: number
}

/** What walks over the slots of a journal came to. */
export interface WalkState {
  readonly decisions: Decisions
  cutGroups: number
  cutHandles: number[]
  quarantinedRuns: number
  lastSynced: number
}

/** Walks the groups of an unsealed slot from number `expected` to `endGroup`. */
export function walkSlot(
  window: SlotWindow,
  slot: WalkedSlot,
  expected: number,
  endGroup: number,
  scan: WalkState
): void {
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

function addGroup(slot: WalkedSlot, group: ScannedGroup, scan: WalkState): void {
  slot.groups.push(group)
  slot.lastGroup = group.number
  slot.receiveMsMax = Math.max(slot.receiveMsMax, group.receiveMs)
  slot.endPosition = group.position + group.totalBytes
  scan.lastSynced = Math.max(scan.lastSynced, group.lastSynced)
}

/** Handles of a torn group (null: unknown, or there were others behind it) if its directory can be read, else 0: everything of the shard may be meant. */
function cutHandlesOf(group: ScannedGroup | null, slot: WalkedSlot): number[] {
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
export function footerOf(
  { groups }: Pick<WalkedSlot, 'groups'>,
  lastGroup: number
): { footer: SlotFooter; footerAt: number } {
  const footer = new SlotFooter()
  let footerAt = SLOT_GROUPS_AT
  for (const group of groups) {
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
