/** Settling: slots become segment files, and one commit makes it count. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import { segmentPath } from '../../../src/log/segment-files.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import type { ShardTopic } from '../../../src/wire/shard/messages.ts'
import { append, openLog, partitionOf, readBack, testDirectory, textRecord } from '../../support/log-harness.ts'
import { settleAll } from '../../support/log-settle.ts'

const topic: ShardTopic = { firstHandle: 1, partitionCount: 4, segmentBytes: 2 ** 31 - 1 }

function open(disk: SimulatedDisk, segmentBytes = topic.segmentBytes): ShardLog {
  const log = openLog(disk)
  log.table.open({ ...topic, segmentBytes })
  return log
}

function put(log: ShardLog, partition: number, ...values: string[]): void {
  append(log, { firstHandle: 1, records: values.map(value => textRecord(partition, null, value)) })
}

function valuesOf(log: ShardLog, partition: number): string[] {
  const { records, damaged } = readBack(log, partitionOf(log, 1, partition))
  assert.deepEqual(damaged, [])
  return records.map(({ value }) => value.toString())
}

describe('a log whose slots are settled', () => {
  it('reads the same before, after, and after a restart, and goes on', () => {
    const disk = new SimulatedDisk()
    const log = open(disk)
    const values: string[] = []
    for (let i = 0; i < 40; i++) {
      values.push(`v${i}`)
      put(log, i % 2, `v${i}`)
    }
    const of = (partition: number): string[] => values.filter((_, i) => i % 2 === partition)
    log.sealOpenSlot()
    settleAll(disk, log)
    assert.equal(log.sealedSlots.length, 0)
    assert.deepEqual([valuesOf(log, 0), valuesOf(log, 1)], [of(0), of(1)])
    put(log, 0, 'more')
    assert.deepEqual(valuesOf(log, 0), [...of(0), 'more'])
    assert.equal(loadManifest(disk, testDirectory, 0, 1).settledSequence, 2)
    const again = open(disk.killProcess())
    assert.deepEqual([valuesOf(again, 0), valuesOf(again, 1)], [[...of(0), 'more'], of(1)])
  })

  it('keeps its segments, whatever mix of packs and files of their own they lie in', () => {
    let disk = new SimulatedDisk()
    let log = open(disk, 700 * 1024)
    const values: string[][] = [[], [], [], []]
    for (let round = 0; round < 6; round++) {
      for (let partition = 0; partition < 3; partition++) {
        for (let i = 0; i < 8; i++) {
          const value = `${round}.${partition}.${i}:`.padEnd(10 + partition * 20_000, 'x')
          values[partition]?.push(value)
          put(log, partition, value)
        }
      }
      const before = [0, 1, 2, 3].map(p => [partitionOf(log, 1, p).segmentCount, partitionOf(log, 1, p).sizeBytes])
      log.sealOpenSlot()
      settleAll(disk, log)
      const after = [0, 1, 2, 3].map(p => [partitionOf(log, 1, p).segmentCount, partitionOf(log, 1, p).sizeBytes])
      assert.deepEqual(after, before)
      for (let partition = 0; partition < 4; partition++) assert.deepEqual(valuesOf(log, partition), values[partition])
      disk = disk.killProcess()
      log = open(disk, 700 * 1024)
      assert.equal(log.report.slots, 0)
      for (let partition = 0; partition < 4; partition++) assert.deepEqual(valuesOf(log, partition), values[partition])
      const found = [0, 1, 2, 3].map(p => [partitionOf(log, 1, p).segmentCount, partitionOf(log, 1, p).sizeBytes])
      assert.deepEqual(found, before)
    }
  })

  it('reports what lay in a file that is gone as damaged, and serves all else', () => {
    const disk = new SimulatedDisk()
    const log = open(disk, 300_000)
    for (let i = 0; i < 20; i++) put(log, 0, `${i}:`.padEnd(40_000, 'x'))
    log.sealOpenSlot()
    settleAll(disk, log)
    const partition = partitionOf(log, 1, 0)
    const second = partition.settled?.segments[1]
    assert.ok(second !== undefined && second.extents.some(({ pack }) => pack === 0))
    disk.remove('segment.remove', `/data/${segmentPath(partition.settled?.directory ?? '', second, '.log')}`)
    const { records, damaged } = readBack(log, partition)
    assert.deepEqual(damaged, [{ firstOffset: second.baseOffset, lastOffset: second.nextOffset - 1 }])
    assert.deepEqual(
      records.map(({ offset }) => offset),
      Array.from({ length: 20 }, (_, i) => i).filter(i => i < second.baseOffset || i >= second.nextOffset)
    )
  })
})
