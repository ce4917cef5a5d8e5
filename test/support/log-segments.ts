/**
 * Segments in Kafka's format, written here independently of the product's encoder, with everything known about them: the
 * logs that block entries, index files and other readers of the format are tested with.
 */
import { gzipSync } from 'node:zlib'
import { crc32c } from '../../src/base/crc32c.ts'
import { BlockBuilder, BlockTable } from '../../src/log/segment-blocks.ts'
import { kafkaRecord, type KafkaRecord } from '../unit/wire/batch/ring-records.ts'
import type { Dice } from './log-random.ts'

export interface BatchParts {
  readonly baseOffset: number
  readonly leaderEpoch?: number
  readonly baseTimestampMs: number
  readonly records: readonly (KafkaRecord & { readonly timestampDelta?: number })[]
  /** Default: the offset delta of the last record. */
  readonly lastOffsetDelta?: number
  /** Default: the greatest of the records. With isLogAppendTime it counts for all of them. */
  readonly maxTimestampMs?: number
  readonly isGzip?: boolean
  /** It says that it is gzip, and is not. */
  readonly isUndecodable?: boolean
  readonly isLogAppendTime?: boolean
  readonly isControl?: boolean
  /** Kafka producer and first sequence. */
  readonly producer?: { readonly id: number; readonly epoch: number; readonly sequence: number }
}

export interface SampleRecord {
  readonly offset: number
  readonly timestampMs: number
  readonly key: Buffer | null
  readonly value: Buffer | null
}

export interface SampleBatch {
  readonly position: number
  readonly bytes: number
  readonly baseOffset: number
  readonly lastOffset: number
  readonly leaderEpoch: number
  readonly isControl: boolean
  readonly records: readonly SampleRecord[]
}

export interface SampleSegment {
  readonly segmentBase: number
  /** Behind the last offset. */
  readonly nextOffset: number
  readonly log: Buffer
  readonly batches: readonly SampleBatch[]
}

function maxTimestampOf(parts: BatchParts): number {
  if (parts.maxTimestampMs !== undefined) return parts.maxTimestampMs
  return Math.max(...parts.records.map(record => parts.baseTimestampMs + (record.timestampDelta ?? 0)))
}

function lastDeltaOf(parts: BatchParts): number {
  return parts.lastOffsetDelta ?? parts.records.at(-1)?.offsetDelta ?? 0
}

/** One RecordBatch v2. */
export function batchOf(parts: BatchParts): Buffer {
  const plain = Buffer.concat(parts.records.map(kafkaRecord))
  const body = parts.isGzip === true ? gzipSync(plain) : plain
  const bytes = Buffer.alloc(61 + body.length)
  bytes.writeBigInt64BE(BigInt(parts.baseOffset), 0)
  bytes.writeInt32BE(bytes.length - 12, 8)
  bytes.writeInt32BE(parts.leaderEpoch ?? 0, 12)
  bytes.writeInt8(2, 16)
  const codec = parts.isGzip === true || parts.isUndecodable === true ? 1 : 0
  const control = parts.isControl === true ? 0x30 : 0
  bytes.writeInt16BE(codec + (parts.isLogAppendTime === true ? 8 : 0) + control, 21)
  bytes.writeInt32BE(lastDeltaOf(parts), 23)
  bytes.writeBigInt64BE(BigInt(parts.baseTimestampMs), 27)
  bytes.writeBigInt64BE(BigInt(maxTimestampOf(parts)), 35)
  bytes.writeBigInt64BE(BigInt(parts.producer?.id ?? -1), 43)
  bytes.writeInt16BE(parts.producer?.epoch ?? -1, 51)
  bytes.writeInt32BE(parts.producer?.sequence ?? -1, 53)
  bytes.writeInt32BE(parts.records.length, 57)
  body.copy(bytes, 61)
  bytes.writeUInt32BE(crc32c(bytes, 21, bytes.length), 17)
  return bytes
}

/** A segment of these batches, in this order. */
export function segmentOf(segmentBase: number, all: readonly BatchParts[]): SampleSegment {
  const batches: SampleBatch[] = []
  const pieces: Buffer[] = []
  let position = 0
  for (const parts of all) {
    const bytes = batchOf(parts)
    pieces.push(bytes)
    batches.push({
      position,
      bytes: bytes.length,
      baseOffset: parts.baseOffset,
      lastOffset: parts.baseOffset + lastDeltaOf(parts),
      leaderEpoch: parts.leaderEpoch ?? 0,
      isControl: parts.isControl === true,
      records: parts.records.map(record => ({
        offset: parts.baseOffset + record.offsetDelta,
        timestampMs:
          parts.isLogAppendTime === true ? maxTimestampOf(parts) : parts.baseTimestampMs + (record.timestampDelta ?? 0),
        key: record.key,
        value: record.value
      }))
    })
    position += bytes.length
  }
  return {
    segmentBase,
    nextOffset: (batches.at(-1)?.lastOffset ?? segmentBase - 1) + 1,
    log: Buffer.concat(pieces),
    batches
  }
}

/**
 * plain      one timestamp a batch, growing, offsets without gaps: what HTTP and ES01 write
 * mixed      what Kafka producers write: clocks that jump, headers, gzip, append time, markers, several leader epochs
 * compacted  records and batches missing, batches that reach beyond their last record, batches without any
 */
