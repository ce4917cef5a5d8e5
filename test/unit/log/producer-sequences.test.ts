/** The sequences of a producer in a partition: the verdict, its boundaries, and what a rollback leaves. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BrokerError } from '../../../src/model/errors.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { GroupEncoder } from '../../../src/log/group-encoder.ts'
import { GROUP_HEADER_BYTES, readEntries } from '../../../src/log/group-format.ts'
import { LogTable } from '../../../src/log/log-table.ts'
import { RequestSequences } from '../../../src/log/request-sequences.ts'
import { ProducerSequences, judgeSequence, sequenceVerdicts } from '../../../src/log/producer-sequences.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import {
  append,
  gather,
  gatheredResults,
  openLog,
  partitionOf,
  ringRecords,
  textRecord,
  type TestRequest
} from '../../support/log-harness.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'

const range = (count: number): number[] => Array.from({ length: count }, (_, i) => i)
const { next, duplicate, gap, tooLow } = sequenceVerdicts

describe('the verdict on a sequence', () => {
  // [relative, expected next, behind a new record of the request, verdict]
  const table = [
    [0, 0, false, next],
    [1, 0, false, gap],
    [200, 200, false, next],
    [200, 200, true, next],
    [201, 200, false, gap],
    [201, 200, true, gap],
    [199, 200, false, duplicate],
    [199, 200, true, tooLow],
    [72, 200, false, duplicate],
    [71, 200, false, tooLow],
    [0, 200, false, tooLow],
    [-1, 200, false, tooLow],
    [0, 128, false, duplicate],
    [0, 129, false, tooLow],
    [-1, 1, false, tooLow],
    [-(2 ** 63), 5, false, tooLow],
    [2 ** 63, 5, false, gap]
  ] as const
  for (const [relative, expected, hasNew, verdict] of table) {
    it(`is ${Object.keys(sequenceVerdicts)[verdict]} for ${relative} where ${expected} is next${hasNew ? ', behind a new one' : ''}`, () => {
      assert.equal(judgeSequence(relative, expected, hasNew), verdict)
    })
  }
})

describe('the sequences of a producer', () => {
  it('lead to the offset of each of the last 128, however its records lie, and go back with a rollback', t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, 'test/unit/log/producer-sequences.test.ts'))
    const dice = diceOf(seed)
    for (let round = 0; round < 30; round++) {
      const sequences = new ProducerSequences(7, 0xffff_fff0)
      const offsets: number[] = []
      let offset = 0
      let highWatermark = 0
      // Long ones, with much under way: runs that left the window are dropped, and those before them are not needed again.
      const [largest, commits, rollbacks] = dice.pick([
        [12, 0.4, 0.1],
        [2, 0.01, 0.005]
      ] as const)
      for (let step = 0; step < 900; step++) {
        const count = 1 + dice.below(largest)
        if (dice.chance(0.5)) offset += 1 + dice.below(3)
        sequences.accept(count, offset, highWatermark)
        for (let i = 0; i < count; i++) offsets.push(offset++)
        // Anywhere within the last records, and never back.
        if (dice.chance(commits))
          highWatermark = dice.chance(0.5) ? offset : Math.max(highWatermark, offsets.at(-2) ?? 0)
        if (dice.chance(rollbacks)) {
          const isEmpty = sequences.rollback(highWatermark)
          while ((offsets.at(-1) ?? -1) >= highWatermark) offsets.pop()
          offset = highWatermark
          assert.equal(isEmpty, offsets.length === 0)
        }
        assert.equal(sequences.next, offsets.length)
        assert.equal(sequences.durableNext(highWatermark), offsets.filter(known => known < highWatermark).length)
        for (let relative = Math.max(0, sequences.next - 128); relative < sequences.next; relative++)
          assert.equal(sequences.offsetOf(relative), offsets[relative])
      }
    }
  })

  it('are exact at the end of 64 bits', () => {
    const sequences = new ProducerSequences(0x7fff_ffff, 0xffff_fffe)
    sequences.accept(2, 10, 0)
    assert.equal(sequences.sequenceAt(1), 2n ** 63n - 1n)
    assert.equal(sequences.relativeOf(0x7fff_ffff, 0xffff_ffff), 1)
    assert.ok(sequences.relativeOf(0, 0) < -(2 ** 53))
  })
})

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 300 }

function start(disk = new SimulatedDisk()): { disk: SimulatedDisk; log: ShardLog } {
  const log = openLog(disk)
  log.table.open(topic)
  return { disk, log }
}

function from(producer: number, ...records: readonly (readonly [sequence: number, partition?: number])[]): TestRequest {
  return {
    firstHandle: 1,
    producer,
    records: records.map(([sequence, partition = 0]) => ({
      ...textRecord(partition, null, `${producer}/${sequence} ${'x'.repeat(60)}`),
      sequence: BigInt(sequence)
    }))
  }
}

const refusal = (code: string) => (error: unknown) => error instanceof BrokerError && error.code === code

describe('a log with producers', () => {
  it('writes the runs of a producer within the directory entry of their records', () => {
    const table = new LogTable()
    table.open(topic)
    const encoder = new GroupEncoder()
    const logs = table.topic(1)
    assert.ok(logs !== undefined)
    const sequences = new RequestSequences()
    for (const { producer = 0, records } of [from(1, [5], [6], [7], [8], [9], [10]), from(2, [0]), from(1, [11])]) {
      const ring = ringRecords(records)
      assert.equal(sequences.check(logs, producer, ring), null)
      encoder.gather(logs, ring, sequences)
    }
    const bytes = Buffer.alloc(encoder.totalBytes)
    encoder.encode(bytes, 0, 1, 0)
    const entries = readEntries(bytes, GROUP_HEADER_BYTES, GROUP_HEADER_BYTES + encoder.directoryBytes) ?? []
    assert.ok(entries.length >= 3, 'segments roll inside')
    for (const { producers, baseOffset, nextOffset } of entries) {
      assert.equal(producers[0]?.baseOffset, baseOffset)
      const last = producers.at(-1)
      assert.equal((last?.baseOffset ?? 0) + (last?.count ?? 0), nextOffset)
    }
    const told = entries.flatMap(({ producers }) =>
      producers.flatMap(({ producerId, sequenceLow, count }) => range(count).map(i => [producerId, sequenceLow + i]))
    )
    const expected = [...range(6).map(i => [1, 5 + i]), [2, 0], [1, 11]]
    assert.deepEqual(told, expected)
  })

  it('counts key, value and header bytes of duplicates, and judges the records behind headers by their own sequence', () => {
    const table = new LogTable()
    table.open(topic)
    const encoder = new GroupEncoder()
    const logs = table.topic(1)
    assert.ok(logs !== undefined)
    const sequences = new RequestSequences()
    const records = [
      { ...textRecord(0, 'k', 'value'), sequence: 0n, headers: [['n', Buffer.from('abc')]] as const },
      { ...textRecord(0, null, 'v'), sequence: 1n },
      { ...textRecord(1, null, 'v'), sequence: 7n, headers: [['n', null]] as const }
    ]
    assert.equal(sequences.check(logs, 1, ringRecords(records)), null)
    assert.deepEqual([sequences.duplicateCount, sequences.duplicateBytes], [0, 0])
    encoder.gather(logs, ringRecords(records), sequences)
    assert.equal(sequences.check(logs, 1, ringRecords(records)), null)
    assert.deepEqual([sequences.duplicateCount, sequences.duplicateBytes], [3, 6 + 7 + 1 + 1 + 4])
    const behind = { ...textRecord(0, null, 'v'), sequence: 3n }
    assert.equal(sequences.check(logs, 1, ringRecords([...records, behind]))?.code, 'SEQUENCE_GAP')
    assert.equal(sequences.check(logs, 1, ringRecords([...records, { ...behind, sequence: 2n }])), null)
  })

  it('knows them after a restart, by footer and by scan, also where segments roll inside a request', () => {
    const { disk, log } = start()
    append(log, from(1, [0], [1], [2], [3], [4], [5], [0, 1]))
    append(log, from(2, [9], [10]), from(1, [6], [7]), from(2, [11]))
    const scanned = start(disk.killProcess())
    assert.throws(() => gather(scanned.log, [from(1, [9])]), refusal('SEQUENCE_GAP'))
    gather(scanned.log, [from(1, [0], [5], [6], [7]), from(2, [9], [11]), from(1, [0, 1])])
    assert.deepEqual(
      gatheredResults(scanned.log).map(result => [result.offset, result.isDuplicate]),
      [0, 5, 8, 9, 6, 10, 0].map(offset => [offset, true])
    )
    assert.equal(scanned.log.encoder.batchCount, 0)
    scanned.log.encoder.reset()
    scanned.log.close()
    const sealed = start(scanned.disk.killProcess())
    assert.equal(sealed.log.report.copiedGroups, 0, 'the footer tells it all')
    assert.deepEqual(append(sealed.log, from(1, [6], [7], [8]), from(2, [12])), [8, 9, 11, 12])
  })

  it('takes nothing of a request of which one record is bad', () => {
    const { log } = start()
    append(log, from(1, [0], [0, 1]))
    for (const [bad, code] of [
      [from(1, [1], [1, 1], [3, 1]), 'SEQUENCE_GAP'],
      [from(1, [1], [1, 1], [1]), 'SEQUENCE_TOO_LOW'],
      [from(1, [1], [0]), 'SEQUENCE_TOO_LOW'],
      [from(3, [5], [7]), 'SEQUENCE_GAP']
    ] as const)
      assert.throws(() => gather(log, [bad]), refusal(code))
    assert.equal(log.encoder.records.count, 0)
    assert.equal(partitionOf(log, 1, 0).producers.of(3), null)
    assert.deepEqual(append(log, from(1, [1], [1, 1])), [1, 1])
  })

  it('forgets the producers that it is told to, and at a start those that it is not told of', () => {
    const { disk, log } = start()
    append(log, from(1, [0]), from(2, [0]), from(3, [0]))
    log.table.forgetProducers([1])
    assert.deepEqual(
      [1, 2, 3].map(number => partitionOf(log, 1, 0).producers.of(number)?.next),
      [undefined, 1, 1]
    )
    const again = start(disk.killProcess())
    again.log.table.keepProducers(number => number === 3)
    assert.deepEqual(
      [1, 2, 3].map(number => partitionOf(again.log, 1, 0).producers.of(number)?.next),
      [undefined, undefined, 1]
    )
  })
})
