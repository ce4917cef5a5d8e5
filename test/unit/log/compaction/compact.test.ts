import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'
import { compactSegments } from '../../../../src/log/compaction/compact.ts'
import type { SourceBatch, SourceSegment } from '../../../../src/log/compaction/pass.ts'
import {
  MemoryOutput,
  batchBytes,
  compact,
  logOf,
  readSegment,
  recordLines,
  requestOf,
  sealed,
  segmentOf,
  sourceOf,
  sourceOfBytes
} from './test-segments.ts'
import type { PlainBatch } from './test-segments.ts'

const MIB = 1024 * 1024

/** One segment of one batch of several records. */
function oneBatch(batch: Partial<PlainBatch> & Pick<PlainBatch, 'records'>): SourceSegment {
  const last = batch.records.at(-1)?.offset ?? 0
  const plain: PlainBatch = { baseOffset: 0, lastOffset: last, ...batch }
  return sourceOf({
    baseOffset: 0,
    nextOffset: plain.lastOffset + 1,
    firstReceiveMs: 0,
    receiveMsMax: 1,
    batches: [plain]
  })
}

describe('what compaction keeps', () => {
  it('the newest record of each key, where it was', () => {
    const { result, segments } = compact(requestOf(logOf(['a=1', 'b=1', 'a=2'], ['c=1', 'b=2'], ['a=3'])))
    assert.deepEqual(recordLines(segments), ['3 c=1', '4 b=2', '5 a=3'])
    assert.deepEqual([result.changed, result.recordsRead, result.recordsDropped], [true, 6, 3])
  })

  it('every record without a key, a null one too', () => {
    const { segments } = compact(requestOf(logOf(['-=1', '-=1', '-=-', 'a=1'], ['-=-', 'a=2'])))
    assert.deepEqual(recordLines(segments), ['0 -=1', '1 -=1', '2 -=-', '4 -=-', '5 a=2'])
  })

  it('treats the empty key as a key', () => {
    const { segments } = compact(requestOf(logOf(['=1', 'a=1', '=2'])))
    assert.deepEqual(recordLines(segments), ['1 a=1', '2 =2'])
  })

  it('is the same with room for a single key in memory', () => {
    const log = (): SourceSegment[] => logOf(['a=1', 'b=1', 'c=1', 'a=2'], ['d=1', 'b=2', 'a=3'], ['c=2', 'e=1'])
    const roomy = compact(requestOf(log()))
    const tight = compact(requestOf(log(), { mapBytes: 1 }))
    assert.deepEqual(recordLines(tight.segments), ['4 d=1', '5 b=2', '6 a=3', '7 c=2', '8 e=1'])
    assert.deepEqual(recordLines(tight.segments), recordLines(roomy.segments))
    assert.ok(tight.result.bytesRead > roomy.result.bytesRead, 'it took more rounds')
  })

  it('in a thinned batch everything but the lost records: offsets, timestamps, headers, producer, epoch', () => {
    const records = [
      { offset: 10, timestampMs: 5000, key: 'a', value: 'old' },
      { offset: 11, timestampMs: 9000, key: 'b', value: 'old', headers: [['h', null]] as const },
      { offset: 12, timestampMs: 4000, key: 'c', value: 'x', headers: [['h', Buffer.from('v')]] as const },
      { offset: 13, timestampMs: 7000, key: 'a', value: 'new' },
      { offset: 14, timestampMs: 6000, key: 'b', value: 'new' }
    ]
    const identity = { producerId: 77n, producerEpoch: 3, baseSequence: 40, leaderEpoch: 9 }
    const before: PlainBatch = { baseOffset: 10, lastOffset: 16, records, ...identity }
    const range = { baseOffset: 10, nextOffset: 17, firstReceiveMs: 0, receiveMsMax: 1 }
    const { segments } = compact(requestOf([sourceOf({ ...range, batches: [before] })]))
    // The base timestamp is still that of the record at 10: made with it, then cut out by hand.
    const [whole] = readSegment(sourceOf({ ...range, batches: [before] }))
    const [thin] = readSegment(segments[0] as SourceSegment)
    assert.ok(whole?.records && thin?.records)
    assert.deepEqual(thin.records, whole.records.slice(2))
    const expected = Buffer.from(whole.header)
    expected.writeInt32BE(thin.bytes.length - 12, 8)
    expected.writeBigInt64BE(7000n, 35)
    expected.writeInt32BE(3, 57)
    thin.header.copy(expected, 17, 17, 21)
    assert.deepEqual(thin.header, expected, 'length, greatest timestamp, count and checksum are new; the rest is not')
  })

  it('the append time of a batch that carries the time of the broker', () => {
    const records = [
      { offset: 0, timestampMs: 8000, key: 'a', value: '1' },
      { offset: 1, timestampMs: 1000, key: 'a', value: '2' }
    ]
    const { segments } = compact(requestOf([oneBatch({ records, attributes: 0x08 })]))
    const [thin] = readSegment(segments[0] as SourceSegment)
    assert.equal(thin?.header.readBigInt64BE(35), 8000n)
    assert.equal(thin?.header.readInt16BE(21), 0x08)
  })
})

