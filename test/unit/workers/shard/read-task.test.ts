/**
 * One read over gaps: what compaction left of the segments, segments without any record, what retention dropped and what
 * is damaged, and the end of the log.
 */
import assert from 'node:assert/strict'
import { ChunkTaker, createLentChunks } from '../../../../src/ring/lent-chunks.ts'
import { BatchAnswer } from '../../../../workers/shard/batch-answer.ts'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { readFormats, type ReadFormat } from '../../../../src/model/requests.ts'
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
  readonly skipped?: unknown
}

interface Wanted {
  readonly offset?: number
  readonly isFromStart?: boolean
  readonly maxRecords?: number
  readonly maxBytes?: number
  readonly format?: ReadFormat
}

function taskOf(log: ShardLog, writer: AnswerWriter, wanted: Wanted): ReadTask {
  const { offset = 0, isFromStart = false, maxRecords = 100, maxBytes = 1024 * 1024 } = wanted
  const partition = partitionOf(log, 1, 0)
  const format = wanted.format ?? readFormats.jsonBase64
  const read = { requestId: 1, format, partition: 0, offset: BigInt(offset), isFromStart, maxRecords, maxBytes }
  const answers = { records: writer, batches: new BatchAnswer(new ChunkTaker(createLentChunks(0))) }
  return new ReadTask(read, partition, log.read(partition, offset), answers, 1024 * 1024)
}

function consume(log: ShardLog, wanted: Wanted = {}, betweenTurns: () => void = () => {}): Answer {
  const writer = new AnswerWriter()
  const task = taskOf(log, writer, wanted)
  // A small budget: the read is spread over many turns.
  for (let outcome = task.step(1000); outcome !== stepOutcomes.done; outcome = task.step(1000)) {
    assert.equal(outcome, stepOutcomes.more)
    betweenTurns()
  }
  return answerIn(writer)
}

function answerIn(writer: AnswerWriter): Answer {
  const answer = JSON.parse(writer.buffer.toString('latin1', 0, writer.length)) as {
    records: { offset: number }[]
    next_offset: number
    high_watermark: number
    skipped?: unknown
  }
  return {
    offsets: answer.records.map(record => record.offset),
    next: answer.next_offset,
    end: answer.high_watermark,
    ...(answer.skipped === undefined ? {} : { skipped: answer.skipped })
  }
}

/** A batch that reaches from base to last, with records at these offsets. */
function batch(base: number, last: number, offsets: readonly number[]): BatchParts {
  const records = offsets.map(offset => ({ offsetDelta: offset - base, key: null, value: Buffer.from(`${offset}`) }))
  return { baseOffset: base, baseTimestampMs: 1, records, lastOffsetDelta: last - base, maxTimestampMs: 1 }
}

