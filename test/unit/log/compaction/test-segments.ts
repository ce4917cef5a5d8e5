/**
 * Segments for the tests of the compactor: built from plain descriptions, read back into plain descriptions. The bytes are
 * made here by their own rules (Kafka's format in its own widths), independently of the product's encoder.
 */
import assert from 'node:assert/strict'
import { crc32c } from '../../../../src/base/crc32c.ts'
import { compactSegments } from '../../../../src/log/compaction/compact.ts'
import type {
  CompactionOutput,
  CompactionRequest,
  CompactionResult,
  SourceBatch,
  SourceSegment
} from '../../../../src/log/compaction/pass.ts'
import { BatchView, RecordCursor, batchStatus, checkBatch } from '../../../../src/wire/batch/view.ts'
import { kafkaRecord } from '../../wire/batch/ring-records.ts'

export interface PlainRecord {
  offset: number
  timestampMs: number
  key: string | null
  value: string | null
  headers?: readonly (readonly [string, Buffer | null])[]
}

export interface PlainBatch {
  baseOffset: number
  lastOffset: number
  records: PlainRecord[]
  /** @default 0 */
  attributes?: number
  producerId?: bigint
  producerEpoch?: number
  baseSequence?: number
  leaderEpoch?: number
  /** Damage inside the records, under a right CRC. */
  isBroken?: boolean
  /** Applied to the records; the attributes are to name the codec. */
  compress?: (records: Buffer) => Buffer
}

export interface PlainSegment {
  baseOffset: number
  nextOffset: number
  firstReceiveMs: number
  receiveMsMax: number
  batches: PlainBatch[]
}

/** The batch's bytes. Its base timestamp is that of its first record, as producers do it. */
export function batchBytes(plain: PlainBatch): Buffer {
  const baseTimestamp = plain.records[0]?.timestampMs ?? 0
  const records = plain.records.map(({ offset, timestampMs, key, value, headers }) =>
    kafkaRecord({
      offsetDelta: offset - plain.baseOffset,
      timestampDelta: timestampMs - baseTimestamp,
      key: key === null ? null : Buffer.from(key),
      value: value === null ? null : Buffer.from(value),
      headers: headers ?? []
    })
  )
  const body = Buffer.concat(records)
  const bytes = Buffer.concat([Buffer.alloc(61), plain.compress?.(body) ?? body])
  bytes.writeBigInt64BE(BigInt(plain.baseOffset), 0)
  bytes.writeInt32BE(bytes.length - 12, 8)
  bytes.writeInt32BE(plain.leaderEpoch ?? 0, 12)
  bytes.writeInt8(2, 16)
  bytes.writeInt16BE(plain.attributes ?? 0, 21)
  bytes.writeInt32BE(plain.lastOffset - plain.baseOffset, 23)
  bytes.writeBigInt64BE(BigInt(baseTimestamp), 27)
  bytes.writeBigInt64BE(BigInt(Math.max(...plain.records.map(record => record.timestampMs))), 35)
  bytes.writeBigInt64BE(plain.producerId ?? -1n, 43)
  bytes.writeInt16BE(plain.producerEpoch ?? -1, 51)
  bytes.writeInt32BE(plain.baseSequence ?? -1, 53)
  bytes.writeInt32BE(plain.records.length, 57)
  if (plain.isBroken === true) bytes.fill(0xff, 61, 66)
  return sealed(bytes)
}

/** With a right CRC. */
export function sealed(batch: Buffer): Buffer {
  batch.writeUInt32BE(crc32c(batch, 21, batch.length), 17)
  return batch
}

/** A segment as the compactor gets it, with some bytes before and behind each batch that belong to nobody. */
export function sourceOf(plain: PlainSegment): SourceSegment {
  return sourceOfBytes(plain, plain.batches.map(batchBytes))
}

export function sourceOfBytes(range: Omit<PlainSegment, 'batches'>, batches: readonly Buffer[]): SourceSegment {
  const { baseOffset, nextOffset, firstReceiveMs, receiveMsMax } = range
  return {
    baseOffset,
    nextOffset,
    firstReceiveMs,
    receiveMsMax,
    bytes: batches.reduce((sum, batch) => sum + batch.length, 0),
    *batches(): Generator<SourceBatch, void, void> {
      for (const batch of batches) {
        const bytes = Buffer.concat([Buffer.alloc(5, 0xee), batch, Buffer.alloc(3, 0xee)])
        yield { bytes, start: 5, end: bytes.length - 3 }
        // Borrowed until the next step: whoever looks later sees rubbish.
        bytes.fill(0xee)
      }
    }
  }
}

/** Takes what a pass writes, and insists on the order of the calls. */
export class MemoryOutput implements CompactionOutput {
  readonly segments: SourceSegment[] = []
  #baseOffset = -1
  #batches: Buffer[] = []

