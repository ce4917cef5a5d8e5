/**
 * The compactor against a plain oracle: random logs of all kinds of batches, with maps from one key to more than enough.
 * The oracle knows the whole log and a Map; it shares no code with the compactor. A control shows that it can fail.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { KEY_PLACE_BYTES } from '../../../../src/log/compaction/key-map.ts'
import type { CompactionRequest, SourceSegment } from '../../../../src/log/compaction/pass.ts'
import { newRandom } from '../../ring/random.ts'
import type { SeededRandom } from '../../ring/random.ts'
import { compact, readSegment, sourceOf, sourceOfBytes } from './test-segments.ts'
import type { Compacted, PlainBatch, PlainRecord, PlainSegment, ReadBatch } from './test-segments.ts'

const file = 'test/unit/log/compaction/compact-random.test.ts'
const CASES = 400

interface Case {
  readonly plain: readonly PlainSegment[]
  readonly request: CompactionRequest
  /** Whether every timestamp is a receive time, as over HTTP and ES01. */
  readonly isHonest: boolean
}

function randomRecord(random: SeededRandom, offset: number, timestampMs: number, keys: number): PlainRecord {
  const dice = random.below(10)
  const key = dice === 0 ? null : dice === 1 ? '' : `key-${random.below(keys)}`
  const value = random.below(4) === 0 ? null : 'v'.repeat(random.below(40))
  const headers = random.below(5) === 0 ? ([['h', random.below(2) === 0 ? null : Buffer.from('x')]] as const) : []
  return { offset, timestampMs, key, value, headers }
}

function randomBatch(random: SeededRandom, baseOffset: number, timestamp: () => number, isPlain: boolean): PlainBatch {
  const records: PlainRecord[] = []
  const keys = 1 + random.below(12)
  let offset = baseOffset + random.below(2)
  for (let count = 1 + random.below(6); count > 0; count--) {
    records.push(randomRecord(random, offset, timestamp(), keys))
    // Holes between offsets, as earlier passes leave them.
    offset += 1 + (random.below(4) === 0 ? random.below(5) : 0)
  }
  const batch: PlainBatch = { baseOffset, lastOffset: offset - 1 + random.below(3), records }
  if (random.below(3) === 0) {
    Object.assign(batch, { producerId: BigInt(random.below(3)), producerEpoch: 1, baseSequence: random.below(1000) })
  }
  const kind = isPlain ? 0 : random.below(25)
  if (kind === 1) batch.attributes = 1 + random.below(4)
  if (kind === 2) batch.isBroken = true
  if (kind === 3) batch.attributes = 0x10
  if (kind === 4) batch.attributes = 0x30
  return batch
}

function randomCase(random: SeededRandom): Case {
  const isHonest = random.below(2) === 0
  const isPlain = random.below(2) === 0
  const plain: PlainSegment[] = []
  let offset = random.below(3) * 1_000_000
  let receiveMs = 10_000
  for (let count = 1 + random.below(8); count > 0; count--) {
    const firstReceiveMs = receiveMs
    const baseOffset = offset
    const batches: PlainBatch[] = []
    const timestamp = (): number => {
      receiveMs += random.below(20)
      return isHonest || random.below(3) > 0 ? receiveMs : random.below(20_000)
    }
    for (let left = random.below(9); left > 0; left--) {
      const batch = randomBatch(random, offset, timestamp, isPlain)
      batches.push(batch)
      offset = batch.lastOffset + 1 + random.below(3)
    }
    offset = Math.max(offset, baseOffset + 1)
    plain.push({ baseOffset, nextOffset: offset, firstReceiveMs, receiveMsMax: receiveMs, batches })
    // A damaged range between two segments.
    if (random.below(12) === 0) offset += 7
  }
  return { plain, isHonest, request: randomRequest(random, plain.map(sourceOf)) }
}

