/**
 * The bytes of a journal slot, version 1 (docs/formats.md draws them). Pure.
 *
 *   0       header      4096 bytes
 *   4096    header copy 4096 bytes, the same: one bad block does not lose a slot
 *   8192    groups, each starting at a multiple of 4096 (no sector of a group is ever shared with an older one)
 *   …       footer, once sealed: the directory entries of all groups, positions made relative to the slot
 *   end−4096 tail block, once sealed: says where the footer is
 *
 * A slot draws a fresh random salt each time it is used (W1). Every checksum in it is CRC32C continued from the salt's,
 * so neither what an earlier use left nor bytes that a client sent can pass for a part of it.
 */
import { crc32c } from '../base/crc32c.ts'
import { readU64, write64 } from '../wire/primitives/u64.ts'

export const BLOCK_BYTES = 4096
export const SLOT_GROUPS_AT = 2 * BLOCK_BYTES
/** What a disk writes whole. A header block has bytes other than zero in its first and in its last sector. */
const SECTOR_BYTES = 512
export const SLOT_VERSION = 1
const SLOT_MAGIC = Buffer.from('MILLSLOT', 'latin1')
const TAIL_MAGIC = Buffer.from('MILLTAIL', 'latin1')

/**
 * Header block:  0 magic 8 · 8 u32 version · 12 u32 shard · 16 u64 sequence · 24 salt 8 · 32 u64 previous sequence
 * 40 u64 last group of the previous slot · 48 u32 placement epoch · 52 u32 0 · 56 u64 capacity · 64 i64 made at, ms
 * 4092 u32 crc32c of bytes 0…4092
 */
export interface SlotHeader {
  readonly shard: number
  /** 1 for the first slot of a shard; the next one is one more. */
  readonly sequence: number
  /** 8 random bytes. */
  readonly salt: Buffer
  readonly previousSequence: number
  /** Groups of earlier slots above this number are dead, whatever their bytes look like (W6, V3). 0: none. */
  readonly previousLastGroup: number
  readonly placementEpoch: number
  readonly capacityBytes: number
  readonly madeAtMs: number
}

/** Both header blocks, ready to be written at 0. */
export function encodeSlotHeader(header: SlotHeader): Buffer {
  const blocks = Buffer.alloc(SLOT_GROUPS_AT)
  SLOT_MAGIC.copy(blocks, 0)
  blocks.writeUInt32BE(SLOT_VERSION, 8)
  blocks.writeUInt32BE(header.shard, 12)
  write64(blocks, 16, header.sequence)
  header.salt.copy(blocks, 24)
  write64(blocks, 32, header.previousSequence)
  write64(blocks, 40, header.previousLastGroup)
  blocks.writeUInt32BE(header.placementEpoch, 48)
  write64(blocks, 56, header.capacityBytes)
  write64(blocks, 64, header.madeAtMs)
  blocks.writeUInt32BE(crc32c(blocks, 0, BLOCK_BYTES - 4), BLOCK_BYTES - 4)
  blocks.copy(blocks, BLOCK_BYTES, 0, BLOCK_BYTES)
  return blocks
}

export type SlotHeaderVerdict =
  | { readonly kind: 'header'; readonly header: SlotHeader }
  /** Zeros: filled ahead, never used. */
  | { readonly kind: 'blank' }
  /** Both blocks are cut short: the first write of a header whose sync never returned, so nothing in the slot counts. */
  | { readonly kind: 'torn' }
  | { readonly kind: 'newer'; readonly version: number }
  /** It was a header once; what stands behind it may have been acknowledged. */
  | { readonly kind: 'damaged' }

