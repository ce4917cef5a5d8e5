/**
 * Reading one slot at recovery: its header, its footer, or its groups one by one. Pure over a DiskFile.
 * Decides nothing about what counts; recovery.ts does.
 */
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { DiskError, type DiskFile } from '../disk/disk.ts'
import { BATCH_HEADER_BYTES, batchBytesAt, batchStatus, checkBatch } from '../wire/batch/view.ts'
import {
  BATCH_COVERED_BY_RUN,
  GROUP_HEADER_BYTES,
  GROUP_TRAILER_BYTES,
  beginsGroup,
  entryKinds,
  readEntries,
  readGroupHeader,
  readGroupTrailer,
  type DirectoryEntry,
  type GroupHeader
} from './group-format.ts'
import { BLOCK_BYTES, SLOT_GROUPS_AT, decodeSlotHeader, decodeSlotTail, type SlotTail } from './slot-format.ts'

/** A group as it stands in a slot. */
export interface ScannedGroup {
  readonly number: number
  readonly lastSynced: number
  readonly receiveMs: number
  /** From the start of the slot. */
  readonly position: number
  readonly totalBytes: number
  readonly bodyBytes: number
  readonly entries: DirectoryEntry[]
  /** Every byte of it is as written: header, directory, bodies, padding and trailer. */
  readonly isWhole: boolean
  /** Runs (of `entries`) whose bytes are damaged. */
  readonly damaged: readonly DirectoryEntry[]
}

/** A window over a slot file: reads ahead in large pieces, grows to hold one group. */
export class SlotWindow {
  readonly #file: DiskFile
  readonly #onLoad: (endPosition: number) => void
  readonly sizeBytes: number
  #buffer: Buffer
  #start = 0
  #length = 0
  scannedBytes = 0

  /** @param onLoad hears after each piece read where it ends in the file. */
  constructor(file: DiskFile, pieceBytes: number, onLoad: (endPosition: number) => void = () => undefined) {
    this.#file = file
    this.#onLoad = onLoad
    this.sizeBytes = file.sizeBytes()
    this.#buffer = Buffer.allocUnsafeSlow(Math.min(pieceBytes, this.sizeBytes))
  }