function randomRequest(random: SeededRandom, segments: readonly SourceSegment[]): CompactionRequest {
  const retention = random.below(5)
  return {
    segments,
    nowMs: 10_000 + random.below(2000),
    tombstoneRetentionMs: retention === 0 ? null : retention === 1 ? 2n ** 64n - 1n : random.below(800),
    segmentBytes: 128 + random.below(4000),
    mapBytes: random.below(3) === 0 ? 1_000_000 : random.below(30) * KEY_PLACE_BYTES
  }
}

function isOpaque(batch: PlainBatch): boolean {
  return batch.isBroken === true || ((batch.attributes ?? 0) & 0x37) !== 0
}

/** Offsets of the records that must be there afterwards, and how many tombstones go for their age. */
function oracle({ plain, request }: Case): { kept: Set<number>; expired: number } {
  const newest = new Map<string, number>()
  for (const { batches } of plain) {
    for (const batch of batches) {
      if (isOpaque(batch)) continue
      for (const { key, offset } of batch.records) if (key !== null) newest.set(key, offset)
    }
  }
  const kept = new Set<number>()
  let expired = 0
  let isBehindOpaque = false
  for (const segment of plain) {
    for (const batch of segment.batches) {
      isBehindOpaque ||= isOpaque(batch)
      if (isOpaque(batch)) continue
      for (const record of batch.records) {
        const isExpired = record.key !== null && !isBehindOpaque && isPastTime(record, segment, request)
        if (isExpired) expired++
        if (record.key === null || (!isExpired && newest.get(record.key) === record.offset)) kept.add(record.offset)
      }
    }
  }
  return { kept, expired }
}

function isPastTime(record: PlainRecord, segment: PlainSegment, request: CompactionRequest): boolean {
  if (record.value !== null || request.tombstoneRetentionMs === null) return false
  const isWithin = record.timestampMs >= segment.firstReceiveMs && record.timestampMs <= segment.receiveMsMax
  const receiveMs = isWithin ? record.timestampMs : segment.receiveMsMax
  return BigInt(request.nowMs) - BigInt(receiveMs) > BigInt(request.tombstoneRetentionMs)
}

interface ExpectedBatch {
  readonly fields: string
  /** An opaque batch as it was, bytes; another one by its records. */
  readonly content: Buffer | ReadBatch['records']
}

/** Throws unless `segments` hold exactly what the oracle says, in batches that are otherwise as they were. */
function checkAgainstOracle(given: Case, segments: readonly SourceSegment[]): void {
  const { kept } = oracle(given)
  const expected = given.request.segments.flatMap(readSegment).flatMap((batch): ExpectedBatch[] => {
    const isMadeOpaque = given.plain.some(({ batches }) =>
      batches.some(plain => isOpaque(plain) && BigInt(plain.baseOffset) === batch.header.readBigInt64BE(0))
    )
    if (batch.records === null || isMadeOpaque) return [{ fields: fieldsOf(batch.header), content: batch.bytes }]
    const records = batch.records.filter(record => kept.has(record.offset))
    return records.length === 0 ? [] : [{ fields: fieldsOf(batch.header), content: records }]
  })
  const actual = segments.flatMap(readSegment)
  assert.equal(actual.length, expected.length)
  for (const [index, batch] of actual.entries()) {
    const wanted = expected[index]
    assert.ok(wanted !== undefined)
    assert.deepEqual(fieldsOf(batch.header), wanted.fields)
    assert.deepEqual(Buffer.isBuffer(wanted.content) ? batch.bytes : batch.records, wanted.content)
  }
}

/** What compaction must not touch: base offset, epoch, attributes, last offset delta, base timestamp, producer fields. */
function fieldsOf(header: Buffer): string {
  const parts = [header.subarray(0, 8), header.subarray(12, 17), header.subarray(21, 35), header.subarray(43, 57)]
  return Buffer.concat(parts).toString('hex')
}