/** Reads the first SLOT_GROUPS_AT bytes of a file; either block will do. Shorter input counts as zeros. */
export function decodeSlotHeader(blocks: Buffer): SlotHeaderVerdict {
  let isBlank = true
  let isTorn = true
  for (let at = 0; at + BLOCK_BYTES <= blocks.length; at += BLOCK_BYTES) {
    const block = blocks.subarray(at, at + BLOCK_BYTES)
    if (!isZero(block)) isBlank = false
    if (!isZero(block.subarray(0, SECTOR_BYTES)) && !isZero(block.subarray(-SECTOR_BYTES))) isTorn = false
    if (!block.subarray(0, 8).equals(SLOT_MAGIC)) continue
    if (block.readUInt32BE(BLOCK_BYTES - 4) !== crc32c(block, 0, BLOCK_BYTES - 4)) continue
    const version = block.readUInt32BE(8)
    if (version > SLOT_VERSION) return { kind: 'newer', version }
    return {
      kind: 'header',
      header: {
        shard: block.readUInt32BE(12),
        sequence: readU64(block, 16),
        salt: Buffer.from(block.subarray(24, 32)),
        previousSequence: readU64(block, 32),
        previousLastGroup: readU64(block, 40),
        placementEpoch: block.readUInt32BE(48),
        capacityBytes: readU64(block, 56),
        madeAtMs: readU64(block, 64)
      }
    }
  }
  if (isBlank) return { kind: 'blank' }
  return isTorn ? { kind: 'torn' } : { kind: 'damaged' }
}

function isZero(bytes: Buffer): boolean {
  return bytes.every(byte => byte === 0)
}

/** What every checksum of a slot is continued from. */
export function saltSeed(salt: Buffer): number {
  return crc32c(salt, 0, 8)
}

/**
 * Tail block: 0 magic 8 · 8 u64 sequence · 16 u64 footer position · 24 u32 footer bytes · 28 u32 entry count
 * 32 u64 first group · 40 u64 last group · 48 i64 greatest receive time, ms · 56 u32 crc32c of the footer, salted
 * 4092 u32 crc32c of bytes 0…4092, salted
 */
export interface SlotTail {
  readonly sequence: number
  readonly footerPosition: number
  readonly footerBytes: number
  readonly entryCount: number
  /** 0 and 0 when the slot has no group. */
  readonly firstGroup: number
  readonly lastGroup: number
  readonly receiveMsMax: number
  readonly footerChecksum: number
}

export function encodeSlotTail(tail: SlotTail, seed: number): Buffer {
  const block = Buffer.alloc(BLOCK_BYTES)
  TAIL_MAGIC.copy(block, 0)
  write64(block, 8, tail.sequence)
  write64(block, 16, tail.footerPosition)
  block.writeUInt32BE(tail.footerBytes, 24)
  block.writeUInt32BE(tail.entryCount, 28)
  write64(block, 32, tail.firstGroup)
  write64(block, 40, tail.lastGroup)
  write64(block, 48, tail.receiveMsMax)
  block.writeUInt32BE(tail.footerChecksum, 56)
  block.writeUInt32BE(crc32c(block, 0, BLOCK_BYTES - 4, seed), BLOCK_BYTES - 4)
  return block
}

/** null: the slot is not sealed, or its tail is damaged; its groups are scanned then. */
export function decodeSlotTail(block: Buffer, seed: number): SlotTail | null {
  if (block.length !== BLOCK_BYTES || !block.subarray(0, 8).equals(TAIL_MAGIC)) return null
  if (block.readUInt32BE(BLOCK_BYTES - 4) !== crc32c(block, 0, BLOCK_BYTES - 4, seed)) return null
  return {
    sequence: readU64(block, 8),
    footerPosition: readU64(block, 16),
    footerBytes: block.readUInt32BE(24),
    entryCount: block.readUInt32BE(28),
    firstGroup: readU64(block, 32),
    lastGroup: readU64(block, 40),
    receiveMsMax: readU64(block, 48),
    footerChecksum: block.readUInt32BE(56)
  }
}

/** Rounds up to whole blocks. */
export function blockAligned(bytes: number): number {
  return Math.ceil(bytes / BLOCK_BYTES) * BLOCK_BYTES
}