  beginSegment(baseOffset: number): void {
    assert.equal(this.#baseOffset, -1, 'the segment before was ended')
    this.#baseOffset = baseOffset
    this.#batches = []
  }

  batch(bytes: Buffer, start: number, end: number): void {
    assert.notEqual(this.#baseOffset, -1, 'a segment was begun')
    this.#batches.push(Buffer.from(bytes.subarray(start, end)))
  }

  endSegment(segment: { nextOffset: number; firstReceiveMs: number; receiveMsMax: number }): void {
    this.segments.push(sourceOfBytes({ ...segment, baseOffset: this.#baseOffset }, this.#batches))
    this.#baseOffset = -1
  }
}

export interface Compacted {
  readonly result: CompactionResult
  /** The segments afterwards: written ones, and given ones that were left alone. */
  readonly segments: readonly SourceSegment[]
  readonly written: readonly SourceSegment[]
}

/** Runs a whole pass, and checks what holds of every one: the report, the ranges, the sizes, the CRCs. */
export function compact(request: CompactionRequest): Compacted {
  const output = new MemoryOutput()
  const run = compactSegments(request, output)
  let step = run.next()
  while (step.done !== true) step = run.next()
  const result = step.value
  const written = [...output.segments]
  let nextIndex = 0
  const segments = result.segments.map(segment => {
    const [first, last] = segment.replaces
    assert.equal(first, nextIndex, 'the segments of the report cover the given ones in order')
    nextIndex = last + 1
    const sources = request.segments.slice(first, last + 1)
    const after = segment.isUnchanged ? sources[0] : written.shift()
    assert.ok(after !== undefined, 'every changed segment was written')
    assert.deepEqual(
      [after.baseOffset, after.nextOffset, after.bytes],
      [segment.baseOffset, segment.nextOffset, segment.bytes]
    )
    assert.equal(after.baseOffset, sources[0]?.baseOffset)
    assert.equal(after.nextOffset, sources.at(-1)?.nextOffset)
    assert.equal(after.firstReceiveMs, Math.min(...sources.map(source => source.firstReceiveMs)))
    assert.equal(after.receiveMsMax, Math.max(...sources.map(source => source.receiveMsMax)))
    if (first !== last) assert.ok(after.bytes <= request.segmentBytes, 'merged segments keep to the limit')
    return after
  })
  assert.equal(nextIndex, request.segments.length)
  assert.equal(written.length, 0, 'nothing was written that is not in the report')
  const bytesWritten = output.segments.reduce((sum, segment) => sum + segment.bytes, 0)
  assert.equal(result.bytesWritten, bytesWritten)
  for (const segment of output.segments) checkBatches(segment)
  return { result, segments, written: output.segments }
}

function checkBatches(segment: SourceSegment): void {
  const view = new BatchView()
  let nextOffset = segment.baseOffset
  for (const { bytes, start, end } of segment.batches()) {
    assert.equal(checkBatch(bytes, start, end), batchStatus.ok)
    assert.ok([batchStatus.ok, batchStatus.compressed].some(status => status === view.open(bytes, start, end)))
    assert.ok(view.baseOffset >= nextOffset, 'batches stay in the order of offsets')
    nextOffset = view.lastOffset + 1
  }
  assert.ok(nextOffset <= segment.nextOffset)
}

/** A batch as it lies in a segment: its records, or null if they cannot be read; the bytes of its header. */
export interface ReadBatch {
  readonly header: Buffer
  readonly bytes: Buffer
  readonly records: readonly Required<PlainRecord>[] | null
}

export function readSegment(segment: SourceSegment): ReadBatch[] {
  const read: ReadBatch[] = []
  for (const { bytes, start, end } of segment.batches()) {
    const copy = Buffer.from(bytes.subarray(start, end))
    read.push({ bytes: copy, header: copy.subarray(0, 61), records: readRecords(copy) })
  }
  return read
}

function readRecords(bytes: Buffer): Required<PlainRecord>[] | null {
  const view = new BatchView()
  if (view.open(bytes, 0, bytes.length) !== batchStatus.ok) return null
  const cursor = new RecordCursor()
  cursor.open(bytes, view)
  const part = (start: number, length: number): string | null =>
    length < 0 ? null : bytes.toString('utf8', start, start + length)
  const records: Required<PlainRecord>[] = []
  while (cursor.next()) {
    records.push({
      offset: view.baseOffset + cursor.offsetDelta,
      timestampMs: view.baseTimestampMs + cursor.timestampDeltaMs,
      key: part(cursor.keyStart, cursor.keyLength),
      value: part(cursor.valueStart, cursor.valueLength),
      headers: [['raw', Buffer.from(bytes.subarray(cursor.headersStart, cursor.headersEnd))]]
    })
  }
  return cursor.status === batchStatus.ok ? records : null
}

/** All readable records of segments as `offset key=value`, `-` for null. */
export function recordLines(segments: readonly SourceSegment[]): string[] {
  return segments
    .flatMap(readSegment)
    .flatMap(batch => batch.records ?? [])
    .map(({ offset, key, value }) => `${offset} ${key ?? '-'}=${value ?? '-'}`)
}

/**
 * A segment of batches of one record each from `baseOffset` on, all received (and dated) at `receiveMs`, out of
 * `key=value` texts; `-` is null.
 */
export function segmentOf(baseOffset: number, receiveMs: number, texts: readonly string[]): PlainSegment {
  const batches = texts.map((text, index) => {
    const [key = '', value = ''] = text.split('=')
    const offset = baseOffset + index
    const record = { offset, timestampMs: receiveMs, key: nullable(key), value: nullable(value) }
    return { baseOffset: offset, lastOffset: offset, records: [record] }
  })
  const nextOffset = baseOffset + texts.length
  return { baseOffset, nextOffset, firstReceiveMs: receiveMs, receiveMsMax: receiveMs, batches }
}

function nullable(text: string): string | null {
  return text === '-' ? null : text
}

/** A request with plain defaults: tombstones for a second, a clock long after every receive time, segments of 1 MiB. */
export function requestOf(
  segments: readonly SourceSegment[],
  more: Partial<CompactionRequest> = {}
): CompactionRequest {
  return { segments, tombstoneRetentionMs: 1000, nowMs: 1_000_000, segmentBytes: 1024 * 1024, ...more }
}

/** Segments of one-record batches, received at 100, 200 …, from lists of `key=value`. */
export function logOf(...segments: readonly (readonly string[])[]): SourceSegment[] {
  let offset = 0
  return segments.map((texts, index) => {
    const plain = segmentOf(offset, (index + 1) * 100, texts)
    offset = plain.nextOffset
    return sourceOf(plain)
  })
}
