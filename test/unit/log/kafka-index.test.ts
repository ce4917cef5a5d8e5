import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { checkOffsetIndex, checkTimeIndex, encodeOffsetIndex, encodeTimeIndex } from '../../../src/log/kafka-index.ts'
import type { BlockTable } from '../../../src/log/segment-blocks.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { blocksOf, sampleKinds, sampleSegment, segmentOf, type SampleSegment } from '../../support/log-segments.ts'

const FILE = 'test/unit/log/kafka-index.test.ts'
const ROUNDS = 40
const KIB = 1024

interface OffsetEntry {
  readonly offset: number
  readonly position: number
}

interface TimeEntry {
  readonly timestampMs: number
  readonly offset: number
}

/** As Kafka reads it: signed numbers. */
function offsetEntries(bytes: Buffer, segmentBase: number): OffsetEntry[] {
  assert.equal(bytes.length % 8, 0)
  return Array.from({ length: bytes.length / 8 }, (_, i) => ({
    offset: segmentBase + bytes.readInt32BE(i * 8),
    position: bytes.readInt32BE(i * 8 + 4)
  }))
}

function timeEntries(bytes: Buffer, segmentBase: number): TimeEntry[] {
  assert.equal(bytes.length % 12, 0)
  return Array.from({ length: bytes.length / 12 }, (_, i) => ({
    timestampMs: Number(bytes.readBigInt64BE(i * 12)),
    offset: segmentBase + bytes.readInt32BE(i * 12 + 8)
  }))
}

function eachSample(visit: (segment: SampleSegment, blocks: BlockTable, dice: Dice, message: string) => void): void {
  const seed = chosenSeed()
  const dice = diceOf(seed)
  for (let round = 0; round < ROUNDS; round++) {
    const kind = dice.pick(sampleKinds)
    const segment = sampleSegment(dice, kind, dice.below(80_000))
    visit(segment, blocksOf(segment, dice), dice, `${kind}, round ${round}, ${replayLine(seed, FILE)}`)
  }
}

/** The greatest timestamp that a record of the batch with that last offset has. */
function timestampOf(segment: SampleSegment, lastOffset: number): number | undefined {
  const batch = segment.batches.find(other => other.lastOffset === lastOffset)
  return batch === undefined ? undefined : Math.max(...batch.records.map(record => record.timestampMs))
}

/** Batches of about 1 KiB with these timestamps, two offsets each. */
function segmentAt(segmentBase: number, timestampsMs: readonly number[]): SampleSegment {
  const value = Buffer.alloc(KIB / 2 - 50)
  return segmentOf(
    segmentBase,
    timestampsMs.map((baseTimestampMs, i) => ({
      baseOffset: segmentBase + 2 * i,
      baseTimestampMs,
      records: [0, 1].map(offsetDelta => ({ offsetDelta, key: null, value }))
    }))
  )
}

describe('the offset index', () => {
  it('has these bytes', () => {
    const segment = segmentAt(
      1000,
      Array.from({ length: 12 }, (_, i) => i)
    )
    const bytes = segment.batches[0]?.bytes ?? 0
    assert.ok(bytes < KIB && 5 * bytes > 4 * KIB, 'five batches make a block')
    const position = (count: number): string => (count * bytes).toString(16).padStart(8, '0')
    const index = encodeOffsetIndex(blocksOf(segment, diceOf(1)))
    assert.equal(index.toString('hex'), `0000000b${position(5)}00000015${position(10)}`)
  })

  it('names last offset and position of whole batches, none for the first, more than 4 KiB apart', () => {
    eachSample((segment, blocks, _dice, message) => {
      const entries = offsetEntries(encodeOffsetIndex(blocks), segment.segmentBase)
      let before: OffsetEntry = { offset: segment.segmentBase - 1, position: 0 }
      for (const entry of entries) {
        const batch = segment.batches.find(other => other.position === entry.position)
        assert.equal(batch?.lastOffset, entry.offset, message)
        assert.ok(entry.position - before.position > 4 * KIB, message)
        assert.ok(entry.offset > before.offset, message)
        before = entry
      }
    })
  })

  it('leaves no stretch of the log without entries: at most one interval and one batch on either side', () => {
    eachSample((segment, blocks, _dice, message) => {
      const largest = Math.max(0, ...segment.batches.map(batch => batch.bytes))
      const positions = offsetEntries(encodeOffsetIndex(blocks), 0).map(entry => entry.position)
      const stops = [0, ...positions, segment.log.length]
      for (let i = 1; i < stops.length; i++) {
        assert.ok((stops[i] ?? 0) - (stops[i - 1] ?? 0) <= 2 * (4 * KIB + largest), message)
      }
    })
  })

  it('stays sparse if many small extents made many small blocks', () => {
    const segment = segmentAt(
      0,
      Array.from({ length: 40 }, (_, i) => i)
    )
    const single = blocksOf(segment, diceOf(1), { isOnePerBatch: true })
    assert.equal(single.count, 40)
    const entries = offsetEntries(encodeOffsetIndex(single), 0)
    assert.equal(entries.length, 7, 'one for every fifth or so')
    for (let i = 1; i < entries.length; i++) {
      assert.ok((entries[i]?.position ?? 0) - (entries[i - 1]?.position ?? 0) > 4 * KIB)
    }
  })
})

