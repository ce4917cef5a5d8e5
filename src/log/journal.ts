/**
 * The journal of one shard: slots, one of them open; where groups go. Shard thread only; blocks in the disk.
 *
 * Invariants: group n + 1 is written only after group n is synced, unless syncs are deferred (W10); the open slot's
 * header was synced before its first group was (W1); what a new slot says of the end of the one before is true when
 * its header is synced (W6). Never: a sync tried again as a success; an append to a recovered slot.
 */
import { assert } from '../base/assert.ts'
import type { Clock } from '../base/clock.ts'
import { crc32c } from '../base/crc32c.ts'
import { DiskError, type Disk, type DiskFile } from '../disk/disk.ts'
import { SealedSlots } from './sealed-slots.ts'
import { SlotFooter, type FooterMark } from './slot-footer.ts'
import {
  BLOCK_BYTES,
  SLOT_GROUPS_AT,
  blockAligned,
  encodeSlotHeader,
  encodeSlotTail,
  saltSeed,
  type SlotHeader
} from './slot-format.ts'
import { SlotFiles, type SpareSlot } from './slot-files.ts'

export interface JournalOptions {
  readonly disk: Disk
  readonly files: SlotFiles
  readonly shard: number
  readonly placementEpoch: number
  readonly slotBytes: number
  readonly clock: Clock
  /** 8 random bytes each time. */
  readonly drawSalt: () => Buffer
}

/** Where the journal goes on: what recovery found, or zeros in a new directory. */
export interface JournalPosition {
  /** Sequence of the newest slot that counts; 0: none. */
  readonly lastSequence: number
  /** Number of the last synced group; 0: none. */
  readonly lastGroup: number
}

interface OpenSlot {
  readonly file: DiskFile
  readonly ordinal: number
  readonly header: SlotHeader
  readonly seed: number
  readonly footer: SlotFooter
  readonly isBlank: boolean
  /** Where the next group goes. */
  position: number
}

export class Journal {
  readonly #options: JournalOptions
  #open: OpenSlot | null = null
  /** Left after a failed write, and not sealed yet: tried again before the next slot is opened. */
  #ended: OpenSlot[] = []
  /** Sealed and not settled, oldest first. */
  readonly sealed = new SealedSlots()
  #lastSequence: number
  #lastWritten: number
  #lastSynced: number
  /** The disk can no longer be trusted: what was written may be lost though it reads well. Never false again (W6). */
  isPoisoned = false
  #isHandedOver = false
  /** End and footer of the open slot before the group handed over. */
  #beforeHandOver: { readonly position: number; readonly footer: FooterMark } | null = null
  /** Slots opened without zeros under them: slower, never wrong. */
  unfilledCount = 0
  rolledCount = 0

  constructor(options: JournalOptions, position: JournalPosition) {
    this.#options = options
    this.#lastSequence = position.lastSequence
    this.#lastWritten = position.lastGroup
    this.#lastSynced = position.lastGroup
  }

  get nextGroup(): number {
    return this.#lastWritten + 1
  }

  /** Sequence of the newest slot whose header is durable; 0: none. */
  get lastSequence(): number {
    return this.#lastSequence
  }

  get lastSynced(): number {
    return this.#lastSynced
  }

  /** Salted start of every checksum of the open slot. */
  get seed(): number {
    return this.#slot().seed
  }

  get slotSequence(): number {
    return this.#slot().header.sequence
  }

  /** File name of the open slot. */
  get slotName(): string {
    return this.#options.files.nameOf(this.#slot().ordinal)
  }

  /** Ordinal of the open slot in the table of slot files: what the index of a run names. */
  get slotOrdinal(): number {
    return this.#slot().ordinal
  }

  get groupPosition(): number {
    return this.#slot().position
  }