describe('a compressed batch', () => {
  const records = ['a', 'b', 'c'].map((key, offset) => ({ offset, timestampMs: 1000 + offset, key, value: 'v' }))
  const gzipped = batchBytes({ baseOffset: 0, lastOffset: 2, records, attributes: 1, compress: gzipSync })
  const source = sourceOfBytes({ baseOffset: 0, nextOffset: 3, firstReceiveMs: 1, receiveMsMax: 1 }, [gzipped])

  it('keeps its bytes if all of its records stay, and hides older ones', () => {
    const older = sourceOf(segmentOf(0, 1, ['a=0', 'd=0']))
    const late = records.map(record => ({ ...record, offset: record.offset + 10 }))
    const bytes = batchBytes({ baseOffset: 10, lastOffset: 12, records: late, attributes: 1, compress: gzipSync })
    const newer = sourceOfBytes({ baseOffset: 10, nextOffset: 13, firstReceiveMs: 1, receiveMsMax: 1 }, [bytes])
    const { result, segments } = compact(requestOf([older, newer]))
    assert.deepEqual([result.opaqueBatches, result.recordsRead, result.recordsDropped], [0, 5, 1])
    assert.deepEqual(segments.flatMap(readSegment).at(-1)?.bytes, bytes)
  })

  it('is compressed again if it loses some, with all that it said of the others', () => {
    const recompressed = [
      [1, gzipSync, 1, gzipSync],
      [4, zstdCompressSync, 4, zstdCompressSync],
      // A raw block of one literal: what it is compressed with again every client reads.
      [
        2,
        (bytes: Buffer) => Buffer.concat([Buffer.from([bytes.length, 60 << 2, bytes.length - 1]), bytes]),
        1,
        gzipSync
      ]
    ] as const
    for (const [attributes, compress, attributesAfter, compressAfter] of recompressed) {
      const bytes = batchBytes({ baseOffset: 0, lastOffset: 2, records, attributes, compress })
      const first = sourceOfBytes({ baseOffset: 0, nextOffset: 3, firstReceiveMs: 1, receiveMsMax: 1 }, [bytes])
      const { result, segments } = compact(requestOf([first, sourceOf(segmentOf(3, 2, ['b=1']))]))
      assert.deepEqual([result.opaqueBatches, result.recordsDropped], [0, 1])
      const rest = { records: records.filter(({ key }) => key !== 'b'), compress: compressAfter }
      const wanted = batchBytes({ baseOffset: 0, lastOffset: 2, attributes: attributesAfter, ...rest })
      assert.deepEqual(segments.flatMap(readSegment)[0]?.bytes, wanted)
    }
  })

  it('goes if it loses all', () => {
    const { segments } = compact(requestOf([source, sourceOf(segmentOf(3, 2, ['a=1', 'b=1', 'c=1']))]))
    assert.deepEqual(
      segments.flatMap(readSegment).map(({ header }) => Number(header.readBigInt64BE(0))),
      [3, 4, 5]
    )
  })
})

