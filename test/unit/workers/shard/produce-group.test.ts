/** What a producer is told, and when: after the sync of its group and never before (W3), also a retry, also at its failure. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { FaultPoint } from '../../../../src/disk/faults.ts'
import { ShardPoisoned } from '../../../../workers/shard/produce-group.ts'
import { partitionOf, textRecord, type TestRecord } from '../../../support/log-harness.ts'
import { InterruptibleDisk } from '../../../support/log-interruptible-disk.ts'
import { ShardStage } from '../../../support/shard-stage.ts'

const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }

function stage(t: TestContext): { shard: ShardStage; disk: InterruptibleDisk } {
  const disk = new InterruptibleDisk(new SimulatedDisk())
  const shard = new ShardStage(t, disk, () => 0)
  shard.log.table.open(topic)
  return { shard, disk }
}

function failNext(disk: InterruptibleDisk, point: FaultPoint, code: 'EIO' | 'ENOSPC'): void {
  const firstCall = disk.faults.callCount(point) + 1
  disk.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind: 'error', code } })
}

const record = (value: string, sequence?: bigint): TestRecord => {
  const plain = textRecord(0, null, value)
  return sequence === undefined ? plain : { ...plain, sequence }
}

describe('a produce', () => {
  it('is answered, and may be read, only after the sync of its group', t => {
    const { shard, disk } = stage(t)
    const partition = partitionOf(shard.log, 1, 0)
    shard.produce(1, 1, [record('a')])
    shard.group.run()
    assert.deepEqual(shard.answers(), [{ kind: 'produced', id: 1, offsets: [0], duplicates: [false] }])
    shard.produce(2, 1, [record('b')])
    failNext(disk, 'group.sync', 'EIO')
    assert.throws(() => shard.group.run(), ShardPoisoned)
    assert.deepEqual(shard.answers(), [{ kind: 'failed', id: 2, code: 'WRITE_FAILED', written: 'unknown' }])
    assert.equal(partition.highWatermark, 1, 'nobody read what was not synced')
  })

  it('shares one group and one sync with all others that wait', t => {
    const { shard, disk } = stage(t)
    for (const id of [1, 2, 3]) shard.produce(id, 1, [record(`${id}`)])
    shard.group.run()
    assert.deepEqual(
      shard.answers().map(answer => (answer.kind === 'produced' ? answer.offsets : answer)),
      [[0], [1], [2]]
    )
    assert.deepEqual(
      disk.trace.map(({ point }) => point).filter(point => point.startsWith('group')),
      ['group.write', 'group.sync']
    )
  })

  it('that the full disk refuses was not written, and is taken again when there is room', t => {
    const { shard, disk } = stage(t)
    failNext(disk, 'group.write', 'ENOSPC')
    shard.produce(1, 1, [record('a')])
    shard.group.run()
    assert.deepEqual(shard.answers(), [{ kind: 'failed', id: 1, code: 'DISK_FULL', written: 'no' }])
    shard.produce(2, 1, [record('a')])
    shard.group.run()
    assert.deepEqual(shard.answers(), [{ kind: 'produced', id: 2, offsets: [0], duplicates: [false] }])
  })

  it('to a topic that was deleted while it was on its way is refused, and nothing of it is written', t => {
    const { shard, disk } = stage(t)
    shard.produce(1, 1, [record('a')])
    shard.log.table.drop(1)
    shard.group.run()
    assert.deepEqual(shard.answers(), [{ kind: 'failed', id: 1, code: 'TOPIC_NOT_FOUND', written: 'no' }])
    assert.deepEqual(
      disk.trace.filter(({ point }) => point === 'group.write'),
      []
    )
  })
})

describe('a retry of a record that is not synced yet', () => {
  it('joins the group of its original, and gets the same offset', t => {
    const { shard, disk } = stage(t)
    for (const id of [1, 2]) shard.produce(id, 1, [record('a', 7n)], 99)
    shard.group.run()
    assert.deepEqual(shard.answers(), [
      { kind: 'produced', id: 1, offsets: [0], duplicates: [false] },
      { kind: 'produced', id: 2, offsets: [0], duplicates: [true] }
    ])
    assert.equal(disk.trace.filter(({ point }) => point === 'group.sync').length, 1)
  })

  it('shares its fate: it is not called written when the sync fails', t => {
    const { shard, disk } = stage(t)
    for (const id of [1, 2]) shard.produce(id, 1, [record('a', 7n)], 99)
    failNext(disk, 'group.sync', 'EIO')
    assert.throws(() => shard.group.run(), ShardPoisoned)
    assert.deepEqual(shard.answers(), [
      { kind: 'failed', id: 1, code: 'WRITE_FAILED', written: 'unknown' },
      { kind: 'failed', id: 2, code: 'WRITE_FAILED', written: 'unknown' }
    ])
  })
})