  /** Bytes of the files whose groups are not settled, the open slot's included. */
  get unsettledBytes(): number {
    let bytes = this.#open?.header.capacityBytes ?? 0
    for (const slot of this.#ended) bytes += slot.header.capacityBytes
    return bytes + this.sealed.bytes
  }

  /** True if the open slot has groups. */
  get hasOpenGroups(): boolean {
    return this.#open !== null && this.#open.position > SLOT_GROUPS_AT
  }

  /** True if a slot is open and has room for a group and for what the group adds to the footer. */
  fits(groupBytes: number, directoryBytes: number): boolean {
    const slot = this.#open
    if (slot === null) return false
    const footerEnd = slot.position + groupBytes + slot.footer.bytes + directoryBytes
    return blockAligned(footerEnd) + BLOCK_BYTES <= slot.header.capacityBytes
  }

  /**
   * Seals the open slot, if any, and opens the next with room for one group of that size.
   * @throws DiskError, nothing written; unless it poisons, call again when there is room (W6).
   */
  roll(groupBytes: number, directoryBytes: number): void {
    this.#guard(() => this.#sealEnded())
    this.sealOpen()
    this.#guard(() => {
      const slot = this.#take(groupBytes, directoryBytes)
      this.#beginSlot(slot)
      this.#adopt(slot)
    })
  }

  /** Seals the open slot, if any: it can be settled. All of it is synced. @throws DiskError */
  sealOpen(): void {
    const slot = this.#open
    if (slot === null) return
    assert(
      this.#lastWritten === this.#lastSynced && !this.#isHandedOver,
      'a slot is left only when all of it is synced'
    )
    this.#guard(() => this.#seal(slot, false))
    this.#open = null
    this.rolledCount++
  }

  /**
   * Opens a slot whose header is not written yet, for groups copied at recovery (V3): commitHeader makes it count.
   * Until then a crash leaves everything as it was.
   */
  openForCopies(groupBytes: number, directoryBytes: number): void {
    assert(this.#open === null, 'copies come before anything else')
    this.#adopt(this.#take(groupBytes, directoryBytes))
  }

  commitHeader(): void {
    const slot = this.#slot()
    if (!slot.isBlank) blankSlotHeader(slot.file)
    writeSlotHeader(slot.file, slot.header)
  }

  /**
   * Writes the group that stands in source[start, end), sealed for this slot with number nextGroup.
   * @throws DiskError: nothing of the group counts; endSlot() before anything else is written.
   */
  write(source: Buffer, start: number, end: number): void {
    const slot = this.#slot()
    this.#guard(() => slot.file.write('group.write', source, start, end, slot.position))
    this.#advance(slot, end - start)
    this.#lastWritten++
  }

  /**
   * Leaves the write and the sync of the next group to another thread: its place is taken. One at a time, and only when
   * all before it is synced (W3); then handedBack() or handedBackFailed().
   */
  handOver(bytes: number): void {
    assert(
      this.#lastWritten === this.#lastSynced && !this.#isHandedOver,
      'a group is handed over when all before it is synced'
    )
    const slot = this.#slot()
    this.#beforeHandOver = { position: slot.position, footer: slot.footer.mark() }
    this.#advance(slot, bytes)
    this.#isHandedOver = true
  }

  /** The group handed over is written and synced. */
  handedBack(): void {
    assert(this.#isHandedOver, 'a group was handed over')
    this.#isHandedOver = false
    this.#lastWritten++
    this.#lastSynced = this.#lastWritten
  }

  /** The group handed over failed: like a failed write or sync. endSlot() follows unless it poisons. */
  handedBackFailed(error: DiskError): void {
    this.#isHandedOver = false
    if (poisons(error)) this.isPoisoned = true
    if (this.#open === null || this.#beforeHandOver === null) return
    // The slot may get its footer later: nothing of the group stands in it.
    this.#open.position = this.#beforeHandOver.position
    this.#open.footer.restore(this.#beforeHandOver.footer)
  }

  #advance(slot: OpenSlot, bytes: number): void {
    assert(bytes % BLOCK_BYTES === 0, 'a group fills whole blocks')
    slot.position += bytes
  }

  /** Puts the entries of the group just written into the footer-to-be. `groupPosition` is where that group starts. */
  noteEntries(directory: Buffer, start: number, end: number, groupPosition: number): void {
    this.#slot().footer.add(directory, start, end, groupPosition)
  }

  noteGroup(number: number, receiveMs: number): void {
    this.#slot().footer.noteGroup(number, receiveMs)
  }

  /** fdatasync of the open slot. @throws DiskError: the shard is poisoned; never call it again (W6). */
  sync(): void {
    const slot = this.#slot()
    this.#guard(() => slot.file.sync('group.sync'))
    this.#lastSynced = this.#lastWritten
  }

  /** After a failed write: this slot gets no more groups, and the failed group's number is given again. All others are synced. */
  endSlot(): void {
    assert(this.#lastWritten === this.#lastSynced, 'a slot ends where it was last synced')
    if (this.#open !== null) this.#ended.push(this.#open)
    this.#open = null
  }

  /** Gives the slots that were left their footers, over what the failed writes left. Those that the disk refuses wait on. */
  #sealEnded(): void {
    while (this.#ended.length > 0) {
      const slot = this.#ended[0] as OpenSlot
      try {
        this.#seal(slot, true)
      } catch (error) {
        if (error instanceof DiskError && !poisons(error)) return
        throw error
      }
      this.#ended.shift()
    }
  }

  /** Clean end: seals the open slot and cuts it to what it holds. A slot without a group is left for the next start. */
  close(): void {
    const slot = this.#open
    this.#open = null
    const isWhole = !this.isPoisoned && this.#lastWritten === this.#lastSynced
    if (slot !== null && slot.position > SLOT_GROUPS_AT && isWhole) this.#seal(slot, true)
    this.#options.files.closeAll()
  }

  #slot(): OpenSlot {
    assert(!this.isPoisoned, 'a poisoned journal is never used again')
    assert(this.#open !== null, 'a slot is open')
    return this.#open
  }

  #take(groupBytes: number, directoryBytes: number): OpenSlot {
    const { files, shard, placementEpoch, clock, slotBytes } = this.#options
    const neededBytes = SLOT_GROUPS_AT + groupBytes + blockAligned(directoryBytes) + 2 * BLOCK_BYTES
    const spare: SpareSlot =
      files.takeSpare(neededBytes) ?? files.createUnfilled(Math.max(slotBytes, blockAligned(neededBytes)))
    if (!spare.isFilled) this.unfilledCount++
    const salt = this.#options.drawSalt()
    const header: SlotHeader = {
      shard,
      sequence: this.#lastSequence + 1,
      salt,
      previousSequence: this.#lastSequence,
      previousLastGroup: this.#lastSynced,
      placementEpoch,
      capacityBytes: spare.capacityBytes,
      madeAtMs: clock.nowMs()
    }
    const { file, ordinal } = files.openForWriting(spare)
    return {
      file,
      ordinal,
      header,
      seed: saltSeed(salt),
      footer: new SlotFooter(),
      isBlank: spare.isBlank,
      position: SLOT_GROUPS_AT
    }
  }

  /** Writes and syncs the header. A failed write may have left a whole block of it: that file must not count. */
  #beginSlot(slot: OpenSlot): void {
    try {
      if (!slot.isBlank) blankSlotHeader(slot.file)
      writeSlotHeader(slot.file, slot.header)
    } catch (error) {
      if (error instanceof DiskError && !poisons(error)) this.#options.files.discard(slot.ordinal)
      throw error
    }
  }

  #guard(action: () => void): void {
    assert(!this.isPoisoned, 'a poisoned journal is never used again')
    try {
      action()
    } catch (error) {
      if (error instanceof DiskError && poisons(error)) this.isPoisoned = true
      throw error
    }
  }

  #adopt(slot: OpenSlot): void {
    this.#open = slot
    this.#lastSequence = slot.header.sequence
  }

  #seal({ file, ordinal, header, seed, footer, position }: OpenSlot, cuts: boolean): void {
    const { files, clock } = this.#options
    const { sequence, previousLastGroup } = header
    const endBytes = cuts ? undefined : header.capacityBytes
    sealSlot(file, { seed, sequence, footer, footerAt: position, endBytes })
    const groups = { sequence, seed, previousLastGroup, lastGroup: footer.lastGroup }
    const sizes = { capacityBytes: endBytes ?? file.sizeBytes(), usedBytes: position }
    this.sealed.add({ name: files.nameOf(ordinal), ordinal, ...groups, ...sizes, sealedAtMs: clock.monotonicMs() })
  }
}