describe('batches that are not looked into', () => {
  const records = [{ offset: 0, timestampMs: 1, key: 'a', value: '1' }]
  const opaque: readonly (readonly [string, Partial<PlainBatch>])[] = [
    ['one that says it is compressed, and is not', { attributes: 2 }],
    ['a damaged one', { isBroken: true }],
    ['one of a transaction', { attributes: 0x10 }],
    ['a control batch', { attributes: 0x30 }]
  ]
  for (const [name, kind] of opaque) {
    it(`${name} stays as it is, and hides nothing`, () => {
      const bytes = batchBytes({ baseOffset: 0, lastOffset: 0, records, ...kind })
      const first = sourceOfBytes({ baseOffset: 0, nextOffset: 1, firstReceiveMs: 1, receiveMsMax: 1 }, [bytes])
      const newer = sourceOf(segmentOf(1, 2, ['a=2', 'b=1', 'b=2']))
      const { result, segments } = compact(requestOf([first, newer]))
      assert.deepEqual(segments.flatMap(readSegment)[0]?.bytes, bytes)
      assert.deepEqual([result.opaqueBatches, result.recordsRead, result.recordsDropped], [1, 3, 1])
    })
  }

  it('one with offsets out of order, or beyond its last', () => {
    for (const offsets of [
      [1, 0],
      [0, 0],
      [0, 5]
    ]) {
      const batch = oneBatch({
        lastOffset: 1,
        records: offsets.map(offset => ({ offset, timestampMs: 1, key: 'a', value: '1' }))
      })
      const { result } = compact(requestOf([batch]))
      assert.deepEqual([result.changed, result.opaqueBatches], [false, 1])
    }
  })

  it('one with a timestamp that no exact number holds', () => {
    const bytes = batchBytes({
      baseOffset: 0,
      lastOffset: 1,
      records: [0, 1].map(offset => ({ offset, timestampMs: 10 * offset, key: 'a', value: '1' }))
    })
    bytes.writeBigInt64BE(BigInt(Number.MAX_SAFE_INTEGER), 27)
    sealed(bytes)
    const segment = sourceOfBytes({ baseOffset: 0, nextOffset: 2, firstReceiveMs: 0, receiveMsMax: 1 }, [bytes])
    assert.equal(compact(requestOf([segment])).result.opaqueBatches, 1)
  })

  it('a tombstone behind one stays: what it hides may be in there', () => {
    const compressed = batchBytes({ baseOffset: 1, lastOffset: 1, records, attributes: 2 })
    const log = [
      sourceOf(segmentOf(0, 1, ['b=-'])),
      sourceOfBytes({ baseOffset: 1, nextOffset: 2, firstReceiveMs: 1, receiveMsMax: 1 }, [compressed]),
      sourceOf(segmentOf(2, 1, ['a=-', 'c=-', 'c=-']))
    ]
    for (const mapBytes of [1, MIB]) {
      const { result, segments } = compact(requestOf(log, { mapBytes }))
      assert.deepEqual(recordLines(segments), ['2 a=-', '4 c=-'])
      assert.equal(result.tombstonesDropped, 1)
    }
  })
})

describe('tombstones', () => {
  const log = (): SourceSegment[] => logOf(['a=1', 'b=1'], ['a=-'])

  it('hide older records at once and stay until they are older than the retention', () => {
    const { result, segments } = compact(requestOf(log(), { nowMs: 1200, tombstoneRetentionMs: 1000 }))
    assert.deepEqual(recordLines(segments), ['1 b=1', '2 a=-'])
    assert.equal(result.tombstonesDropped, 0)
  })

  it('go when they are older, together with what they hide', () => {
    const { result, segments } = compact(requestOf(log(), { nowMs: 1201, tombstoneRetentionMs: 1000 }))
    assert.deepEqual(recordLines(segments), ['1 b=1'])
    assert.deepEqual([result.recordsDropped, result.tombstonesDropped], [2, 1])
  })

  it('go with what they hide when the map holds a single key', () => {
    const many = logOf(['a=1', 'x=1', 'y=1'], ['z=1', 'a=2'], ['w=1', 'a=-', 'v=1'])
    const { segments } = compact(requestOf(many, { mapBytes: 1 }))
    assert.deepEqual(recordLines(segments), ['1 x=1', '2 y=1', '3 z=1', '5 w=1', '7 v=1'])
  })

  it('go in a pass of their own, when nothing else is to drop', () => {
    const { result, segments } = compact(requestOf(logOf(['a=-'])))
    assert.equal(result.changed, true)
    assert.deepEqual(recordLines(segments), [])
  })

  it('a newer value takes a tombstone away whatever its age', () => {
    const { segments } = compact(requestOf(logOf(['a=-', 'a=1']), { tombstoneRetentionMs: 2n ** 64n - 1n }))
    assert.deepEqual(recordLines(segments), ['1 a=1'])
  })

  it('an empty value that is not null is none', () => {
    const { result } = compact(requestOf(logOf(['a=']), { tombstoneRetentionMs: 0 }))
    assert.equal(result.changed, false)
  })

  it('stay for ever under a retention of 2^64 − 1, and where older segments are not part of the pass', () => {
    for (const tombstoneRetentionMs of [2n ** 64n - 1n, null]) {
      const nowMs = Number.MAX_SAFE_INTEGER
      assert.equal(compact(requestOf(logOf(['a=-']), { tombstoneRetentionMs, nowMs })).result.changed, false)
    }
  })

  it('a timestamp far in the past does not hurry one, a far future does not hold one up', () => {
    for (const timestampMs of [-1e12, 0, 1e15]) {
      const segment = sourceOf({
        baseOffset: 0,
        nextOffset: 1,
        firstReceiveMs: 5000,
        receiveMsMax: 6000,
        batches: [{ baseOffset: 0, lastOffset: 0, records: [{ offset: 0, timestampMs, key: 'a', value: null }] }]
      })
      assert.equal(compact(requestOf([segment], { nowMs: 7000 })).result.changed, false)
      assert.equal(compact(requestOf([segment], { nowMs: 7001 })).result.changed, true)
    }
  })
})