function checkReport(given: Case, { result, segments }: Compacted): void {
  const { kept, expired } = oracle(given)
  const batches = given.plain.flatMap(segment => segment.batches)
  const records = batches.filter(batch => !isOpaque(batch)).flatMap(batch => batch.records)
  assert.deepEqual(
    [result.recordsRead, result.recordsDropped, result.tombstonesDropped, result.opaqueBatches, result.changed],
    [records.length, records.length - kept.size, expired, batches.filter(isOpaque).length, records.length > kept.size]
  )
  for (const [index, { replaces, isUnchanged }] of result.segments.entries()) {
    const sources = given.request.segments.slice(replaces[0], replaces[1] + 1)
    if (isUnchanged) assert.equal(segments[index], sources[0])
    const isSmaller = (segments[index]?.bytes ?? 0) < sources.reduce((sum, source) => sum + source.bytes, 0)
    if (!isUnchanged) assert.ok(isSmaller || sources.length > 1, 'what neither loses nor merges is left alone')
  }
}

describe('compaction of any log', () => {
  it('keeps exactly the newest record of each key, and the rest as it was, however little memory it has', () => {
    const random = newRandom(file)
    const seen = { changed: 0, opaque: 0, tombstones: 0, merged: 0, leftAlone: 0, again: 0 }
    for (let index = 0; index < CASES; index++) {
      const given = randomCase(random)
      try {
        const first = compact(given.request)
        checkAgainstOracle(given, first.segments)
        checkReport(given, first)
        seen.changed += Number(first.result.changed)
        seen.opaque += first.result.opaqueBatches
        seen.tombstones += first.result.tombstonesDropped
        seen.merged += first.result.segments.filter(({ replaces }) => replaces[0] !== replaces[1]).length
        if (first.result.changed) seen.leftAlone += first.result.segments.filter(segment => segment.isUnchanged).length
        if (!given.isHonest) continue
        const second = compact({ ...given.request, segments: first.segments })
        assert.deepEqual([second.result.changed, second.written.length], [false, 0], 'once more changes nothing')
        assert.deepEqual(second.segments, first.segments)
        seen.again++
      } catch (cause) {
        throw new Error(`case ${index}; ${random.replay}`, { cause })
      }
    }
    for (const [kind, count] of Object.entries(seen)) assert.ok(count > 10, `${kind} came up ${count} times`)
  })

  it('made in two passes over a growing log gives what one pass over the whole gives', () => {
    const random = newRandom(file)
    for (let index = 0; index < CASES / 4; index++) {
      const given = randomCase(random)
      const all = given.request.segments
      const half = Math.ceil(all.length / 2)
      // Without tombstones going: their age is counted anew for a merged segment.
      const request = { ...given.request, tombstoneRetentionMs: null }
      const before = compact({ ...request, segments: all.slice(0, half) })
      const after = compact({ ...request, segments: [...before.segments, ...all.slice(half)] })
      const once = compact(request)
      const bytesOf = (compacted: Compacted): Buffer[] =>
        compacted.segments.flatMap(readSegment).map(batch => batch.bytes)
      assert.deepEqual(bytesOf(after), bytesOf(once), `case ${index}; ${random.replay}`)
    }
  })

  it('is checked by an oracle that sees a lost record, a kept one and a changed one', () => {
    const random = newRandom(file)
    let cases = 0
    while (cases < 20) {
      const given = randomCase(random)
      const { result, segments } = compact(given.request)
      const [first] = segments.filter(segment => readSegment(segment).length > 0)
      if (!result.changed || first === undefined) continue
      const batches = readSegment(first).map(batch => batch.bytes)
      const lost = segments.map(segment => (segment === first ? sourceOfBytes(first, batches.slice(1)) : segment))
      const moved = batches.map(bytes => Buffer.from(bytes))
      moved[0]?.writeBigInt64BE(BigInt(first.baseOffset) + 500n, 0)
      const changed = segments.map(segment => (segment === first ? sourceOfBytes(first, moved) : segment))
      for (const wrong of [lost, changed, given.request.segments]) {
        assert.throws(() => checkAgainstOracle(given, wrong), assert.AssertionError, random.replay)
      }
      cases++
    }
  })
})
