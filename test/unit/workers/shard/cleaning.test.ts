/** Retention that the disk refuses: nothing moves, it is visible, and it is tried again until it succeeds. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { FaultPlan } from '../../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { counterIndex, createCounters } from '../../../../src/wire/shard/counters.ts'
import { Cleaning } from '../../../../workers/shard/cleaning.ts'
import { ManualClock, append, openLog, partitionOf, textRecord } from '../../../support/log-harness.ts'

interface Stage {
  readonly clock: ManualClock
  readonly faults: FaultPlan
  readonly log: ShardLog
  readonly cleaning: Cleaning
  readonly counters: Float64Array
  readonly said: string[]
  /** Jobs asked of the settler for what was dropped. */
  dropped: number
}

function stage(isTiered = false): Stage {
  const clock = new ManualClock()
  const faults = new FaultPlan()
  const log = openLog(new SimulatedDisk({ faults }), { clock })
  log.table.open({
    firstHandle: 1,
    partitionCount: 1,
    segmentBytes: 500,
    retention: { retentionMs: null, retentionBytes: 1000, cleanupPolicy: 'delete' }
  })
  for (let i = 0; i < 20; i++) append(log, { firstHandle: 1, records: [textRecord(0, null, `${i}`.padEnd(200, 'x'))] })
  const counters = new Float64Array(createCounters())
  const said: string[] = []
  const built: { stage?: Stage } = {}
  const cleaning = new Cleaning({
    log,
    settling: {
      turn: () => undefined,
      noteDropped: () => {
        if (built.stage !== undefined) built.stage.dropped++
      }
    },
    replies: { log: (_level, message) => said.push(message) },
    counters,
    settings: { intervalMs: 60_000, segmentMs: 1_000_000, isTiered },
    monotonicMs: () => clock.monotonicMs(),
    nowMs: () => clock.nowMs(),
    finishGroup: () => undefined
  })
  built.stage = { clock, faults, log, cleaning, counters, said, dropped: 0 }
  return built.stage
}

describe('retention on a shard', () => {
  it('moves no start offset where cold storage takes what has had its time', () => {
    const { log, cleaning } = stage(true)
    assert.equal(cleaning.run(), null)
    assert.equal(partitionOf(log, 1, 0).startOffset, 0)
    const without = stage(false)
    without.cleaning.run()
    assert.ok(partitionOf(without.log, 1, 0).startOffset > 0)
  })

  it('moves nothing when the disk is full, says so once, is tried again soon, and then succeeds', () => {
    const { clock, faults, log, cleaning, counters, said } = stage()
    const partition = partitionOf(log, 1, 0)
    faults.arm({ point: 'group.write', firstCall: 1, lastCall: 10_000, fault: { kind: 'error', code: 'ENOSPC' } })
    assert.equal(cleaning.run()?.code, 'ENOSPC')
    assert.equal(cleaning.run()?.code, 'ENOSPC')
    assert.deepEqual([partition.startOffset, counters[counterIndex.retentionFailing]], [0, 1])
    assert.deepEqual(said, ['retention was refused by the disk; it is tried again'])
    assert.ok(cleaning.dueMs - clock.monotonicMs() <= 5000)
    faults.disarm()
    clock.wallMs = cleaning.dueMs
    cleaning.turn()
    assert.ok(partition.startOffset > 10 && partition.sizeBytes <= 1000)
    assert.equal(counters[counterIndex.retentionFailing], 0)
    assert.deepEqual(said.slice(1), ['retention works again'])
    assert.ok((counters[counterIndex.retentionSegments] ?? 0) > 3)
    append(log, { firstHandle: 1, records: [textRecord(0, null, 'more')] })
    assert.equal(partition.highWatermark, 21)
  })

  it('seals a segment by age, whatever time its records claim', () => {
    const { clock, log, cleaning } = stage()
    const partition = partitionOf(log, 1, 0)
    cleaning.run()
    assert.ok(partition.activeBytes > 0)
    clock.wallMs += 1_000_000
    cleaning.run()
    assert.deepEqual([partition.activeBytes, partition.highWatermark], [0, 20])
  })

  it('ends the shard when a sync failed: it cannot know what is on disk', () => {
    const { faults, log, cleaning } = stage()
    faults.arm({ point: 'group.sync', firstCall: 1, lastCall: 10_000, fault: { kind: 'error', code: 'EIO' } })
    assert.throws(() => cleaning.run(), /EIO at group.sync/)
    assert.equal(log.isPoisoned, true)
  })
})