  /** A view of up to `bytes` at `position`; shorter only at the end of the file. Valid until the next call. */
  view(position: number, bytes: number): Buffer {
    const wanted = Math.max(0, Math.min(bytes, this.sizeBytes - position))
    if (wanted === 0) return this.#buffer.subarray(0, 0)
    if (position < this.#start || position + wanted > this.#start + this.#length) this.#load(position, wanted)
    return this.#buffer.subarray(position - this.#start, position - this.#start + wanted)
  }

  #load(position: number, wanted: number): void {
    if (wanted > this.#buffer.length) this.#buffer = Buffer.allocUnsafeSlow(wanted)
    const length = Math.min(this.#buffer.length, this.sizeBytes - position)
    this.#start = position
    this.#length = 0
    this.#length = this.#read(position, wanted, length)
    this.scannedBytes += this.#length
    this.#onLoad(position + this.#length)
  }

  /** A place that the device does not read, and nobody asked for yet, does no harm. */
  #read(position: number, wanted: number, length: number): number {
    try {
      return this.#file.read('slot.read', this.#buffer, 0, length, position)
    } catch (error) {
      if (wanted === length || !isUnreadSlot(error)) throw error
      return this.#file.read('slot.read', this.#buffer, 0, wanted, position)
    }
  }
}

/** True if the device failed to read a slot: later it may do so, or never. */
export function isUnreadSlot(error: unknown): boolean {
  return error instanceof DiskError && error.code === 'EIO' && error.point === 'slot.read'
}

/**
 * Both header blocks of a slot file. One that the device does not read is zeros, if the other is a header. Zeros also
 * stand for what a file that ends earlier lacks. @throws DiskError
 */
export function readHeaderBlocks(file: DiskFile): Buffer {
  const blocks = Buffer.alloc(SLOT_GROUPS_AT)
  try {
    file.read('slot.read', blocks, 0, SLOT_GROUPS_AT, 0)
    return blocks
  } catch (error) {
    if (!isUnreadSlot(error)) throw error
    for (let at = 0; at < SLOT_GROUPS_AT; at += BLOCK_BYTES) {
      blocks.fill(0)
      if (isRead(file, blocks, at) && decodeSlotHeader(blocks).kind === 'header') return blocks
    }
    throw error
  }
}

/** Reads one header block. @returns false: the device does not. */
function isRead(file: DiskFile, blocks: Buffer, at: number): boolean {
  try {
    file.read('slot.read', blocks, at, BLOCK_BYTES, at)
    return true
  } catch (error) {
    if (!isUnreadSlot(error)) throw error
    return false
  }
}

/**
 * Tail and footer entries of a sealed slot, or null: it is not sealed, or they are damaged or cannot be read. Its groups
 * say the same.
 */
export function readFooter(
  window: SlotWindow,
  seed: number
): { tail: SlotTail; entries: DirectoryEntry[]; bytes: Buffer } | null {
  const tailAt = window.sizeBytes - BLOCK_BYTES
  if (tailAt < SLOT_GROUPS_AT) return null
  try {
    const tail = decodeSlotTail(window.view(tailAt, BLOCK_BYTES), seed)
    if (tail === null || tail.footerPosition + tail.footerBytes > tailAt) return null
    const footer = window.view(tail.footerPosition, tail.footerBytes)
    if (footer.length !== tail.footerBytes) return null
    if (crc32c(footer, 0, footer.length, seed) !== tail.footerChecksum) return null
    const entries = readEntries(footer, 0, footer.length)
    if (entries === null || entries.length !== tail.entryCount) return null
    return { tail, entries, bytes: Buffer.from(footer) }
  } catch (error) {
    if (!isUnreadSlot(error)) throw error
    return null
  }
}

/** The header of the group at `position`, its directory in the window; null if it is not a whole header of this slot. */
export function groupHeaderAt(window: SlotWindow, position: number, seed: number): GroupHeader | null {
  const head = window.view(position, GROUP_HEADER_BYTES)
  // Looked at before the directory is read: else record bytes taken for a length would cost a long read for each block.
  if (head.length < GROUP_HEADER_BYTES || !beginsGroup(head, 0)) return null
  const directoryBytes = head.readUInt32BE(28)
  if (directoryBytes > window.sizeBytes - position) return null
  const header = readGroupHeader(window.view(position, GROUP_HEADER_BYTES + directoryBytes), 0, seed)
  return header !== null && position + header.totalBytes <= window.sizeBytes ? header : null
}

/** The group at `position` with every run checked; null if its header or directory is bad. */
export function groupAt(window: SlotWindow, position: number, seed: number): ScannedGroup | null {
  const header = groupHeaderAt(window, position, seed)
  if (header === null) return null
  const bytes = window.view(position, header.totalBytes)
  const directoryEnd = GROUP_HEADER_BYTES + header.directoryBytes
  const entries = readEntries(bytes, GROUP_HEADER_BYTES, directoryEnd)
  if (entries === null || entries.length !== header.entryCount) return null
  const damaged = entries.filter(entry => !isRunWhole(bytes, entry, seed))
  // The trailer stands for the zeros and itself: without it the write was not complete.
  const hasTrailer = readGroupTrailer(bytes, bytes.length, seed) !== null
  const isPadded = isZero(
    bytes,
    directoryEnd + header.bodyBytes,
    bytes.length - GROUP_TRAILER_BYTES - header.directoryBytes
  )
  return {
    number: header.number,
    lastSynced: header.lastSynced,
    receiveMs: header.receiveMs,
    position,
    totalBytes: header.totalBytes,
    bodyBytes: header.bodyBytes,
    entries,
    isWhole: hasTrailer && isPadded && damaged.length === 0,
    damaged
  }
}

function isZero(bytes: Buffer, start: number, end: number): boolean {
  for (let i = start; i < end; i++) if (bytes[i] !== 0) return false
  return true
}

/** Checks a run: its batches follow each other, fill it, have whole CRCs, and their first bytes match its checksum. */
export function isRunWhole(group: Buffer, entry: DirectoryEntry, seed: number, start = entry.position): boolean {
  if (entry.kind !== entryKinds.run) return true
  const end = start + entry.bytes
  if (end > group.length) return false
  let sum = seed
  let at = start
  let batchCount = 0
  while (at < end) {
    if (at + BATCH_HEADER_BYTES > end) return false
    const bytes = batchBytesAt(group, at)
    if (bytes < BATCH_HEADER_BYTES || at + bytes > end || checkBatch(group, at, at + bytes) !== batchStatus.ok)
      return false
    sum = crc32c(group, at, at + BATCH_COVERED_BY_RUN, sum)
    at += bytes
    batchCount++
  }
  return sum === entry.checksum && batchCount === entry.batchCount
}

/** The group whose trailer ends at `end`: for a header that cannot be read. Its start is known from the trailer. */
export function groupBefore(window: SlotWindow, end: number, seed: number, start: number): ScannedGroup | null {
  const bytes = Buffer.from(window.view(start, end - start))
  const trailer = readGroupTrailer(bytes, bytes.length, seed)
  if (trailer === null || trailer.totalBytes !== bytes.length) return null
  const copyEnd = bytes.length - GROUP_TRAILER_BYTES
  const entries = readEntries(bytes, copyEnd - trailer.directoryBytes, copyEnd)
  if (entries === null) return null
  assert(start + trailer.totalBytes === end, 'a trailer knows the size of its group')
  const damaged = entries.filter(entry => !isRunWhole(bytes, entry, seed))
  const bodyBytes = entries.reduce((sum, entry) => sum + entry.bytes, 0)
  const receiveMs = entries.reduce((most, entry) => Math.max(most, entry.receiveMs), 0)
  return {
    number: trailer.number,
    lastSynced: 0,
    receiveMs,
    position: start,
    totalBytes: bytes.length,
    bodyBytes,
    entries,
    isWhole: false,
    damaged
  }
}

/** Position of the first block behind `from` at which a group of this slot with number ≥ `number` has a whole header. */
export function findLaterGroup(
  window: SlotWindow,
  from: number,
  number: number,
  seed: number
): { position: number; header: GroupHeader } | null {
  for (let position = from; position + GROUP_HEADER_BYTES <= window.sizeBytes; position += BLOCK_BYTES) {
    const header = groupHeaderAt(window, position, seed)
    if (header !== null && header.number >= number) return { position, header }
  }
  return null
}

/** End of the first group trailer behind `from` with that number; 0 if there is none. For the last group of a slot. */
export function findTrailerEnd(window: SlotWindow, from: number, number: number, seed: number): number {
  for (let end = from + BLOCK_BYTES; end <= window.sizeBytes; end += BLOCK_BYTES) {
    const tail = window.view(end - GROUP_TRAILER_BYTES, GROUP_TRAILER_BYTES)
    if (tail.length < GROUP_TRAILER_BYTES || tail.readUInt32BE(16) > end - from) continue
    const totalBytes = tail.readUInt32BE(20)
    if (totalBytes !== end - from) continue
    const trailer = readGroupTrailer(window.view(from, totalBytes), totalBytes, seed)
    if (trailer !== null && trailer.number === number) return end
  }
  return 0
}
