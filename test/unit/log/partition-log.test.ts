/** State of a partition, its index of runs, and the table that finds it. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { EncodeBuffer } from '../../../src/log/encode-buffer.ts'
import { LogTable } from '../../../src/log/log-table.ts'
import { PartitionLog } from '../../../src/log/partition-log.ts'
import { RunIndex } from '../../../src/log/run-index.ts'
import { limits } from '../../../src/model/limits.ts'

describe('the leader epoch of an offset', () => {
  it('is that of the last epoch which began at or before it', () => {
    const log = new PartitionLog(1)
    log.beginEpoch(1, 10)
    log.beginEpoch(2, 10)
    log.beginEpoch(5, 20)
    assert.deepEqual(
      [0, 9, 10, 19, 20, 1000].map(offset => log.epochAt(offset)),
      [0, 0, 2, 2, 5, 5]
    )
    assert.equal(log.leaderEpoch, 5)
    assert.throws(() => log.beginEpoch(5, 30), BugError)
  })
})

describe('a segment', () => {
  it('rolls when its bytes or its offsets run out, never when it is empty', () => {
    const log = new PartitionLog(1)
    log.segmentBytes = 100
    assert.equal(log.mustRoll(1000), false)
    log.stageBytes(90)
    assert.deepEqual([log.mustRoll(10), log.mustRoll(11)], [false, true])
    log.segmentBytes = 2 ** 40
    assert.deepEqual(
      [log.mustRoll(limits.segmentBytesHard - 90), log.mustRoll(limits.segmentBytesHard - 89)],
      [false, true]
    )
    log.nextOffset = limits.segmentBytesHard
    assert.equal(log.mustRoll(1), true)
    log.stageRoll()
    assert.equal(log.mustRoll(1), true, 'what comes first in a new segment begins it')
    log.stageBytes(1)
    assert.equal(log.mustRoll(1), false)
  })
})

describe('the index of runs', () => {
  it('finds for every offset the last run that begins at or before it', () => {
    const index = new RunIndex()
    assert.equal(index.find(0), -1)
    for (let i = 0; i < 1000; i++) index.add(10 * i + 5, i, 4096 * i, 100 + i, i === 3 ? -1 : i)
    for (let offset = 0; offset < 10_010; offset += 1)
      assert.equal(index.find(offset), Math.floor((offset - 5) / 10) < 1000 ? Math.floor((offset - 5) / 10) : 999)
    assert.deepEqual(
      [index.baseOffset(3), index.slot(3), index.position(3), index.bytes(3), index.memoryAt(3), index.count],
      [35, 3, 12288, 103, -1, 1000]
    )
  })

  it('keeps a quarantine mark apart from the slot', () => {
    const index = new RunIndex()
    index.add(0, 0x7fff_ffff, 0, 1, -1)
    index.add(1, 2, 0, 1, -1)
    index.quarantineLast()
    index.quarantine(1)
    assert.deepEqual([index.isQuarantined(0), index.isQuarantined(1)], [false, true])
    assert.deepEqual([index.slot(0), index.slot(1)], [0x7fff_ffff, 2])
  })

  it('takes runs in order only', () => {
    const index = new RunIndex()
    index.add(5, 0, 0, 1, -1)
    assert.throws(() => index.add(5, 0, 0, 1, -1), BugError)
    assert.throws(() => new RunIndex().quarantineLast(), BugError)
  })
})

describe('the table of logs', () => {
  const topic = { firstHandle: 10, partitionCount: 3, segmentBytes: 1000 }

  it('gives recovered logs to the topic that owns their handles, once', () => {
    const table = new LogTable()
    const logs = [9, 10, 12, 13].map(handle => table.recoveredLog(handle))
    assert.equal(table.recoveredLog(9), logs[0])
    table.open(topic)
    assert.deepEqual(table.unclaimedHandles(), [9, 13])
    const opened = table.topic(10)
    assert.deepEqual([opened?.logs[0], opened?.logs[1], opened?.logs[2]], [logs[1], undefined, logs[2]])
    table.open({ ...topic, segmentBytes: 5 })
    assert.equal(table.topic(10), opened)
    assert.equal(logs[1]?.segmentBytes, 1000)
  })

  it('applies a new segment size to all logs of a topic, those made later too', () => {
    const table = new LogTable()
    table.open(topic)
    const log = table.topic(10)?.log(0)
    table.configure({ ...topic, segmentBytes: 2 ** 40 })
    assert.deepEqual(
      [log?.segmentBytes, table.topic(10)?.log(1).segmentBytes],
      [limits.segmentBytesHard, limits.segmentBytesHard]
    )
    table.configure({ ...topic, firstHandle: 99 })
    table.drop(10)
    assert.equal(table.topic(10), undefined)
  })
})

describe('the encode buffer', () => {
  it('knows what still stands in it, and never gives a group in two pieces', () => {
    const buffer = new EncodeBuffer(100)
    const first = buffer.allocate(60)
    const firstPlace = buffer.placeOf(first, 60, first + 10)
    assert.equal(buffer.indexOf(firstPlace), 10)
    const second = buffer.allocate(60)
    assert.equal(second, 0)
    assert.equal(buffer.indexOf(firstPlace), -1)
    assert.equal(buffer.indexOf(buffer.placeOf(second, 60, second + 10)), 10)
    assert.equal(buffer.indexOf(-1), -1)
  })

  it('does not hold a group larger than itself', () => {
    const buffer = new EncodeBuffer(100)
    const kept = buffer.allocate(50)
    const place = buffer.placeOf(kept, 50, kept)
    const large = buffer.allocate(500)
    assert.equal(buffer.current.length, 500)
    assert.equal(buffer.placeOf(large, 500, large), -1)
    assert.equal(buffer.indexOf(place), 0, 'what stood there before stays')
  })
})