/** True if the disk can no longer be trusted after it (W6): EIO, or any sync that failed. Else a retry with room may do. */
export function poisons(error: DiskError): boolean {
  return error.code === 'EIO' || error.point.endsWith('sync')
}

const blankHeader = Buffer.alloc(SLOT_GROUPS_AT)

/**
 * Takes away the header of an earlier use, durably: a new one that is torn must leave zeros where it is missing, else it
 * could not be told from one that was damaged later. A power cut in between leaves the old header or a torn one.
 */
export function blankSlotHeader(file: DiskFile): void {
  file.write('slot.header-write', blankHeader, 0, SLOT_GROUPS_AT, 0)
  file.sync('slot.header-sync')
}

/** Writes both header blocks and syncs the slot's file. @throws DiskError; a block may be written whole nevertheless. */
export function writeSlotHeader(file: DiskFile, header: SlotHeader): void {
  file.write('slot.header-write', encodeSlotHeader(header), 0, SLOT_GROUPS_AT, 0)
  file.sync('slot.header-sync')
}

/**
 * Writes footer and tail block and syncs them.
 * @param slot.endBytes the file's size, its last block the tail; undefined: right behind the footer, and the file is cut there.
 */
export function sealSlot(
  file: DiskFile,
  slot: { seed: number; sequence: number; footer: SlotFooter; footerAt: number; endBytes: number | undefined }
): void {
  const { footer, footerAt, seed } = slot
  const endBytes = slot.endBytes ?? blockAligned(footerAt + footer.bytes) + BLOCK_BYTES
  const tail = encodeSlotTail(
    {
      sequence: slot.sequence,
      footerPosition: footerAt,
      footerBytes: footer.bytes,
      entryCount: footer.entryCount,
      firstGroup: footer.firstGroup,
      lastGroup: footer.lastGroup,
      receiveMsMax: footer.receiveMsMax,
      footerChecksum: crc32c(footer.buffer, 0, footer.bytes, seed)
    },
    seed
  )
  if (footer.bytes > 0) file.write('slot.footer-write', footer.buffer, 0, footer.bytes, footerAt)
  file.write('slot.footer-write', tail, 0, BLOCK_BYTES, endBytes - BLOCK_BYTES)
  if (slot.endBytes === undefined) file.truncate('slot.truncate', endBytes)
  file.sync('slot.footer-sync')
}
