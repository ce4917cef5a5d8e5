/** One read over gaps: what compaction left of the segments, segments without any record, and the end of the log. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { readFormats } from '../../../../src/model/requests.ts'
import { AnswerWriter } from '../../../../workers/shard/answers.ts'
import { ReadTask, stepOutcomes } from '../../../../workers/shard/read-task.ts'
import { append, openLog, partitionOf, textRecord } from '../../../support/log-harness.ts'
import { chosenSeed, diceOf, replayLine } from '../../../support/log-random.ts'
import { sampleSegment, segmentOf, type BatchParts, type SampleSegment } from '../../../support/log-segments.ts'
import { putSettled } from '../../../support/log-settled.ts'

const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }

interface Answer {
  readonly offsets: number[]
  readonly next: number
  readonly end: number
}

interface Wanted {
  readonly offset?: number
  readonly maxRecords?: number
  readonly maxBytes?: number
}

function consume(log: ShardLog, { offset = 0, maxRecords = 100, maxBytes = 1024 * 1024 }: Wanted = {}): Answer {
  const writer = new AnswerWriter()
  const partition = partitionOf(log, 1, 0)
  const reader = log.read(partition, offset)
  const format = readFormats.jsonBase64
  const wanted = {
    requestId: 1,
    format,
    partition: 0,
    offset: BigInt(offset),
    isFromStart: false,
    maxRecords,
    maxBytes
  }
  const task = new ReadTask(wanted, partition, reader, writer)
  // A small budget: the read is spread over many turns.
  for (let outcome = task.step(1000); outcome !== stepOutcomes.done; outcome = task.step(1000)) {
    assert.equal(outcome, stepOutcomes.more)
  }
  const answer = JSON.parse(writer.buffer.toString('latin1', 0, writer.length)) as {
    records: { offset: number }[]
    next_offset: number
    high_watermark: number
  }
  return {
    offsets: answer.records.map(record => record.offset),
    next: answer.next_offset,
    end: answer.high_watermark
  }
}

/** A batch that reaches from base to last, with records at these offsets. */
function batch(base: number, last: number, offsets: readonly number[]): BatchParts {
  const records = offsets.map(offset => ({ offsetDelta: offset - base, key: null, value: Buffer.from(`${offset}`) }))
  return { baseOffset: base, baseTimestampMs: 1, records, lastOffsetDelta: last - base, maxTimestampMs: 1 }
}

function logOf(segments: readonly SampleSegment[], nextOffset: number, tail: readonly string[] = []): ShardLog {
  const disk = new SimulatedDisk()
  const log = openLog(disk)
  putSettled(disk, log, { handle: 1, segments, nextOffset })
  log.table.open(topic)
  for (const value of tail) append(log, { firstHandle: 1, records: [textRecord(0, null, value)] })
  return log
}

describe('a read that meets a gap', () => {
  const empty = (base: number): SampleSegment => segmentOf(base, [])

  it('goes on at the end of the log when nothing is left behind its offset, so that a poller never sticks', () => {
    const shapes: [string, readonly SampleSegment[]][] = [
      ['batches are missing', [segmentOf(0, [batch(0, 9, [0, 3])])]],
      ['a batch lost its records', [segmentOf(0, [batch(0, 9, [0, 3]), batch(10, 99, [])])]],
      ['whole segments are empty', [segmentOf(0, [batch(0, 9, [0, 3])]), empty(40), empty(70)]]
    ]
    for (const [shape, segments] of shapes) {
      const log = logOf(segments, 100)
      assert.deepEqual(consume(log), { offsets: [0, 3], next: 100, end: 100 }, shape)
      for (const offset of [4, 10, 55, 99]) {
        assert.deepEqual(consume(log, { offset }), { offsets: [], next: 100, end: 100 }, `${shape}, from ${offset}`)
      }
      assert.deepEqual(consume(log, { offset: 100 }), { offsets: [], next: 100, end: 100 }, shape)
      assert.deepEqual(consume(log, { offset: 250 }), { offsets: [], next: 250, end: 100 }, shape)
    }
  })

  it('gives at least one record if there is one, however many segments later', () => {
    const segments = [segmentOf(0, [batch(0, 4, [])]), empty(20), empty(40), segmentOf(60, [batch(65, 70, [68])])]
    const log = logOf(segments, 90)
    for (const offset of [0, 7, 20, 59, 64, 68]) {
      assert.deepEqual(consume(log, { offset, maxRecords: 1, maxBytes: 1 }).offsets, [68], `from ${offset}`)
    }
    assert.deepEqual(consume(log, { offset: 69 }), { offsets: [], next: 90, end: 90 })
  })

  it('gives the first record in the slots when all that was settled before it is gone', () => {
    const log = logOf([segmentOf(0, [batch(0, 9, [2])]), empty(30)], 50, ['a', 'b'])
    assert.deepEqual(consume(log, { maxRecords: 2 }), { offsets: [2, 50], next: 51, end: 52 })
    assert.deepEqual(consume(log, { offset: 3, maxBytes: 1 }), { offsets: [50], next: 51, end: 52 })
  })

  it('finds every record that is left, from every offset, in answers of any size', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    const segments: SampleSegment[] = []
    let base = 0
    for (let i = 0; i < 6; i++) {
      const sample = sampleSegment(dice, 'compacted', 3000)
      const moved = sample.batches.map(({ baseOffset, lastOffset, records }) => {
        const start = base + baseOffset - sample.segmentBase
        return batch(
          start,
          start + lastOffset - baseOffset,
          records.map(record => start + record.offset - baseOffset)
        )
      })
      segments.push(dice.chance(0.3) ? empty(base) : segmentOf(base, moved))
      base += sample.nextOffset - sample.segmentBase + dice.below(100)
    }
    const log = logOf(segments, base, ['x', 'y', 'z'])
    const all = segments.flatMap(segment =>
      segment.batches.flatMap(({ records }) => records.map(({ offset }) => offset))
    )
    all.push(base, base + 1, base + 2)
    for (let round = 0; round < 30; round++) {
      const from = dice.below(base + 4)
      const seen: number[] = []
      for (let offset = from; offset < base + 3;) {
        const { offsets, next } = consume(log, { offset, maxRecords: 1 + dice.below(dice.pick([1, 20, 500])) })
        assert.ok(next > offset, `stuck at ${offset}; ${replayLine(seed, 'test/unit/workers/shard/read-task.test.ts')}`)
        seen.push(...offsets)
        offset = next
      }
      const expected = all.filter(offset => offset >= from)
      assert.deepEqual(seen, expected, replayLine(seed, 'test/unit/workers/shard/read-task.test.ts'))
    }
  })
})
