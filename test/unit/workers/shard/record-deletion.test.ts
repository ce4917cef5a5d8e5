/** Deleting records on a shard: durable before it is told (W7), never back, refused whole by a disk that has no room. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { FaultPoint } from '../../../../src/disk/faults.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { RecordDeletion } from '../../../../workers/shard/record-deletion.ts'
import { append, openLog, partitionOf, readBack, textRecord } from '../../../support/log-harness.ts'
import { InterruptibleDisk } from '../../../support/log-interruptible-disk.ts'
import { ShardStage } from '../../../support/shard-stage.ts'

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 700 }

interface Stage {
  readonly disk: InterruptibleDisk
  readonly log: ShardLog
  readonly deletion: RecordDeletion
  /** Answers, and what else was done, in order. */
  readonly said: string[]
}

/** Partition 0 has 10 records, two to a segment; partition 1 has one, partition 2 has none and no log. */
function stage(): Stage {
  const disk = new InterruptibleDisk(new SimulatedDisk())
  const log = openLog(disk)
  log.table.open(topic)
  for (let i = 0; i < 10; i++) append(log, { firstHandle: 1, records: [textRecord(0, null, `${i}`.padEnd(200, 'x'))] })
  append(log, { firstHandle: 1, records: [textRecord(1, null, 'one')] })
  const said: string[] = []
  const deletion = new RecordDeletion({
    log,
    settling: { noteDropped: () => said.push('files may go') },
    replies: {
      acknowledge: (id, start) => said.push(`${id} starts at ${start}`),
      fail: (id, code, details) => said.push(`${id} ${code} ${JSON.stringify(details)}`),
      refuseByDisk: (id, what, isFull) => said.push(`${id} ${what}: ${isFull ? 'full' : 'refused'}`)
    },
    finishGroup: () => said.push('group finished')
  })
  return { disk, log, deletion, said }
}

function ask({ deletion }: Stage, id: number, partition: number, offset: number): void {
  deletion.ask({ kind: 'delete-records', id, handle: topic.firstHandle + partition, offset })
}

function failNext(disk: InterruptibleDisk, point: FaultPoint, code: 'EIO' | 'ENOSPC'): void {
  const firstCall = disk.faults.callCount(point) + 1
  disk.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind: 'error', code } })
}

describe('deleting records on a shard', () => {
  it('moves the start inside a segment, and drops the segments that are wholly below it', () => {
    const built = stage()
    const partition = partitionOf(built.log, 1, 0)
    const before = partition.segmentCount
    ask(built, 1, 0, 5)
    built.deletion.turn()
    assert.deepEqual(built.said, ['group finished', 'files may go', '1 starts at 5'])
    assert.equal(partition.segmentCount, before - 2)
    assert.deepEqual(
      readBack(built.log, partition, 0).records.map(({ offset }) => offset),
      [5, 6, 7, 8, 9]
    )
  })

  it('does all that was asked in one turn with one group and one sync, and takes the highest of one partition', () => {
    const built = stage()
    ask(built, 1, 0, 3)
    ask(built, 2, 1, 1)
    ask(built, 3, 0, 7)
    ask(built, 4, 0, 6)
    const before = built.disk.trace.length
    built.deletion.turn()
    const points = built.disk.trace.slice(before).map(({ point }) => point)
    assert.deepEqual(
      points.filter(point => point.startsWith('group')),
      ['group.write', 'group.sync']
    )
    const answers = [1, 2, 3, 4].map(id => `${id} starts at ${id === 2 ? 1 : 7}`)
    assert.deepEqual(built.said, ['group finished', 'files may go', ...answers])
  })

  it('never moves a start back, and writes nothing for what is gone already', () => {
    const built = stage()
    ask(built, 1, 0, 6)
    built.deletion.turn()
    const before = built.disk.trace.length
    for (const [id, offset] of [
      [2, 6],
      [3, 2],
      [4, 0]
    ] as const)
      ask(built, id, 0, offset)
    ask(built, 5, 2, 0)
    built.deletion.turn()
    const answers = ['2 starts at 6', '3 starts at 6', '4 starts at 6', '5 starts at 0']
    assert.deepEqual(built.said.slice(3), ['group finished', ...answers])
    assert.equal(built.disk.trace.length, before)
  })

  it('refuses an offset beyond the end, with the end, and a topic that is gone; the others go on', () => {
    const built = stage()
    ask(built, 1, 0, 11)
    ask(built, 2, 2, 1)
    ask(built, 3, 7, 0)
    ask(built, 4, 0, 10)
    built.deletion.turn()
    assert.deepEqual(built.said, [
      'group finished',
      '1 FIELD_RANGE {"field":"offset","value":11,"min":0,"max":10}',
      '2 FIELD_RANGE {"field":"offset","value":1,"min":0,"max":0}',
      '3 TOPIC_NOT_FOUND {}',
      'files may go',
      '4 starts at 10'
    ])
    assert.deepEqual(append(built.log, { firstHandle: 1, records: [textRecord(0, null, 'next')] }), [10])
  })

  it('moves nothing on a full disk and says so to all; when there is room it succeeds', () => {
    const built = stage()
    failNext(built.disk, 'group.write', 'ENOSPC')
    ask(built, 1, 0, 4)
    ask(built, 2, 1, 1)
    built.deletion.turn()
    assert.deepEqual(built.said.slice(1), ['1 deleting records: full', '2 deleting records: full'])
    assert.equal(partitionOf(built.log, 1, 0).startOffset, 0)
    ask(built, 3, 0, 4)
    built.deletion.turn()
    assert.equal(built.said.at(-1), '3 starts at 4')
  })

  it('ends the shard when the sync failed, and tells nobody that it was done', () => {
    const built = stage()
    failNext(built.disk, 'group.sync', 'EIO')
    ask(built, 1, 0, 4)
    assert.throws(() => built.deletion.turn(), /EIO at group.sync/)
    assert.deepEqual([built.said, built.log.isPoisoned], [['group finished'], true])
  })
})

describe('a shard that is told to stop', () => {
  it('has done the deletions that were asked before', (t: TestContext) => {
    const disk = new InterruptibleDisk(new SimulatedDisk())
    const shard = new ShardStage(t, disk, () => 0)
    shard.log.table.open(topic)
    shard.produce(
      1,
      1,
      ['a', 'b', 'c'].map(value => textRecord(0, null, value))
    )
    shard.group.run()
    shard.control({ kind: 'delete-records', id: 2, handle: 1, offset: 2 })
    shard.control({ kind: 'stop', id: 3 })
    shard.loop.run()
    assert.deepEqual(
      shard.answers().map(({ kind, id }) => `${kind} ${id}`),
      ['produced 1', 'acknowledged 2', 'acknowledged 3']
    )
    const next = openLog(disk)
    next.table.open(topic)
    assert.equal(partitionOf(next, 1, 0).startOffset, 2)
  })
})
