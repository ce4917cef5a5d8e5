/**
 * The bytes of a group, version 1: what one write and one fdatasync make durable (W2). Pure.
 *
 *   0          header, 64 bytes
 *   64         directory: entries of 64 bytes, each followed by its producer runs of 32 bytes
 *   …          bodies: RecordBatch v2, the batches of a partition together
 *   …          zeros up to a block
 *   end−32−d   the directory again
 *   end−32     trailer, 32 bytes; end is a multiple of 4096, so the trailer is found from behind
 *
 * Every byte of the bodies is covered twice over: a run's checksum covers the first 21 bytes of each of its batches,
 * the CRC in those covers the rest. So sealing a group costs no second pass over the records.
 */
import { crc32c } from '../base/crc32c.ts'
import { readU64, write64 } from '../wire/primitives/u64.ts'
import { BLOCK_BYTES, blockAligned } from './slot-format.ts'

/** First bytes of a batch that its own CRC does not cover, with the CRC: what the checksum of a run is made of. */
export const BATCH_COVERED_BY_RUN = 21
export const GROUP_HEADER_BYTES = 64
export const GROUP_TRAILER_BYTES = 32
export const ENTRY_BYTES = 64
export const PRODUCER_RUN_BYTES = 32
const GROUP_MAGIC = 0x4d475250
const TRAILER_MAGIC = 0x4d54524c

/** What an entry of a directory or footer says. */
export const entryKinds = {
  /** A run: batches of one partition, lying together. */
  run: 1,
  /** The partition's log start offset moved to baseOffset (W7). */
  startOffset: 2,
  /** From baseOffset on, leaderEpoch is the partition's epoch (V5). */
  leaderEpoch: 3,
  /** A run whose bytes are damaged: kept, not served (V2). */
  quarantined: 4
} as const

/** Flags of a run: its first batch begins a new segment; records of it have times that a client gave them. */
export const RUN_ROLLS = 1
export const RUN_HAS_GIVEN_TIMES = 2

/** Sequences of one idempotent producer within a run (W5); of one that speaks Kafka's protocol: one batch (wire/batch/sequences.ts). */
export interface ProducerRun {
  readonly producerId: number
  /** 64-bit first sequence: high and low halves. */
  readonly sequenceHigh: number
  readonly sequenceLow: number
  readonly count: number
  readonly baseOffset: number
}

/**
 * Entry: 0 u8 kind · 1 u8 flags · 2 u16 producer runs · 4 u32 handle · 8 u64 base offset · 16 u64 next offset
 * 24 u32 position · 28 u32 bytes · 32 u32 checksum · 36 u32 batches · 40 i64 receive time, ms · 48 i32 leader epoch
 * 52 u32 records · 56 u64 0
 * Producer run: 0 u64 producer id · 8 i64 first sequence · 16 u32 count · 20 u32 0 · 24 u64 base offset
 */
export class DirectoryEntry {
  kind: number = entryKinds.run
  flags = 0
  handle = 0
  baseOffset = 0
  nextOffset = 0
  /** In a group: from the group's start. In a footer: from the slot's start. */
  position = 0
  bytes = 0
  checksum = 0
  batchCount = 0
  receiveMs = 0
  leaderEpoch = 0
  recordCount = 0
  producers: readonly ProducerRun[] = noProducers
}

const noProducers: readonly ProducerRun[] = []

export function entryBytes(entry: DirectoryEntry): number {
  return ENTRY_BYTES + entry.producers.length * PRODUCER_RUN_BYTES
}

