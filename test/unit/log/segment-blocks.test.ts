import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { crc32c } from '../../../src/base/crc32c.ts'
import { BLOCK_ENTRY_BYTES, BlockBuilder, BlockTable, TIMESTAMP_NONE } from '../../../src/log/segment-blocks.ts'
import { BLOCK_BYTES_MIN } from '../../../src/model/topic.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import {
  addPieces,
  batchOf,
  blocksBytes,
  blocksOf,
  sampleKinds,
  sampleSegment,
  segmentOf,
  type SampleBatch,
  type SampleSegment
} from '../../support/log-segments.ts'

const FILE = 'test/unit/log/segment-blocks.test.ts'
const ROUNDS = 40
const record = (offsetDelta: number, bytes: number, timestampDelta = 0) => ({
  offsetDelta,
  timestampDelta,
  key: null,
  value: Buffer.alloc(bytes, 0x61)
})

/** Random segments of every kind, each with its blocks. */
function eachSample(visit: (segment: SampleSegment, blocks: BlockTable, dice: Dice, message: string) => void): void {
  const seed = chosenSeed()
  const dice = diceOf(seed)
  for (let round = 0; round < ROUNDS; round++) {
    const kind = dice.pick(sampleKinds)
    const segment = sampleSegment(dice, kind, dice.below(60_000))
    visit(segment, blocksOf(segment, dice), dice, `${kind}, round ${round}, ${replayLine(seed, FILE)}`)
  }
}

/** What a block says, worked out from the batches themselves. */
interface Block {
  position: number
  bytes: number
  firstOffset: number
  firstBatchLastOffset: number
  timestampMax: number
  timestampMaxOffset: number
}

function newBlock(batch: SampleBatch): Block {
  return {
    position: batch.position,
    bytes: 0,
    firstOffset: batch.baseOffset,
    firstBatchLastOffset: batch.lastOffset,
    timestampMax: TIMESTAMP_NONE,
    timestampMaxOffset: batch.lastOffset
  }
}

function blocksByHand(segment: SampleSegment): Block[] {
  const blocks: Block[] = []
  for (const batch of segment.batches) {
    let block = blocks.at(-1)
    if (block === undefined || block.bytes >= BLOCK_BYTES_MIN) blocks.push((block = newBlock(batch)))
    block.bytes += batch.bytes
    for (const { timestampMs } of batch.records) {
      if (timestampMs <= block.timestampMax) continue
      block.timestampMax = timestampMs
      block.timestampMaxOffset = batch.lastOffset
    }
  }
  return blocks
}

function blockAt(table: BlockTable, i: number): Block {
  return {
    position: table.position(i),
    bytes: table.bytes(i),
    firstOffset: table.firstOffset(i),
    firstBatchLastOffset: table.firstBatchLastOffset(i),
    timestampMax: table.timestampMax(i),
    timestampMaxOffset: table.timestampMaxOffset(i)
  }
}

const allBlocks = (table: BlockTable): Block[] => Array.from({ length: table.count }, (_, i) => blockAt(table, i))

