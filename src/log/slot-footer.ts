/**
 * The footer of a slot while it fills: the directory entries of its groups, positions made relative to the slot.
 * Grows by doubling; the slot keeps room for it. Owned by the journal or by recovery, never both.
 */
import { ENTRY_BYTES, PRODUCER_RUN_BYTES } from './group-format.ts'

const FIRST_BYTES = 16 * 1024

/** How full a footer was. */
export type FooterMark = Pick<SlotFooter, 'bytes' | 'entryCount' | 'firstGroup' | 'lastGroup' | 'receiveMsMax'>

export class SlotFooter {
  buffer = Buffer.alloc(0)
  bytes = 0
  entryCount = 0
  /** 0: no group yet. */
  firstGroup = 0
  lastGroup = 0
  receiveMsMax = 0

  /** Adds the entries in directory[start, end) of the group at `groupPosition`. */
  add(directory: Buffer, start: number, end: number, groupPosition: number): void {
    this.#reserve(end - start)
    directory.copy(this.buffer, this.bytes, start, end)
    let at = this.bytes
    this.bytes += end - start
    while (at < this.bytes) {
      this.buffer.writeUInt32BE(this.buffer.readUInt32BE(at + 24) + groupPosition, at + 24)
      at += ENTRY_BYTES + this.buffer.readUInt16BE(at + 2) * PRODUCER_RUN_BYTES
      this.entryCount++
    }
  }

  noteGroup(number: number, receiveMs: number): void {
    if (this.firstGroup === 0) this.firstGroup = number
    this.lastGroup = number
    this.receiveMsMax = Math.max(this.receiveMsMax, receiveMs)
  }

  /** What restore() goes back to. */
  mark(): FooterMark {
    const { bytes, entryCount, firstGroup, lastGroup, receiveMsMax } = this
    return { bytes, entryCount, firstGroup, lastGroup, receiveMsMax }
  }

  /** Forgets what was added since the mark. */
  restore(mark: FooterMark): void {
    Object.assign(this, mark)
  }

  #reserve(bytes: number): void {
    if (this.bytes + bytes <= this.buffer.length) return
    const grown = Buffer.alloc(Math.max(FIRST_BYTES, this.buffer.length * 2, this.bytes + bytes))
    this.buffer.copy(grown, 0, 0, this.bytes)
    this.buffer = grown
  }
}
