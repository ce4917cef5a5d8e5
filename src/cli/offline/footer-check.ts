/**
 * Footer and tail block of one slot against the groups that a walk finds in it. Owned by the check of that slot.
 *
 * A footer proves nothing and saves a scan, so damage to it costs readers nothing. But while it is whole, a start and
 * all readers go by it: so it must say what the groups say, entry by entry.
 */
import { ENTRY_BYTES, RUN_ROLLS, DirectoryEntry, entryKinds, writeEntry } from '../../log/group-format.ts'
import { BLOCK_BYTES, SLOT_GROUPS_AT, decodeSlotTail, type SlotTail } from '../../log/slot-format.ts'
import type { ScannedGroup } from '../../log/slot-scan.ts'
import type { ByteRange, Findings } from './findings.ts'
import { hasDeadGroup, type LostGroups, type OpenSlot } from './group-walk.ts'

const readByGroups = 'costs readers nothing: the slot is read group by group instead'
const wrongIndex = 'a start goes by the footer: it may miss records, or refuse to read those it names'

export class FooterCheck {
  readonly groupsStart = SLOT_GROUPS_AT
  readonly #open: OpenSlot
  readonly #findings: Findings
  readonly #mayEndEarlier: boolean
  /** Entries of the footer that were seen in groups. */
  #seen = 0
  #firstGroup = 0
  #lastGroup = 0
  #receiveMsMax = 0
  /** How the footer of this slot must begin, whether it is there or not. */
  #footerStart: Buffer | null = null
  #differs = false

  /** @param mayEndEarlier groups at its end were given up: the slot after it may know of more. */
  constructor(open: OpenSlot, findings: Findings, mayEndEarlier = false) {
    this.#open = open
    this.#mayEndEarlier = mayEndEarlier
    this.#findings = findings
  }

