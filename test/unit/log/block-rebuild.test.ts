import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { rebuildBlocks, type ReadLog, type RebuildEnd, type RebuildRange } from '../../../src/log/block-rebuild.ts'
import { BlockBuilder, BlockTable } from '../../../src/log/segment-blocks.ts'
import { batchStatus } from '../../../src/wire/batch/layout.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { batchOf, blocksBytes, sampleKinds, sampleSegment, type SampleSegment } from '../../support/log-segments.ts'

const FILE = 'test/unit/log/block-rebuild.test.ts'
const ROUNDS = 40
const record = (offsetDelta: number, bytes: number) => ({ offsetDelta, key: null, value: Buffer.alloc(bytes, 0x61) })

function eachSample(visit: (segment: SampleSegment, dice: Dice, message: string) => void): void {
  const seed = chosenSeed()
  const dice = diceOf(seed)
  for (let round = 0; round < ROUNDS; round++) {
    const kind = dice.pick(sampleKinds)
    visit(sampleSegment(dice, kind, 1 + dice.below(60_000)), dice, `${kind}, round ${round}, ${replayLine(seed, FILE)}`)
  }
}

describe('a rebuild of block entries', () => {
  const readerOf =
    (log: Buffer): ReadLog =>
    (target, length, position) =>
      log.copy(target, 0, position, Math.min(log.length, position + length))

  function rebuild(
    log: Buffer,
    range: Partial<RebuildRange> & { segmentBase: number }
  ): RebuildEnd & { entries: Buffer } {
    const builder = new BlockBuilder()
    const whole = { startPosition: 0, endPosition: log.length, batchBytesMax: 2 ** 24, ...range }
    const steps = rebuildBlocks(readerOf(log), whole, builder)
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    return { ...step.value, entries: builder.entries }
  }

  it('gives the entries that were written', () => {
    eachSample((segment, _dice, message) => {
      const { entries, ...end } = rebuild(segment.log, segment)
      assert.ok(entries.equals(blocksBytes(segment)), message)
      const wanted = { endPosition: segment.log.length, nextOffset: segment.nextOffset, status: batchStatus.ok }
      assert.deepEqual(end, wanted, message)
    })
  })

  it('stops at the first batch that is not whole, and keeps what lies before', () => {
    eachSample((segment, dice, message) => {
      const bad = dice.below(segment.batches.length)
      const batch = segment.batches[bad]
      assert.ok(batch !== undefined)
      const log = Buffer.from(segment.log)
      // Any bit from the length on, but those of the leader epoch, which are not in a batch's checksum (in its block's they are).
      const within = dice.chance(0.2) ? 8 + dice.below(4) : 16 + dice.below(batch.bytes - 16)
      const at = batch.position + within
      log[at] = (log[at] ?? 0) ^ (0x80 >> dice.below(8))
      const before = segmentBefore(segment, bad)
      const cut = segment.log.subarray(0, batch.position + 1 + dice.below(batch.bytes - 1))
      for (const [what, damaged] of Object.entries({ flipped: log, cut })) {
        const end = rebuild(damaged, segment)
        const where = `${what}, batch ${bad}, byte ${within}, ${message}`
        assert.deepEqual([end.endPosition, end.nextOffset], [batch.position, before.nextOffset], where)
        assert.notEqual(end.status, batchStatus.ok, where)
        assert.ok(end.entries.equals(blocksBytes(before)), where)
      }
    })
  })

  it('says what is wrong', () => {
    const whole = (baseOffset: number): Buffer =>
      batchOf({ baseOffset, baseTimestampMs: 1, records: [record(0, 10), record(1, 10)] })
    const cases: [string, Buffer, Partial<RebuildRange>, number][] = [
      ['zeros behind the end', Buffer.concat([whole(0), Buffer.alloc(4096)]), {}, batchStatus.badMagic],
      ['a cut batch', Buffer.concat([whole(0), whole(2).subarray(0, 70)]), {}, batchStatus.truncated],
      ['a cut header', Buffer.concat([whole(0), whole(2).subarray(0, 11)]), {}, batchStatus.truncated],
      ['a shorter file', whole(0), { endPosition: 4096 }, batchStatus.truncated],
      ['offsets that go back', Buffer.concat([whole(0), whole(1)]), {}, batchStatus.badHeader],
      ['offsets out of reach', Buffer.concat([whole(0), whole(2 ** 31)]), {}, batchStatus.badHeader],
      [
        'an offset beyond 2^53',
        Buffer.concat([whole(0), Buffer.alloc(8, 0x7f), whole(2).subarray(8)]),
        {},
        batchStatus.badHeader
      ]
    ]
    for (const [name, log, range, status] of cases) {
      const end = rebuild(log, { segmentBase: 0, ...range })
      assert.deepEqual([end.status, end.endPosition, end.nextOffset], [status, whole(0).length, 2], name)
    }
  })

  it('reads batches larger than a piece, but spends no memory on a length that cannot be', () => {
    const large = (baseOffset: number, bytes: number): Buffer =>
      batchOf({ baseOffset, baseTimestampMs: 1, records: [record(0, bytes)] })
    const log = Buffer.concat([
      large(0, 900_000),
      large(1, 3_000_000),
      large(2, 5),
      large(3, 2_000_000),
      large(4, 700_000)
    ])
    const all = rebuild(log, { segmentBase: 0 })
    assert.deepEqual([all.status, all.endPosition, all.nextOffset], [batchStatus.ok, log.length, 5])
    const bounded = rebuild(log, { segmentBase: 0, batchBytesMax: 2_500_000 })
    assert.deepEqual([bounded.status, bounded.nextOffset], [batchStatus.badLength, 1])
    const lie = Buffer.from(log)
    lie.writeInt32BE(2 ** 31 - 1 - 12, large(0, 900_000).length + 8)
    const beyond = rebuild(lie, { segmentBase: 0, batchBytesMax: 2 ** 31 })
    assert.deepEqual([beyond.status, beyond.nextOffset], [batchStatus.truncated, 1])
  })

  it('of a later part counts positions from there', () => {
    const segment = sampleSegment(diceOf(6), 'mixed', 20_000)
    const from = segment.batches[3]
    assert.ok(from !== undefined)
    const { entries, status } = rebuild(segment.log, { segmentBase: segment.segmentBase, startPosition: from.position })
    const table = new BlockTable(entries, segment.segmentBase)
    assert.equal(status, batchStatus.ok)
    assert.equal(table.firstOffset(0), from.baseOffset)
    assert.equal(table.isPlausible(segment.nextOffset, segment.log.length, from.position), true)
  })
})

/** The same segment up to batch `end`, exclusive. */
function segmentBefore(segment: SampleSegment, end: number): SampleSegment {
  const batches = segment.batches.slice(0, end)
  const last = batches.at(-1)
  const bytes = last === undefined ? 0 : last.position + last.bytes
  const nextOffset = (last?.lastOffset ?? segment.segmentBase - 1) + 1
  return { segmentBase: segment.segmentBase, nextOffset, log: segment.log.subarray(0, bytes), batches }
}