function logOf(
  segments: readonly SampleSegment[],
  nextOffset: number,
  tail: readonly string[] = [],
  startOffset?: number
): ShardLog {
  const disk = new SimulatedDisk()
  const log = openLog(disk)
  putSettled(disk, log, { handle: 1, segments, nextOffset, ...(startOffset === undefined ? {} : { startOffset }) })
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

describe('a read whose records are gone', () => {
  /** Batches of five records from 0 to 99. */
  const twenty = Array.from({ length: 20 }, (_, i) => {
    const offsets = Array.from({ length: 5 }, (_, j) => 5 * i + j)
    return batch(5 * i, 5 * i + 4, offsets)
  })
  const whole = segmentOf(0, twenty)
  const damage = (log: ShardLog, ...ranges: readonly (readonly [number, number])[]): void => {
    for (const [firstOffset, nextOffset] of ranges) partitionOf(log, 1, 0).damaged.push({ firstOffset, nextOffset })
  }

  it('below the start of the log begins there and says so, unless the start is what it asked for', () => {
    const log = logOf([whole], 100, [], 90)
    const offsets = [90, 91, 92, 93, 94, 95, 96, 97, 98, 99]
    const rest = { offsets, next: 100, end: 100 }
    assert.deepEqual(consume(log, { offset: 3 }), { ...rest, skipped: { requested: 3, earliest: 90, latest: 100 } })
    assert.deepEqual(consume(log, { offset: 90 }), rest)
    assert.deepEqual(consume(log, { isFromStart: true }), rest)
  })

  it('in a damaged range goes on behind it and says so, however many ranges follow one another', () => {
    const log = logOf([whole], 100)
    damage(log, [20, 25], [25, 60], [60, 97])
    const skipped = { requested: 22, earliest: 97, latest: 100 }
    assert.deepEqual(consume(log, { offset: 22 }), { offsets: [97, 98, 99], next: 100, end: 100, skipped })
    damage(log, [97, 100])
    const nothing = { offsets: [], next: 100, end: 100, skipped: { requested: 50, earliest: 100, latest: 100 } }
    assert.deepEqual(consume(log, { offset: 50 }), nothing)
  })

  it('below the start, where the log begins with damage, says both in one', () => {
    const log = logOf([whole], 100, [], 90)
    damage(log, [90, 98])
    const rest = { offsets: [98, 99], next: 100, end: 100 }
    assert.deepEqual(consume(log, { offset: 3 }), { ...rest, skipped: { requested: 3, earliest: 98, latest: 100 } })
    const skipped = { requested: 90, earliest: 98, latest: 100 }
    assert.deepEqual(consume(log, { isFromStart: true }), { ...rest, skipped })
  })

  it('ends before a damaged range that follows records: the next one is told', () => {
    const log = logOf([whole], 100)
    damage(log, [10, 95])
    const before = consume(log, { offset: 7 })
    assert.deepEqual(before, { offsets: [7, 8, 9], next: 10, end: 100 })
    const skipped = { requested: 10, earliest: 95, latest: 100 }
    assert.deepEqual(consume(log, { offset: before.next }), {
      offsets: [95, 96, 97, 98, 99],
      next: 100,
      end: 100,
      skipped
    })
  })

  it('in a batch that cannot be decoded does the same, and says so to the operator once', () => {
    const log = logOf(
      [segmentOf(0, [batch(0, 1, [0, 1]), { ...batch(2, 8, [2, 8]), isUndecodable: true }, batch(9, 9, [9])])],
      10
    )
    assert.deepEqual(consume(log), { offsets: [0, 1], next: 2, end: 10 })
    const writer = new AnswerWriter()
    const task = taskOf(log, writer, { offset: 3 })
    while (task.step(1000) === stepOutcomes.more);
    assert.deepEqual(answerIn(writer), {
      offsets: [9],
      next: 10,
      end: 10,
      skipped: { requested: 3, earliest: 9, latest: 10 }
    })
    assert.deepEqual([task.damagedFirst, task.damagedLast, task.metDamagedBytes], [2, 8, false])
  })

  it('over ES01 is refused, with the range', () => {
    const log = logOf([whole], 100)
    damage(log, [10, 95])
    const task = taskOf(log, new AnswerWriter(), { offset: 12, format: readFormats.es01 })
    assert.equal(task.step(1000), stepOutcomes.damaged)
    assert.deepEqual([task.damagedFirst, task.damagedLast], [12, 94])
    const clamped = taskOf(logOf([whole], 100, [], 90), new AnswerWriter(), { offset: 3, format: readFormats.es01 })
    assert.equal(clamped.step(1000), stepOutcomes.done)
    assert.equal(clamped.recordCount, 10)
  })

  it('because retention dropped them while it read, ends before the gap, or says that it skipped it', () => {
    const big = Array.from({ length: 20 }, (_, i) => ({
      ...batch(i, i, []),
      records: [{ offsetDelta: 0, key: null, value: Buffer.alloc(600) }]
    }))
    const begun = logOf([segmentOf(0, big)], 20)
    const drop = (log: ShardLog, offset: number) => (): void => void partitionOf(log, 1, 0).moveStart(offset)
    assert.deepEqual(consume(begun, {}, drop(begun, 15)), { offsets: [0, 1], next: 2, end: 20 })
    // Nothing is read in the first turn: what it meets is damaged.
    const met = logOf([segmentOf(0, big)], 20)
    damage(met, [0, 3])
    const skipped = { requested: 0, earliest: 18, latest: 20 }
    assert.deepEqual(consume(met, {}, drop(met, 18)), { offsets: [18, 19], next: 20, end: 20, skipped })
  })
})

describe('the headers of a record', () => {
  it('count for the quota as a produce counts them, but not over ES01, which has none', () => {
    const headers = [['name', Buffer.from('value')]] as const
    const records = [0, 1, 2].map(offsetDelta => ({ offsetDelta, key: null, value: Buffer.alloc(10), headers }))
    const log = logOf([segmentOf(0, [{ baseOffset: 0, baseTimestampMs: 1, records }])], 3)
    // Their number, two lengths, name and value.
    const headerBytes = 1 + 2 + 4 + 5
    const payloadOf = (format: ReadFormat): number => {
      const task = taskOf(log, new AnswerWriter(), { format })
      assert.equal(task.step(1000), stepOutcomes.done)
      assert.equal(task.recordCount, 3)
      return task.payloadBytes
    }
    for (const format of [readFormats.jsonUtf8, readFormats.framesBase64, readFormats.msgpack]) {
      assert.equal(payloadOf(format), 3 * (10 + headerBytes))
    }
    assert.equal(payloadOf(readFormats.es01), 3 * 10)
  })

  it('count towards max_bytes', () => {
    const records = [0, 1, 2].map(offsetDelta => {
      return { offsetDelta, key: null, value: null, headers: [['n', Buffer.alloc(4000)]] as const }
    })
    const log = logOf([segmentOf(0, [{ baseOffset: 0, baseTimestampMs: 1, records }])], 3)
    assert.deepEqual(consume(log, { maxBytes: 8000 }).offsets, [0])
    assert.deepEqual(consume(log, { maxBytes: 12_000 }).offsets, [0, 1])
  })
})