  /** Compares the next group with the footer. */
  add(group: ScannedGroup): void {
    if (this.#firstGroup === 0) this.#firstGroup = group.number
    this.#lastGroup = group.number
    this.#receiveMsMax = Math.max(this.#receiveMsMax, group.receiveMs)
    const [first] = group.entries
    if (this.#footerStart === null && first !== undefined) {
      this.#footerStart = Buffer.alloc(ENTRY_BYTES)
      const plain = Object.assign(new DirectoryEntry(), first, {
        position: first.position + group.position,
        producers: []
      })
      writeEntry(this.#footerStart, 0, plain)
    }
    for (const entry of group.entries) {
      const own = this.#open.footer?.entries[this.#seen++]
      if (own !== undefined && !saysTheSame(entry, own, group.position)) this.#differs = true
    }
  }

  /** The footer's entries of groups that cannot be read; null if there is no whole footer. */
  takeLost({ firstNumber, lastNumber, endPosition }: LostGroups): readonly DirectoryEntry[] | null {
    if (this.#open.footer === null) return null
    if (this.#firstGroup === 0) this.#firstGroup = firstNumber
    this.#lastGroup = lastNumber
    const { entries } = this.#open.footer
    const start = this.#seen
    while ((entries[this.#seen]?.position ?? Infinity) < endPosition) this.#seen++
    const lost = entries.slice(start, this.#seen)
    for (const entry of lost) this.#receiveMsMax = Math.max(this.#receiveMsMax, entry.receiveMs)
    return lost
  }

  /**
   * After the last group.
   * @param endPosition behind it. @param isTorn the rest of the slot is what an unfinished write left.
   */
  finish(endPosition: number, isTorn: boolean): void {
    const { footer } = this.#open
    if (footer === null) {
      if (!isTorn) this.#judgeMissing(endPosition)
      return
    }
    this.#checkLink()
    const { tail, entries } = footer
    const isAtEnd = tail.footerPosition === endPosition || this.#lastGroup === 0
    const isSame =
      tail.sequence === this.#open.slot.header.sequence &&
      tail.firstGroup === this.#firstGroup &&
      tail.lastGroup === this.#lastGroup &&
      tail.receiveMsMax === this.#receiveMsMax
    if (!this.#differs && this.#seen === entries.length && isAtEnd && isSame) return
    const problem = 'the footer is whole, and does not say what the groups of the slot say'
    this.#damage(footerRange(tail), problem, wrongIndex)
  }

  /** The slot after this one must have been told the same end (W1). */
  #checkLink(): void {
    const { slot, endGroup } = this.#open
    if (slot.next === null || this.#mayEndEarlier || endGroup === 0 || slot.next.header.previousLastGroup === endGroup)
      return
    const problem =
      `its footer ends with group ${endGroup}, and ${slot.next.name} says that ` +
      `group ${slot.next.header.previousLastGroup} came before it`
    this.#damage(undefined, problem, wrongIndex)
  }

  /** No whole footer: was there one? */
  #judgeMissing(endPosition: number): void {
    const { slot, window } = this.#open
    const tailAt = window.sizeBytes - BLOCK_BYTES
    if (tailAt < endPosition || hasDeadGroup(this.#open, endPosition)) return
    const block = Buffer.from(window.view(tailAt, BLOCK_BYTES))
    const tail = decodeSlotTail(block, slot.seed)
    const hasFooter = this.#footerStart?.equals(window.view(endPosition, ENTRY_BYTES)) ?? false
    if (tail !== null) {
      this.#damage(footerRange(tail), 'the footer fails its checksum', readByGroups)
    } else if (block.every(byte => byte === 0)) {
      if (hasFooter) this.#judgeMissingTail({ startByte: tailAt, endByte: window.sizeBytes })
    } else if (hasFooter || !isOlderTail(block, slot.header.sequence)) {
      const range = { startByte: tailAt, endByte: window.sizeBytes }
      this.#damage(range, 'the tail block is damaged, or was never wholly written', readByGroups)
    }
  }

  /** A slot is sealed and synced before the next one begins, so only the newest can lack what was begun. */
  #judgeMissingTail(bytes: ByteRange): void {
    const { slot } = this.#open
    if (slot.next !== null) return this.#damage(bytes, 'the tail block is gone', readByGroups)
    const problem = 'a footer without its tail block: the seal was not finished'
    this.#findings.addNote({ file: slot.label, bytes, problem, meaning: 'the next start seals the slot' })
  }

  #damage(bytes: ByteRange | undefined, problem: string, meaning: string): void {
    this.#findings.addDamage({ file: this.#open.slot.label, bytes, problem, meaning })
  }
}

/** Empty footers are found at their tail. */
function footerRange(tail: SlotTail): ByteRange {
  return { startByte: tail.footerPosition, endByte: tail.footerPosition + tail.footerBytes }
}

/** A tail that an earlier use of the file left behind. */
function isOlderTail(block: Buffer, sequence: number): boolean {
  const isTail = block.toString('latin1', 0, 8) === 'MILLTAIL'
  return isTail && block.readBigUInt64BE(8) < BigInt(sequence)
}

/** True if the footer's entry says what the group's says, but for the position, and a mark of quarantine. */
function saysTheSame(entry: DirectoryEntry, footer: DirectoryEntry, groupPosition: number): boolean {
  const isMarked = entry.kind === entryKinds.run && footer.kind === entryKinds.quarantined
  return (
    (entry.kind === footer.kind || isMarked) &&
    (entry.flags & RUN_ROLLS) === (footer.flags & RUN_ROLLS) &&
    entry.handle === footer.handle &&
    entry.baseOffset === footer.baseOffset &&
    entry.nextOffset === footer.nextOffset &&
    entry.position + groupPosition === footer.position &&
    entry.bytes === footer.bytes &&
    entry.checksum === footer.checksum &&
    entry.batchCount === footer.batchCount &&
    entry.recordCount === footer.recordCount &&
    entry.leaderEpoch === footer.leaderEpoch &&
    entry.producers.length === footer.producers.length
  )
}