describe('block entries', () => {
  it('have these bytes', () => {
    const segment = segmentOf(1000, [
      { baseOffset: 1002, baseTimestampMs: 5000, records: [record(0, 8), record(3, 8, 77)] },
      { baseOffset: 1010, baseTimestampMs: 5010, records: [record(0, 8)], lastOffsetDelta: 4 }
    ])
    const builder = new BlockBuilder()
    builder.begin(1000)
    builder.add(segment.log, 0, segment.log.length, 4096)
    builder.close()
    const bytes = segment.log.length.toString(16).padStart(8, '0')
    const head = `00001000${bytes}00000002${'00000005'}${'00000000000013d5'}00000005`
    assert.equal(builder.entries.toString('hex', 0, 28), head)
    const whole = Buffer.concat([segment.log, builder.entries.subarray(0, 28)])
    assert.equal(builder.entries.readUInt32BE(28), crc32c(whole, 0, whole.length))
    assert.equal(builder.byteLength, BLOCK_ENTRY_BYTES)
  })

  it('say of every block what its batches say, however the batches came', () => {
    eachSample((segment, blocks, _dice, message) => {
      assert.deepEqual(allBlocks(blocks), blocksByHand(segment), message)
      assert.ok(blocks.isPlausible(segment.nextOffset, segment.log.length), message)
      for (let i = 0; i < blocks.count; i++) assert.ok(blocks.check(i, segment.log, blocks.position(i)), message)
    })
  })

  it('end a block where an extent ends, and count positions of the next one from its start or go on', () => {
    const dice = diceOf(7)
    const [first, second] = [sampleSegment(dice, 'plain', 300), sampleSegment(dice, 'mixed', 9000)]
    const builder = new BlockBuilder()
    builder.begin(first.segmentBase)
    addPieces(builder, first, dice)
    builder.close()
    const middle = builder.byteLength
    builder.begin(second.segmentBase)
    addPieces(builder, second, dice)
    builder.close()
    const { entries } = builder
    assert.deepEqual(allBlocks(new BlockTable(entries.subarray(0, middle), first.segmentBase)), blocksByHand(first))
    assert.deepEqual(allBlocks(new BlockTable(entries.subarray(middle), second.segmentBase)), blocksByHand(second))
    builder.reset()
    assert.equal(builder.count, 0)
    builder.begin(0)
    const bytes = batchOf({ baseOffset: 0, baseTimestampMs: 1, records: [record(0, 1)] })
    builder.add(bytes, 0, bytes.length, 8192)
    builder.close()
    const later = new BlockTable(builder.entries, 0)
    assert.equal(later.position(0), 8192)
    assert.equal(later.isPlausible(1, 8192 + bytes.length, 8192), true)
    assert.equal(later.isPlausible(1, 8192 + bytes.length), false, 'it does not begin at 0')
  })

  it('are all kept when there are many, and none of them comes back after a reset', () => {
    const segment = sampleSegment(diceOf(8), 'plain', 1_500_000)
    const builder = new BlockBuilder()
    for (let round = 0; round < 2; round++) {
      builder.reset()
      builder.begin(segment.segmentBase)
      addPieces(builder, segment, diceOf(round))
      builder.close()
      assert.ok(builder.count > 200)
      assert.deepEqual(allBlocks(new BlockTable(builder.entries, segment.segmentBase)), blocksByHand(segment))
    }
  })

  it('are not made of anything but whole batches in order', () => {
    const bytes = batchOf({ baseOffset: 5, baseTimestampMs: 1, records: [record(0, 50)] })
    const refused: ((builder: BlockBuilder) => void)[] = [
      builder => builder.add(bytes, 0, bytes.length - 1, 0),
      builder => builder.add(bytes, 0, 40, 0),
      builder => builder.add(bytes, 0, bytes.length, 2 ** 31 - bytes.length),
      builder => builder.begin(6),
      builder => builder.add(bytes, 0, bytes.length, bytes.length + 1),
      builder => builder.add(bytes, 0, bytes.length, bytes.length)
    ]
    for (const [i, act] of refused.entries()) {
      const builder = new BlockBuilder()
      builder.begin(5)
      if (i > 2) builder.add(bytes, 0, bytes.length, 0)
      assert.throws(() => act(builder), BugError, `case ${i}`)
    }
    const builder = new BlockBuilder()
    assert.throws(() => builder.add(bytes, 0, bytes.length, 0), BugError, 'not begun')
    builder.begin(6)
    assert.throws(() => builder.add(bytes, 0, bytes.length, 0), BugError, 'below the segment base')
    const far = batchOf({ baseOffset: 2 ** 31, baseTimestampMs: 1, records: [record(0, 50)] })
    builder.begin(0)
    assert.throws(() => builder.add(far, 0, far.length, 0), BugError, 'a relative offset of 32 bits')
  })
})

describe('a search in block entries', () => {
  it('finds the block of every offset, and for one in a gap the block before', () => {
    eachSample((segment, blocks, dice, message) => {
      const wanted = blocksByHand(segment)
      for (let i = 0; i < 50; i++) {
        const offset = segment.segmentBase - 2 + dice.below(segment.nextOffset - segment.segmentBase + 4)
        const found = wanted.findLastIndex(block => block.firstOffset <= offset)
        assert.equal(blocks.find(offset), found, `offset ${offset}, ${message}`)
      }
    })
  })

  it('finds the first block with a record at or after any time, though clocks jump', () => {
    eachSample((segment, blocks, dice, message) => {
      const wanted = blocksByHand(segment)
      for (let i = 0; i < 50; i++) {
        const from = dice.pick(segment.batches).records[0]?.timestampMs ?? 1_700_000_000_000
        const timestampMs = from - 500 + dice.below(1000)
        const found = wanted.findIndex(block => block.timestampMax >= timestampMs)
        assert.equal(blocks.findTime(timestampMs), found, `time ${timestampMs}, ${message}`)
      }
    })
  })

  it('by time does not stop at a batch whose records compaction removed', () => {
    const removed = { baseOffset: 0, baseTimestampMs: 9000, maxTimestampMs: 9000, records: [], lastOffsetDelta: 4 }
    const only = blocksOf(segmentOf(0, [removed]), diceOf(1))
    assert.deepEqual([only.count, only.timestampMax(0), only.findTime(0)], [1, TIMESTAMP_NONE, -1])
    assert.ok(only.isPlausible(5, 61))
    const some = blocksOf(
      segmentOf(0, [removed, { baseOffset: 5, baseTimestampMs: 10, records: [record(0, 9)] }]),
      diceOf(1)
    )
    assert.deepEqual([some.timestampMax(0), some.timestampMaxOffset(0)], [10, 5])
    assert.deepEqual([some.findTime(10), some.findTime(11)], [0, -1])
  })

  it('of no entries finds nothing', () => {
    const empty = new BlockTable(Buffer.alloc(0), 40)
    assert.deepEqual([empty.count, empty.find(50), empty.findTime(0)], [0, -1, -1])
    assert.equal(empty.isPlausible(40, 0), true)
    assert.equal(empty.isPlausible(40, 1), false)
  })
})