/** @returns the position behind the entry. The caller has checked the room. */
export function writeEntry(target: Buffer, at: number, entry: DirectoryEntry): number {
  target[at] = entry.kind
  target[at + 1] = entry.flags
  target.writeUInt16BE(entry.producers.length, at + 2)
  target.writeUInt32BE(entry.handle, at + 4)
  write64(target, at + 8, entry.baseOffset)
  write64(target, at + 16, entry.nextOffset)
  target.writeUInt32BE(entry.position, at + 24)
  target.writeUInt32BE(entry.bytes, at + 28)
  target.writeUInt32BE(entry.checksum, at + 32)
  target.writeUInt32BE(entry.batchCount, at + 36)
  write64(target, at + 40, entry.receiveMs)
  target.writeInt32BE(entry.leaderEpoch, at + 48)
  target.writeUInt32BE(entry.recordCount, at + 52)
  write64(target, at + 56, 0)
  let end = at + ENTRY_BYTES
  for (const run of entry.producers) {
    write64(target, end, run.producerId)
    target.writeUInt32BE(run.sequenceHigh >>> 0, end + 8)
    target.writeUInt32BE(run.sequenceLow, end + 12)
    target.writeUInt32BE(run.count, end + 16)
    target.writeUInt32BE(0, end + 20)
    write64(target, end + 24, run.baseOffset)
    end += PRODUCER_RUN_BYTES
  }
  return end
}

/** All entries of a directory whose checksum was right; null if they do not fill it exactly. */
export function readEntries(source: Buffer, start: number, end: number): DirectoryEntry[] | null {
  const entries: DirectoryEntry[] = []
  let at = start
  while (at < end) {
    if (at + ENTRY_BYTES > end) return null
    const entry = new DirectoryEntry()
    entry.kind = source[at] ?? 0
    entry.flags = source[at + 1] ?? 0
    entry.handle = source.readUInt32BE(at + 4)
    entry.baseOffset = readU64(source, at + 8)
    entry.nextOffset = readU64(source, at + 16)
    entry.position = source.readUInt32BE(at + 24)
    entry.bytes = source.readUInt32BE(at + 28)
    entry.checksum = source.readUInt32BE(at + 32)
    entry.batchCount = source.readUInt32BE(at + 36)
    entry.receiveMs = readU64(source, at + 40)
    entry.leaderEpoch = source.readInt32BE(at + 48)
    entry.recordCount = source.readUInt32BE(at + 52)
    const producerCount = source.readUInt16BE(at + 2)
    at += ENTRY_BYTES
    if (at + producerCount * PRODUCER_RUN_BYTES > end) return null
    if (producerCount > 0) {
      entry.producers = readProducerRuns(source, at, producerCount)
      at += producerCount * PRODUCER_RUN_BYTES
    }
    entries.push(entry)
  }
  return entries
}

function readProducerRuns(source: Buffer, start: number, count: number): ProducerRun[] {
  return Array.from({ length: count }, (_, index) => {
    const at = start + index * PRODUCER_RUN_BYTES
    return {
      producerId: readU64(source, at),
      sequenceHigh: source.readUInt32BE(at + 8),
      sequenceLow: source.readUInt32BE(at + 12),
      count: source.readUInt32BE(at + 16),
      baseOffset: readU64(source, at + 24)
    }
  })
}

/**
 * Header: 0 u32 magic · 4 u32 crc32c of bytes 8…64 and the directory, salted · 8 u64 group number
 * 16 u64 last group known to be synced when this was written · 24 u32 bytes in all · 28 u32 directory bytes
 * 32 u32 bytes of bodies · 36 u32 entries · 40 i64 receive time, ms · 48 u64 slot sequence · 56 u64 0
 */
export interface GroupHeader {
  readonly number: number
  readonly lastSynced: number
  readonly totalBytes: number
  readonly directoryBytes: number
  readonly bodyBytes: number
  readonly entryCount: number
  readonly receiveMs: number
  readonly slotSequence: number
}

/** Bytes of a group with that much in it, padding included. */
export function groupBytes(directoryBytes: number, bodyBytes: number): number {
  const used = GROUP_HEADER_BYTES + 2 * directoryBytes + bodyBytes + GROUP_TRAILER_BYTES
  return blockAligned(used)
}

/** What the journal tells the encoder about the group it makes, when it is about to be written. */
export interface GroupPlace {
  readonly number: number
  readonly lastSynced: number
  readonly slotSequence: number
  readonly seed: number
}

/**
 * Completes a group whose directory and bodies stand at target[at + 64…): zeros, trailer, header.
 * @param seed saltSeed of the slot.
 */
