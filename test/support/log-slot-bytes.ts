/**
 * Reads the bytes of a slot by docs/formats.md alone, without the product's code: what the format tests compare with.
 * No checksum is looked at.
 */
export interface PlainEntry {
  readonly kind: number
  readonly rolls: boolean
  readonly handle: number
  readonly baseOffset: number
  readonly nextOffset: number
  /** The run itself: whole batches. */
  readonly run: Buffer
  readonly batchCount: number
  readonly receiveMs: number
  readonly leaderEpoch: number
  readonly recordCount: number
}

export interface PlainGroup {
  readonly number: number
  readonly lastSynced: number
  readonly position: number
  readonly totalBytes: number
  readonly entries: readonly PlainEntry[]
}

export interface PlainSlot {
  readonly version: number
  readonly shard: number
  readonly sequence: number
  readonly previousSequence: number
  readonly previousLastGroup: number
  readonly placementEpoch: number
  readonly capacityBytes: number
  readonly groups: readonly PlainGroup[]
}

const u64 = (bytes: Buffer, at: number): number => Number(bytes.readBigUInt64BE(at))

/** Header and groups of a slot, up to the first place where no group begins. */
export function plainSlot(bytes: Buffer): PlainSlot {
  if (bytes.toString('latin1', 0, 8) !== 'MILLSLOT') throw new Error('no slot header')
  const groups: PlainGroup[] = []
  for (let at = 8192; at + 64 <= bytes.length && bytes.toString('latin1', at, at + 4) === 'MGRP';) {
    const group = plainGroup(bytes, at)
    groups.push(group)
    at += group.totalBytes
  }
  return {
    version: bytes.readUInt32BE(8),
    shard: bytes.readUInt32BE(12),
    sequence: u64(bytes, 16),
    previousSequence: u64(bytes, 32),
    previousLastGroup: u64(bytes, 40),
    placementEpoch: bytes.readUInt32BE(48),
    capacityBytes: u64(bytes, 56),
    groups
  }
}

function plainGroup(bytes: Buffer, at: number): PlainGroup {
  const entries: PlainEntry[] = []
  const directoryEnd = at + 64 + bytes.readUInt32BE(at + 28)
  let entryAt = at + 64
  while (entryAt < directoryEnd) {
    entries.push(plainEntry(bytes, at, entryAt))
    entryAt += 64 + 32 * bytes.readUInt16BE(entryAt + 2)
  }
  return {
    number: u64(bytes, at + 8),
    lastSynced: u64(bytes, at + 16),
    position: at,
    totalBytes: bytes.readUInt32BE(at + 24),
    entries
  }
}

function plainEntry(bytes: Buffer, groupAt: number, at: number): PlainEntry {
  const position = groupAt + bytes.readUInt32BE(at + 24)
  return {
    kind: bytes[at] ?? 0,
    rolls: ((bytes[at + 1] ?? 0) & 1) === 1,
    handle: bytes.readUInt32BE(at + 4),
    baseOffset: u64(bytes, at + 8),
    nextOffset: u64(bytes, at + 16),
    run: bytes.subarray(position, position + bytes.readUInt32BE(at + 28)),
    batchCount: bytes.readUInt32BE(at + 36),
    receiveMs: u64(bytes, at + 40),
    leaderEpoch: bytes.readInt32BE(at + 48),
    recordCount: bytes.readUInt32BE(at + 52)
  }
}

/** The batches of a run, cut apart by their length fields. */
export function batchesOf(run: Buffer): Buffer[] {
  const batches: Buffer[] = []
  for (let at = 0; at < run.length;) {
    const end = at + 12 + run.readInt32BE(at + 8)
    batches.push(run.subarray(at, end))
    at = end
  }
  return batches
}
