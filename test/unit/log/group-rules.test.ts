/**
 * What holds of every group: its runs lie by partition (W2), either of its two directories is enough (W2), and its offsets
 * follow on those before it, which is asserted when it is written and looked at again when it is found (W4).
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import {
  append,
  gather,
  notReady,
  openLog,
  partitionOf,
  readBack,
  textRecord,
  type TestRequest
} from '../../support/log-harness.ts'
import { diskOf, fileBytes, takeImage, withChange, type JournalImage } from '../../support/log-image.ts'
import { InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { batchesOf, plainSlot } from '../../support/log-slot-bytes.ts'

const GROUPS_AT = 8192
const PARTITIONS = 40
const topics = [
  { firstHandle: 1, partitionCount: PARTITIONS, segmentBytes: 2 ** 31 - 1 },
  { firstHandle: 100, partitionCount: 3, segmentBytes: 400 }
]

function start(disk: SimulatedDisk | InterruptibleDisk): ShardLog {
  const log = openLog(disk)
  for (const topic of topics) log.table.open(topic)
  return log
}

const request = (firstHandle: number, partitions: readonly number[], value: string): TestRequest => ({
  firstHandle,
  records: partitions.map(partition => textRecord(partition, null, value))
})

const valuesOf = (log: ShardLog, partition: number): string[] =>
  readBack(log, partitionOf(log, 1, partition)).records.map(record => record.value.toString())

describe('the runs of a group', () => {
  it('lie by partition, one partition behind the other, however mixed the records came and though segments roll', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    const value = 'v'.repeat(150)
    gather(log, [request(100, [2, 0, 1, 2], value), request(1, [3, 1, 3], value)])
    gather(log, [request(100, [0, 2, 1, 0, 2, 2], value), request(1, [1, 0, 3], value)])
    append(log)
    const [group, ...others] = plainSlot(fileBytes(disk, '0001.slot')).groups
    assert.ok(group !== undefined && others.length === 0)
    const handles = group.entries.map(({ handle }) => handle)
    const inTurn = handles.filter((handle, i) => handle !== handles[i - 1])
    assert.deepEqual(inTurn, [...new Set(handles)], 'no partition is come back to')
    assert.ok(handles.length > inTurn.length, 'segments rolled within the group')
    // Bodies stand in the order of the directory, without a gap between them.
    const bodies = group.entries.flatMap(({ run }) => batchesOf(run).map(batch => batch.byteOffset))
    const ends = group.entries.flatMap(({ run }) => batchesOf(run).map(batch => batch.byteOffset + batch.length))
    assert.deepEqual(bodies.slice(1), ends.slice(0, -1))
  })
})

describe('a group of which a directory is torn', () => {
  const partitions = Array.from({ length: PARTITIONS }, (_, partition) => partition)
  /** Of one group: header and 40 entries of 64 bytes are 2624, so five whole sectors have nothing else. */
  const DIRECTORY_SECTOR_BYTES = 5 * 512

  /** Three groups over 40 partitions; the third proves that the second was synced. */
  function image(): { image: JournalImage; position: number; endPosition: number } {
    const disk = new SimulatedDisk()
    const log = start(disk)
    for (const value of ['one', 'two', 'three']) append(log, request(1, partitions, value))
    const second = plainSlot(fileBytes(disk, '0001.slot')).groups[1]
    assert.ok(second !== undefined)
    return { image: takeImage(disk), position: second.position, endPosition: second.position + second.totalBytes }
  }

  function startWithout(from: number, to: number, of: JournalImage): ShardLog {
    return start(diskOf(withChange(of, '0001.slot', bytes => bytes.fill(0, from, to))))
  }

  it('is read by its trailer when the header and the directory in front are gone, and loses nothing', () => {
    const sample = image()
    const log = startWithout(sample.position, sample.position + DIRECTORY_SECTOR_BYTES, sample.image)
    for (const partition of partitions) assert.deepEqual(valuesOf(log, partition), ['one', 'two', 'three'])
    assert.deepEqual([log.report.cutGroups, log.report.quarantinedRuns], [0, 0])
  })

  it('is read by the directory in front when the trailer is gone, and loses nothing', () => {
    const sample = image()
    const log = startWithout(sample.endPosition - DIRECTORY_SECTOR_BYTES, sample.endPosition, sample.image)
    for (const partition of partitions) assert.deepEqual(valuesOf(log, partition), ['one', 'two', 'three'])
    assert.deepEqual([log.report.cutGroups, log.report.quarantinedRuns], [0, 0])
  })

  it('is never guessed at when both are gone', () => {
    const sample = image()
    const both = withChange(sample.image, '0001.slot', bytes =>
      bytes
        .fill(0, sample.position, sample.position + DIRECTORY_SECTOR_BYTES)
        .fill(0, sample.endPosition - DIRECTORY_SECTOR_BYTES, sample.endPosition)
    )
    assert.throws(() => start(diskOf(both)), notReady(/group 2 has neither a readable directory nor trailer/))
  })
})

describe('a run whose base offset is not the next of its partition', () => {
  it('is a bug that reaches no disk, be it a gap or an offset given twice', () => {
    for (const wrong of [3, 1]) {
      const disk = new InterruptibleDisk(new SimulatedDisk())
      const log = start(disk)
      append(log, request(1, [0, 0], 'a'))
      disk.trace.length = 0
      const partition = partitionOf(log, 1, 0)
      assert.equal(partition.nextOffset, 2)
      partition.nextOffset = wrong
      gather(log, [request(1, [0], 'b')])
      log.prepare()
      assert.throws(() => log.encode(), BugError)
      assert.deepEqual(disk.trace, [])
    }
  })

  it('keeps the shard down when it is found on disk, be it a gap or an offset given twice', () => {
    // Two journals with the same salt; the second group of one behind the first group of the other.
    const journal = (first: number): Map<string, Buffer> => {
      const disk = new SimulatedDisk()
      const log = start(disk)
      append(log, request(1, Array<number>(first).fill(0), 'first'))
      append(log, request(1, [0], 'second'))
      return new Map(takeImage(disk))
    }
    for (const [had, other, problem] of [
      [1, 2, /gives partition handle 1 offset 2 where 1 is next/],
      [2, 1, /gives partition handle 1 offset 1 where 2 is next/]
    ] as const) {
      const image = journal(had)
      assert.equal(valuesOf(start(diskOf(image)), 0).length, had + 1)
      const second = GROUPS_AT + 4096
      journal(other)
        .get('0001.slot')
        ?.copy(image.get('0001.slot') ?? Buffer.alloc(0), second, second, second + 4096)
      assert.throws(() => start(diskOf(image)), notReady(problem))
    }
  })
})