export function sealGroup(target: Buffer, at: number, header: GroupHeader, seed: number): void {
  const directoryStart = at + GROUP_HEADER_BYTES
  const directoryEnd = directoryStart + header.directoryBytes
  const end = at + header.totalBytes
  const trailerAt = end - GROUP_TRAILER_BYTES
  const copyAt = trailerAt - header.directoryBytes
  target.fill(0, directoryEnd + header.bodyBytes, copyAt)
  target.copy(target, copyAt, directoryStart, directoryEnd)
  target.writeUInt32BE(TRAILER_MAGIC, trailerAt)
  write64(target, trailerAt + 8, header.number)
  target.writeUInt32BE(header.directoryBytes, trailerAt + 16)
  target.writeUInt32BE(header.totalBytes, trailerAt + 20)
  write64(target, trailerAt + 24, header.slotSequence)
  const trailerSum = crc32c(target, trailerAt + 8, end, seed)
  target.writeUInt32BE(crc32c(target, copyAt, trailerAt, trailerSum), trailerAt + 4)

  target.writeUInt32BE(GROUP_MAGIC, at)
  write64(target, at + 8, header.number)
  write64(target, at + 16, header.lastSynced)
  target.writeUInt32BE(header.totalBytes, at + 24)
  target.writeUInt32BE(header.directoryBytes, at + 28)
  target.writeUInt32BE(header.bodyBytes, at + 32)
  target.writeUInt32BE(header.entryCount, at + 36)
  write64(target, at + 40, header.receiveMs)
  write64(target, at + 48, header.slotSequence)
  write64(target, at + 56, 0)
  target.writeUInt32BE(crc32c(target, at + 8, directoryEnd, seed), at + 4)
}

/** True if a group may begin at source[at…]; readGroupHeader says whether it does. Needs 4 bytes there. */
export function beginsGroup(source: Buffer, at: number): boolean {
  return source.readUInt32BE(at) === GROUP_MAGIC
}

/**
 * The header at source[at…], if it and its directory are whole and belong to this use of the slot; else null.
 * `source` must hold the directory too; a length that points outside is a bad header.
 */
export function readGroupHeader(source: Buffer, at: number, seed: number): GroupHeader | null {
  if (at + GROUP_HEADER_BYTES > source.length || !beginsGroup(source, at)) return null
  const directoryBytes = source.readUInt32BE(at + 28)
  const totalBytes = source.readUInt32BE(at + 24)
  const bodyBytes = source.readUInt32BE(at + 32)
  const directoryEnd = at + GROUP_HEADER_BYTES + directoryBytes
  if (totalBytes !== groupBytes(directoryBytes, bodyBytes) || directoryEnd > source.length) return null
  if (crc32c(source, at + 8, directoryEnd, seed) !== source.readUInt32BE(at + 4)) return null
  return {
    number: readU64(source, at + 8),
    lastSynced: readU64(source, at + 16),
    totalBytes,
    directoryBytes,
    bodyBytes,
    entryCount: source.readUInt32BE(at + 36),
    receiveMs: readU64(source, at + 40),
    slotSequence: readU64(source, at + 48)
  }
}

/** True if the bytes at source[at…] claim to begin that group of that slot; no checksum is asked. Needs a header's bytes there. */
export function claimsGroup(source: Buffer, at: number, number: number, slotSequence: number): boolean {
  return beginsGroup(source, at) && readU64(source, at + 8) === number && readU64(source, at + 48) === slotSequence
}

/** What a trailer says of its group. */
export interface GroupTrailer {
  readonly number: number
  readonly totalBytes: number
  readonly directoryBytes: number
}

/** The trailer that ends at source[end), with the directory before it, if whole; else null. */
export function readGroupTrailer(source: Buffer, end: number, seed: number): GroupTrailer | null {
  const at = end - GROUP_TRAILER_BYTES
  if (at < 0 || source.readUInt32BE(at) !== TRAILER_MAGIC) return null
  const directoryBytes = source.readUInt32BE(at + 16)
  const totalBytes = source.readUInt32BE(at + 20)
  if (directoryBytes > at || totalBytes > end || totalBytes % BLOCK_BYTES !== 0) return null
  const sum = crc32c(source, at - directoryBytes, at, crc32c(source, at + 8, end, seed))
  if (sum !== source.readUInt32BE(at + 4)) return null
  return { number: readU64(source, at + 8), totalBytes, directoryBytes }
}