describe('segments after compaction', () => {
  it('a pass that would drop nothing changes nothing, though segments could be merged', () => {
    const log = logOf(['a=1'], ['b=1'], ['-=1'])
    const { result, segments, written } = compact(requestOf(log))
    assert.deepEqual([result.changed, result.bytesWritten, written.length], [false, 0, 0])
    assert.deepEqual(segments, log)
  })

  it('neighbours are merged up to segment_bytes, and the range stays whole', () => {
    const log = logOf(['a=1', 'b=1', 'b=2'], ['c=1', 'd=1'], ['a=2', 'c=2', 'e=1'])
    const oneRecord = batchBytes({
      baseOffset: 0,
      lastOffset: 0,
      records: [{ offset: 0, timestampMs: 1, key: 'a', value: '1' }]
    })
    const { result } = compact(requestOf(log, { segmentBytes: oneRecord.length * 3 }))
    assert.deepEqual(
      result.segments.map(({ replaces, baseOffset, nextOffset, bytes }) => ({
        replaces,
        baseOffset,
        nextOffset,
        bytes
      })),
      [
        { replaces: [0, 1], baseOffset: 0, nextOffset: 5, bytes: oneRecord.length * 2 },
        { replaces: [2, 2], baseOffset: 5, nextOffset: 8, bytes: oneRecord.length * 3 }
      ]
    )
    assert.deepEqual(
      result.segments.map(segment => segment.isUnchanged),
      [false, true]
    )
  })

  it('a range whose records are all gone stays as an empty segment, so offsets have no hole', () => {
    const { result, written } = compact(requestOf(logOf(['a=-', 'b=-'])))
    assert.deepEqual(result.segments, [
      { replaces: [0, 0], isUnchanged: false, baseOffset: 0, nextOffset: 2, bytes: 0 }
    ])
    assert.deepEqual(written.flatMap(readSegment), [])
  })

  it('no segments at all are no work', () => {
    const { result } = compact(requestOf([]))
    assert.deepEqual([result.changed, result.segments.length, result.bytesRead], [false, 0, 0])
  })

  it('merge even when there are very many small ones', () => {
    const count = 200_000
    const record = batchBytes({
      baseOffset: 0,
      lastOffset: 0,
      records: [{ offset: 0, timestampMs: 1, key: 'a', value: '' }]
    })
    const log = Array.from({ length: count }, (_, offset): SourceSegment => {
      const bytes = Buffer.from(record)
      bytes.writeBigInt64BE(BigInt(offset), 0)
      const batch: SourceBatch = { bytes, start: 0, end: bytes.length }
      const range = { baseOffset: offset, nextOffset: offset + 1, firstReceiveMs: offset, receiveMsMax: offset }
      return { ...range, bytes: bytes.length, batches: () => [batch] }
    })
    const output = new MemoryOutput()
    const run = compactSegments(requestOf(log), output)
    let step = run.next()
    while (step.done !== true) step = run.next()
    assert.equal(step.value.recordsDropped, count - 1)
    assert.deepEqual(recordLines(output.segments), [`${count - 1} a=`])
    assert.deepEqual([output.segments[0]?.firstReceiveMs, output.segments[0]?.receiveMsMax], [0, count - 1])
  })
})
