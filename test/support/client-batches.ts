/**
 * Record batches as a client of Kafka's protocol encodes them, made by hand and not with the broker's own encoder; and what
 * stands in stored ones.
 */
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { crc32c } from '../../src/base/crc32c.ts'

export interface ClientRecord {
  readonly key?: Buffer | string | null
  /** null: a tombstone. */
  readonly value: Buffer | string | null
  readonly headers?: readonly (readonly [string, Buffer | string | null])[]
  readonly timestampDelta?: number
  /** If it is not its place in the batch. */
  readonly offsetDelta?: number
}

export const codecs = { none: 0, gzip: 1, snappy: 2, lz4: 3, zstd: 4 } as const

export interface ClientBatch {
  readonly records?: readonly ClientRecord[]
  /** Instead of records: what stands behind the header, whatever it is. */
  readonly body?: Buffer
  /** Compresses what stands behind the header; the codec is to be named too. */
  readonly compress?: (body: Buffer) => Buffer
  readonly codec?: number
  /** Of the header, if it is not that of the records. */
  readonly count?: number
  readonly lastOffsetDelta?: number
  readonly attributes?: number
  readonly baseTimestamp?: number | bigint
  readonly maxTimestamp?: number | bigint
  readonly producerId?: number | bigint
  readonly epoch?: number
  readonly sequence?: number
  readonly magic?: number
  readonly baseOffset?: number
}

/** Zig-zag varint of any 64-bit number. */
export function varint(value: number | bigint): Buffer {
  const bytes: number[] = []
  let rest = BigInt.asUintN(64, (BigInt(value) << 1n) ^ (BigInt(value) >> 63n))
  for (; rest >= 0x80n; rest >>= 7n) bytes.push(Number(rest & 0x7fn) | 0x80)
  return Buffer.from([...bytes, Number(rest)])
}

function part(value: Buffer | string | null | undefined): Buffer {
  if (value === null || value === undefined) return varint(-1)
  const bytes = Buffer.from(value)
  return Buffer.concat([varint(bytes.length), bytes])
}

export function encodeRecord({ key, value, headers = [], timestampDelta = 0 }: ClientRecord, delta: number): Buffer {
  const pairs = headers.flatMap(([name, text]) => [varint(Buffer.byteLength(name)), Buffer.from(name), part(text)])
  const body = Buffer.concat([
    Buffer.from([0]),
    varint(timestampDelta),
    varint(delta),
    part(key),
    part(value),
    varint(headers.length),
    ...pairs
  ])
  return Buffer.concat([varint(body.length), body])
}

/** One batch, its CRC right whatever the rest is. */
export function clientBatch(batch: ClientBatch): Buffer {
  const { records = [], codec = 0, baseTimestamp = 1_700_000_000_000, producerId = -1 } = batch
  const plain = batch.body ?? Buffer.concat(records.map((record, i) => encodeRecord(record, record.offsetDelta ?? i)))
  const body = batch.compress?.(plain) ?? plain
  const bytes = Buffer.alloc(61 + body.length)
  const count = batch.count ?? records.length
  const newest = records.reduce((most, { timestampDelta = 0 }) => Math.max(most, timestampDelta), 0)
  bytes.writeBigInt64BE(BigInt(batch.baseOffset ?? 0), 0)
  bytes.writeInt32BE(bytes.length - 12, 8)
  bytes.writeInt32BE(-1, 12)
  bytes.writeInt8(batch.magic ?? 2, 16)
  bytes.writeInt16BE(batch.attributes ?? codec, 21)
  bytes.writeInt32BE(batch.lastOffsetDelta ?? count - 1, 23)
  bytes.writeBigInt64BE(BigInt(baseTimestamp), 27)
  bytes.writeBigInt64BE(BigInt(batch.maxTimestamp ?? BigInt(baseTimestamp) + BigInt(newest)), 35)
  bytes.writeBigInt64BE(BigInt(producerId), 43)
  bytes.writeInt16BE(batch.epoch ?? (producerId === -1 ? -1 : 0), 51)
  bytes.writeInt32BE(batch.sequence ?? (producerId === -1 ? -1 : 0), 53)
  bytes.writeInt32BE(count, 57)
  body.copy(bytes, 61)
  return withCrc(bytes)
}

/** Sets the CRC anew, after a test has changed what it covers. */
export function withCrc(bytes: Buffer): Buffer {
  bytes.writeUInt32BE(crc32c(bytes, 21, bytes.length), 17)
  return bytes
}

/** What a stored batch must be: the bytes of the client, but for base offset and leader epoch. */
export function placed(batch: Buffer, baseOffset: number, leaderEpoch = 0): Buffer {
  const bytes = Buffer.from(batch)
  bytes.writeBigInt64BE(BigInt(baseOffset), 0)
  bytes.writeInt32BE(leaderEpoch, 12)
  return bytes
}

/** Batches that lie one behind another. */
export function splitBatches(bytes: Buffer): Buffer[] {
  const batches: Buffer[] = []
  for (let at = 0; at < bytes.length;) {
    const end = at + 12 + bytes.readInt32BE(at + 8)
    batches.push(bytes.subarray(at, end))
    at = end
  }
  return batches
}

export const gzip = { codec: codecs.gzip, compress: (body: Buffer): Buffer => gzipSync(body) }
export const zstd = { codec: codecs.zstd, compress: (body: Buffer): Buffer => zstdCompressSync(body) }
export const snappy = { codec: codecs.snappy, compress: snappyLiteral }
export const lz4 = { codec: codecs.lz4, compress: lz4Stored }

/** Raw snappy that repeats nothing. */
function snappyLiteral(body: Buffer): Buffer {
  const head: number[] = []
  let rest = body.length
  for (; rest >= 0x80; rest >>>= 7) head.push((rest & 0x7f) | 0x80)
  const length = Buffer.alloc(4)
  length.writeUInt32LE(body.length - 1)
  return Buffer.concat([Buffer.from([...head, rest, 63 << 2]), length, body])
}

/** An lz4 frame of blocks that are not compressed: version 1, blocks for themselves, of 64 KiB; the checksum of that head is 0x82. */
function lz4Stored(body: Buffer): Buffer {
  const parts: Buffer[] = [Buffer.from([0x04, 0x22, 0x4d, 0x18, 0x60, 0x40, 0x82])]
  for (let at = 0; at < body.length; at += 65_536) {
    const block = body.subarray(at, at + 65_536)
    const size = Buffer.alloc(4)
    size.writeUInt32LE((block.length | 0x8000_0000) >>> 0)
    parts.push(size, block)
  }
  return Buffer.concat([...parts, Buffer.alloc(4)])
}