describe('damage of a segment', () => {
  it('is noticed in every bit of a block and of its entry', () => {
    const segment = segmentOf(100, [
      { baseOffset: 100, baseTimestampMs: 1, leaderEpoch: 2, records: [record(0, 30), record(1, 5)] },
      { baseOffset: 102, baseTimestampMs: 9, records: [record(0, 400)] }
    ])
    const entries = Buffer.from(blocksBytes(segment))
    const log = Buffer.from(segment.log)
    const check = (): boolean => new BlockTable(entries, 100).check(0, log, 0)
    assert.equal(check(), true)
    for (const target of [entries, log]) {
      for (let bit = 0; bit < target.length * 8; bit++) {
        target[bit >> 3] = (target[bit >> 3] ?? 0) ^ (1 << (bit & 7))
        assert.equal(check(), false, `bit ${bit} of ${target.length} bytes`)
        target[bit >> 3] = (target[bit >> 3] ?? 0) ^ (1 << (bit & 7))
      }
    }
    assert.equal(check(), true)
  })

  it('is noticed in any bit of a larger one: the block is refused, or the entries are', () => {
    eachSample((segment, blocks, dice, message) => {
      if (blocks.count === 0) return
      const entries = Buffer.from(blocksBytes(segment))
      const log = Buffer.from(segment.log)
      for (let i = 0; i < 20; i++) {
        const target = dice.chance(0.5) ? entries : log
        const at = dice.below(target.length)
        const bit = 1 << dice.below(8)
        target[at] = (target[at] ?? 0) ^ bit
        assert.equal(isWhole(segment, entries, log), false, `byte ${at}, bit ${bit}, ${message}`)
        target[at] = (target[at] ?? 0) ^ bit
      }
      assert.equal(isWhole(segment, entries, log), true, message)
    })
  })

  it('is noticed if two entries stand in each other’s place, one is missing, doubled or cut', () => {
    const segment = sampleSegment(diceOf(3), 'plain', 30_000)
    const entries = Buffer.from(blocksBytes(segment))
    const entry = (i: number): Buffer => entries.subarray(i * BLOCK_ENTRY_BYTES, (i + 1) * BLOCK_ENTRY_BYTES)
    const rest = entries.subarray(2 * BLOCK_ENTRY_BYTES)
    const bad = {
      swapped: Buffer.concat([entry(1), entry(0), rest]),
      missing: Buffer.concat([entry(0), rest]),
      doubled: Buffer.concat([entry(0), entry(0), entry(1), rest]),
      cut: entries.subarray(0, entries.length - BLOCK_ENTRY_BYTES),
      torn: entries.subarray(0, entries.length - 1),
      longer: Buffer.concat([entries, Buffer.alloc(BLOCK_ENTRY_BYTES)]),
      zero: Buffer.alloc(entries.length),
      ones: Buffer.alloc(entries.length, 0xff)
    }
    for (const [name, bytes] of Object.entries(bad)) {
      const table = new BlockTable(bytes, segment.segmentBase)
      assert.equal(table.isPlausible(segment.nextOffset, segment.log.length), false, name)
    }
  })

  it('is noticed if the entries are those of other offsets or of another length', () => {
    const segment = sampleSegment(diceOf(4), 'mixed', 30_000)
    const entries = blocksBytes(segment)
    const right = new BlockTable(entries, segment.segmentBase)
    assert.equal(right.isPlausible(segment.nextOffset, segment.log.length), true)
    assert.equal(right.isPlausible(segment.nextOffset + 5, segment.log.length), true, 'a gap at the end')
    assert.equal(right.isPlausible(right.firstOffset(right.count - 1), segment.log.length), false)
    assert.equal(right.isPlausible(segment.nextOffset, segment.log.length + 1), false)
    assert.equal(right.isPlausible(segment.nextOffset, segment.log.length - 1), false)
    const shifted = new BlockTable(entries, segment.segmentBase + 1)
    assert.equal(shifted.check(0, segment.log, 0), false)
  })

  it('does not make a check read outside what it was given', () => {
    const segment = sampleSegment(diceOf(5), 'plain', 6000)
    const blocks = new BlockTable(blocksBytes(segment), segment.segmentBase)
    assert.equal(blocks.check(0, segment.log.subarray(0, blocks.bytes(0) - 1), 0), false)
    assert.equal(new BlockTable(Buffer.alloc(32), 0).check(0, Buffer.alloc(0), 0), false)
    assert.equal(new BlockTable(Buffer.alloc(32, 0xff), 0).check(0, segment.log, 0), false)
  })
})

function isWhole(segment: SampleSegment, entries: Buffer, log: Buffer): boolean {
  const table = new BlockTable(entries, segment.segmentBase)
  if (!table.isPlausible(segment.nextOffset, log.length)) return false
  for (let i = 0; i < table.count; i++) if (!table.check(i, log, table.position(i))) return false
  return true
}
