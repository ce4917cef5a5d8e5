/** How much there is to read at or above an offset: exact between groups, an estimate within one and within a segment. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { PartitionLog } from '../../../src/log/partition-log.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { storedBytesFrom } from '../../../src/log/stored-bytes.ts'
import { append, openLog, partitionOf, textRecord } from '../../support/log-harness.ts'
import { putSettled } from '../../support/log-settled.ts'
import { segmentOf, type BatchParts } from '../../support/log-segments.ts'

const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }
const EVERYTHING = 2 ** 40

function openTopic(): { log: ShardLog; partition: PartitionLog } {
  const log = openLog(new SimulatedDisk())
  log.table.open(topic)
  return { log, partition: partitionOf(log, 1, 0) }
}

/** One group of records of so many bytes. @returns its stored bytes. */
function appendGroup(log: ShardLog, partition: PartitionLog, ...sizes: readonly number[]): number {
  const before = partition.sizeBytes
  append(log, { firstHandle: 1, records: sizes.map(size => textRecord(0, null, 'v'.repeat(size))) })
  return partition.sizeBytes - before
}

describe('stored bytes from an offset on', () => {
  it('are those of the groups from there to the end, and none at or beyond the end', () => {
    const { log, partition } = openTopic()
    assert.equal(storedBytesFrom(partition, 0, 1), 0)
    const bytes = [10, 2000, 1, 300].map(size => appendGroup(log, partition, size))
    for (let offset = 0; offset < 4; offset++) {
      const rest = bytes.slice(offset).reduce((sum, one) => sum + one, 0)
      assert.equal(storedBytesFrom(partition, offset, EVERYTHING), rest, `from ${offset}`)
    }
    for (const offset of [4, 5, 2 ** 53, 2 ** 64]) assert.equal(storedBytesFrom(partition, offset, 1), 0)
  })

  it('within a group are its share by offsets, and never nothing', () => {
    const { log, partition } = openTopic()
    const bytes = appendGroup(log, partition, 100, 100, 100, 100)
    assert.equal(storedBytesFrom(partition, 2, EVERYTHING), Math.ceil(bytes / 2))
    assert.equal(storedBytesFrom(partition, 3, EVERYTHING), Math.ceil(bytes / 4))
  })

  it('are counted only until there are enough', () => {
    const { log, partition } = openTopic()
    const bytes = [500, 600, 700].map(size => appendGroup(log, partition, size))
    assert.equal(storedBytesFrom(partition, 0, 1), bytes[2])
  })

  it('begin where the log begins', () => {
    const { log, partition } = openTopic()
    const bytes = [500, 600, 700].map(size => appendGroup(log, partition, size))
    log.moveStarts([{ log: partition, offset: 2 }])
    for (const offset of [0, 1, 2]) assert.equal(storedBytesFrom(partition, offset, EVERYTHING), bytes[2])
    log.moveStarts([{ log: partition, offset: 3 }])
    assert.equal(storedBytesFrom(partition, 0, 1), 0)
  })

  it('count what is settled by its segments, and what is not by its groups', () => {
    const disk = new SimulatedDisk()
    const log = openLog(disk)
    const batch = (baseOffset: number, size: number): BatchParts => {
      const records = [{ offsetDelta: 9, key: null, value: Buffer.alloc(size) }]
      return { baseOffset, baseTimestampMs: 1, records, maxTimestampMs: 1 }
    }
    const segments = [100, 300, 200].map((size, i) => segmentOf(10 * i, [batch(10 * i, size)]))
    const settledBytes = segments.reduce((sum, segment) => sum + segment.log.length, 0)
    const partition = putSettled(disk, log, { handle: 1, segments })
    log.table.open(topic)
    const bytes = appendGroup(log, partition, 400)
    assert.equal(storedBytesFrom(partition, 0, EVERYTHING), settledBytes + bytes)
    const [, second, third] = segments
    assert.ok(second !== undefined && third !== undefined)
    assert.equal(storedBytesFrom(partition, 20, EVERYTHING), third.log.length + bytes)
    assert.equal(
      storedBytesFrom(partition, 15, EVERYTHING),
      Math.ceil(second.log.length / 2) + third.log.length + bytes
    )
    assert.equal(storedBytesFrom(partition, 30, EVERYTHING), bytes)
  })

  it('of very many groups are taken to be as dense as the newest, so that nobody waits for the counting', () => {
    const { log, partition } = openTopic()
    for (let i = 0; i < 5000; i++) appendGroup(log, partition, 10)
    const bytes = storedBytesFrom(partition, 0, EVERYTHING)
    assert.ok(Math.abs(bytes / partition.sizeBytes - 1) < 0.01, `${bytes} of ${partition.sizeBytes}`)
  })
})
