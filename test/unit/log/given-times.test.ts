/** Times that clients gave their records: look-ups by them, wherever the records lie, against a plain search. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { TimeLookup, type TimedOffset } from '../../../src/log/time-lookup.ts'
import { clientBatch, gzip } from '../../support/client-batches.ts'
import { append, openLog, partitionOf, textRecord, type TestRequest } from '../../support/log-harness.ts'
import { chosenSeed, diceOf, replayLine, type Dice } from '../../support/log-random.ts'
import { settleAll } from '../../support/log-settle.ts'

const FILE = 'test/unit/log/given-times.test.ts'
const BROKER_MS = 1_700_000_000_000
const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 3000 }

function found(log: ShardLog, timestampMs: number): TimedOffset | null {
  const lookup = new TimeLookup(log.window, partitionOf(log, 1, 0), timestampMs)
  while (!lookup.step());
  return lookup.found
}

/** Appends groups of batches, some compressed, and of records of the broker. @returns their times by offset. */
function fill(log: ShardLog, dice: Dice): number[] {
  const times: number[] = []
  for (let i = 0; i < 60; i++) {
    const count = 1 + dice.below(5)
    const records = Array.from({ length: count }, (_, j) => textRecord(0, `k${i}`, `v${j}`.padEnd(dice.below(200))))
    if (dice.chance(0.2)) {
      append(log, { firstHandle: 1, records })
      times.push(...records.map(() => BROKER_MS))
      continue
    }
    const baseTimestamp = BROKER_MS + (dice.below(2000) - 1000) * 60_000
    const request: TestRequest = {
      firstHandle: 1,
      records: records.map((record, j) => ({ ...record, timestampDelta: j * 10 })),
      batch: { baseTimestamp, ...(dice.chance(0.5) && gzip) }
    }
    append(log, request)
    times.push(...records.map((_, j) => baseTimestamp + j * 10))
  }
  return times
}

describe('a look-up by the times of clients', () => {
  it('finds the first record that is late enough: in slots, after a kill, and settled', t => {
    const seed = chosenSeed()
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    let disk = new SimulatedDisk()
    let log = openLog(disk)
    log.table.open(topic)
    const times = fill(log, dice)
    const wanted = [...times, Math.max(...times) + 1, ...times.map(ms => ms - 1), 0]
    const check = (): void => {
      for (const ms of wanted) {
        const offset = times.findIndex(time => time >= ms)
        const expected = offset < 0 ? null : { offset, timestampMs: times[offset] }
        assert.deepEqual(found(log, ms), expected, replayLine(seed, FILE))
      }
    }
    check()
    assert.equal(partitionOf(log, 1, 0).hasOrderedTimes, false)
    disk = disk.killProcess()
    log = openLog(disk)
    log.table.open(topic)
    check()
    assert.equal(partitionOf(log, 1, 0).hasOrderedTimes, false)
    log.sealOpenSlot()
    settleAll(disk, log)
    check()
    assert.equal(partitionOf(log, 1, 0).hasOrderedTimes, true, 'what is in slots from here on is the broker’s own')
    append(log, { firstHandle: 1, records: [textRecord(0, 'k', 'v')] })
    assert.equal(partitionOf(log, 1, 0).hasOrderedTimes, true)
  })

  it('goes by the greatest time of a batch that nobody can decode', () => {
    const log = openLog(new SimulatedDisk())
    log.table.open(topic)
    const bytes = clientBatch({ body: Buffer.alloc(40, 9), codec: 1, count: 3, maxTimestamp: BROKER_MS + 5 })
    const given = { source: bytes, at: 0, bytes: bytes.length, partition: 0, recordCount: 3, takesAppendTime: false }
    log.encoder.gatherBatch(partitionOf(log, 1, 0), given, null)
    append(log)
    assert.deepEqual(found(log, BROKER_MS + 5), { offset: 0, timestampMs: BROKER_MS + 5 })
    assert.equal(found(log, BROKER_MS + 6), null)
  })

  it('keeps retention to the receive time: a clock that is ahead holds nothing, one that is behind drops nothing', () => {
    const log = openLog(new SimulatedDisk())
    log.table.open(topic)
    for (const baseTimestamp of [0, BROKER_MS * 2])
      append(log, { firstHandle: 1, records: [textRecord(0, 'k', 'v')], batch: { baseTimestamp } })
    const { firstReceiveMs, receiveMsMax } = partitionOf(log, 1, 0).activeSegment()
    assert.deepEqual([firstReceiveMs, receiveMsMax], [BROKER_MS, BROKER_MS])
  })
})