export const sampleKinds = ['plain', 'mixed', 'compacted'] as const
export type SampleKind = (typeof sampleKinds)[number]

/** Text, so that tools can print it. */
function text(dice: Dice, bytesMax: number): Buffer {
  return Buffer.from(dice.bytes(dice.below(bytesMax)).toString('hex').slice(0, dice.below(bytesMax)))
}

/** @param bytes the segment has at least so many. */
export function sampleSegment(dice: Dice, kind: SampleKind, bytes: number): SampleSegment {
  const segmentBase = dice.chance(0.3) ? 0 : dice.below(2 ** 40)
  const all: BatchParts[] = []
  let offset = segmentBase
  let clockMs = 1_700_000_000_000
  let leaderEpoch = dice.below(3)
  let size = 0
  while (size < bytes) {
    const count = dice.chance(0.3) ? 1 : 1 + dice.below(30)
    const records = Array.from({ length: count }, (_, offsetDelta) => ({
      offsetDelta,
      key: dice.chance(0.3) ? null : text(dice, 40),
      value: dice.chance(0.1) ? null : text(dice, 500)
    }))
    if (kind === 'plain') clockMs += dice.below(50)
    else clockMs += dice.below(400) - 150
    let parts: BatchParts = { baseOffset: offset, leaderEpoch, baseTimestampMs: clockMs, records }
    if (kind === 'mixed') {
      parts = mixed(dice, parts)
      if (dice.chance(0.05)) leaderEpoch += 1 + dice.below(2)
    }
    if (kind === 'compacted') {
      parts = compacted(dice, parts)
      if (dice.chance(0.2)) offset += dice.below(5000)
    }
    offset += lastDeltaOf(parts) + 1
    all.push(parts)
    size += batchOf(parts).length
  }
  return segmentOf(segmentBase, all)
}

function mixed(dice: Dice, parts: BatchParts): BatchParts {
  if (dice.chance(0.05)) {
    const key = Buffer.from([0, 0, 0, dice.below(2)])
    const records = [{ offsetDelta: 0, key, value: Buffer.alloc(6) }]
    return { ...parts, records, isControl: true, producer: { id: 70_000, epoch: 3, sequence: -1 } }
  }
  const records = parts.records.map(record => ({
    ...record,
    timestampDelta: dice.below(300) - 100,
    headers: dice.chance(0.2) ? ([['trace', text(dice, 20)]] as const) : []
  }))
  const isLogAppendTime = dice.chance(0.1)
  return {
    ...parts,
    records,
    isGzip: dice.chance(0.2),
    isLogAppendTime,
    ...(isLogAppendTime && { maxTimestampMs: parts.baseTimestampMs + 1000 }),
    ...(dice.chance(0.3) && { producer: { id: 2 ** 33 + dice.below(9), epoch: 0, sequence: dice.below(1000) } })
  }
}

/** As a compactor leaves a batch: fewer records, the same offsets; without any, it keeps the timestamp it had. */
function compacted(dice: Dice, parts: BatchParts): BatchParts {
  const lastOffsetDelta = lastDeltaOf(parts)
  if (dice.chance(0.1)) {
    return { ...parts, records: [], lastOffsetDelta, maxTimestampMs: parts.baseTimestampMs + dice.below(500) }
  }
  const kept = parts.records.filter(() => dice.chance(0.6))
  return { ...parts, records: kept.length > 0 ? kept : parts.records.slice(0, 1), lastOffsetDelta }
}

/** The blocks of a whole segment, added in pieces of one to some batches; isOnePerBatch: as if each were an extent. */
export function blocksOf(segment: SampleSegment, dice: Dice, options: { isOnePerBatch?: boolean } = {}): BlockTable {
  const builder = new BlockBuilder()
  builder.begin(segment.segmentBase)
  if (options.isOnePerBatch === true) {
    for (const { position, bytes } of segment.batches) {
      builder.add(segment.log, position, position + bytes, position)
      builder.close()
    }
  } else {
    addPieces(builder, segment, dice)
    builder.close()
  }
  return new BlockTable(builder.entries, segment.segmentBase)
}

/** Adds all batches of the segment, each time one or several in a buffer of their own with something around them. */
export function addPieces(builder: BlockBuilder, segment: SampleSegment, dice: Dice): void {
  for (let i = 0; i < segment.batches.length;) {
    const last = Math.min(segment.batches.length - 1, i + dice.below(4))
    const start = segment.batches[i]?.position ?? 0
    const end = (segment.batches[last]?.position ?? 0) + (segment.batches[last]?.bytes ?? 0)
    const around = dice.bytes(dice.below(20))
    const bytes = Buffer.concat([around, segment.log.subarray(start, end), around])
    builder.add(bytes, around.length, around.length + end - start, start)
    bytes.fill(0xee)
    i = last + 1
  }
}

/** The entries of the same blocks, made in one step. */
export function blocksBytes(segment: SampleSegment): Buffer {
  const builder = new BlockBuilder()
  builder.begin(segment.segmentBase)
  if (segment.log.length > 0) builder.add(segment.log, 0, segment.log.length, 0)
  builder.close()
  return builder.entries
}