describe('the time index', () => {
  it('has these bytes', () => {
    const segment = segmentAt(1000, [7, 9, 9, 1, 1, 4, 4, 4, 4, 4, 300, 5, 300])
    const index = encodeTimeIndex(blocksOf(segment, diceOf(1)))
    assert.equal(index.toString('hex'), '000000000000000900000003' + '000000000000012c00000015')
  })

  it('grows strictly in both columns and ends with the greatest timestamp, where it first stands', () => {
    eachSample((segment, blocks, _dice, message) => {
      const entries = timeEntries(encodeTimeIndex(blocks), segment.segmentBase)
      for (const [i, entry] of entries.entries()) {
        assert.equal(timestampOf(segment, entry.offset), entry.timestampMs, message)
        const before = entries[i - 1]
        if (before !== undefined) assert.ok(entry.timestampMs > before.timestampMs, message)
        if (before !== undefined) assert.ok(entry.offset > before.offset, message)
      }
      const timestamps = segment.batches.map(batch => timestampOf(segment, batch.lastOffset) ?? -Infinity)
      const greatest = Math.max(-Infinity, ...timestamps)
      const first = segment.batches[timestamps.indexOf(greatest)]
      const wanted = greatest === -Infinity ? undefined : { timestampMs: greatest, offset: first?.lastOffset }
      assert.deepEqual(entries.at(-1), wanted, message)
    })
  })

  it('leads a search in Kafka’s way to the first record at or after a time', () => {
    eachSample((segment, blocks, dice, message) => {
      const times = timeEntries(encodeTimeIndex(blocks), segment.segmentBase)
      const offsets = offsetEntries(encodeOffsetIndex(blocks), segment.segmentBase)
      const records = segment.batches.flatMap(batch => batch.records)
      for (let i = 0; i < 30 && records.length > 0; i++) {
        const timestampMs = dice.pick(records).timestampMs + dice.below(3) - 1
        const from = times.findLast(entry => entry.timestampMs <= timestampMs)?.offset ?? segment.segmentBase
        const position = offsets.findLast(entry => entry.offset <= from)?.position ?? 0
        const scanned = segment.batches.filter(batch => batch.position >= position).flatMap(batch => batch.records)
        const found = scanned.find(record => record.timestampMs >= timestampMs)
        const wanted = records.find(record => record.timestampMs >= timestampMs)
        assert.equal(found?.offset, wanted?.offset, `time ${timestampMs}, ${message}`)
      }
    })
  })

  it('is empty where no record has a time', () => {
    assert.equal(encodeTimeIndex(blocksOf(segmentAt(0, [-1, -1, -1, -1, -1, -1, -1]), diceOf(1))).length, 0)
    assert.equal(encodeTimeIndex(blocksOf(segmentAt(0, []), diceOf(1))).length, 0)
    const one = timeEntries(encodeTimeIndex(blocksOf(segmentAt(0, [-5, 0]), diceOf(1))), 0)
    assert.deepEqual(one, [{ timestampMs: 0, offset: 3 }])
  })
})

describe('index files of a segment', () => {
  it('are right exactly if they are what the blocks make: any bit, any missing or further entry is noticed', () => {
    const segment = sampleSegment(diceOf(11), 'mixed', 30 * KIB)
    const blocks = blocksOf(segment, diceOf(12))
    const checks = [
      { bytes: encodeOffsetIndex(blocks), check: checkOffsetIndex },
      { bytes: encodeTimeIndex(blocks), check: checkTimeIndex }
    ]
    for (const { bytes, check } of checks) {
      assert.ok(bytes.length > 24)
      assert.equal(check(bytes, blocks), true)
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const flipped = Buffer.from(bytes)
        flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        assert.equal(check(flipped, blocks), false, `bit ${bit}`)
      }
      assert.equal(check(bytes.subarray(0, bytes.length - 1), blocks), false)
      assert.equal(check(Buffer.concat([bytes, Buffer.alloc(12)]), blocks), false)
      assert.equal(check(Buffer.alloc(0), blocks), false)
    }
  })
})
