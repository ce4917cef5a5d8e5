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
  /** Log lines, and answers to whoever asked for a pass. */
  readonly said: string[]
  /** Jobs asked of the settler for what was dropped. */
  dropped: number
}

/** @param lookMs what each look at the clock costs. */
function stage(isTiered = false, lookMs = 0): Stage {
  const clock = new ManualClock()
  let looks = 0
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
    replies: {
      log: (_level, message) => said.push(message),
      acknowledge: id => said.push(`done ${id}`),
      refuseByDisk: (id, what, isFull) => said.push(`${what} ${id}: ${isFull ? 'full' : 'refused'}`)
    },
    counters,
    settings: { intervalMs: 60_000, segmentMs: 1_000_000, isTiered },
    monotonicMs: () => clock.monotonicMs() + lookMs * looks++,
    nowMs: () => clock.nowMs(),
    finishGroup: () => undefined
  })
  built.stage = { clock, faults, log, cleaning, counters, said, dropped: 0 }
  return built.stage
}

/** A pass to its end. @returns turns that it took. */
function pass({ cleaning }: Stage, id = 1): number {
  cleaning.ask(id)
  let turns = 0
  for (; cleaning.isAwaited; turns++) cleaning.turn()
  return turns
}

describe('retention on a shard', () => {
  it('moves no start offset where cold storage takes what has had its time', () => {
    const tiered = stage(true)
    pass(tiered)
    assert.deepEqual([partitionOf(tiered.log, 1, 0).startOffset, tiered.said], [0, ['done 1']])
    const without = stage(false)
    pass(without)
    assert.ok(partitionOf(without.log, 1, 0).startOffset > 0)
  })

  it('moves nothing when the disk is full, says so once, is tried again soon, and then succeeds', () => {
    const built = stage()
    const { clock, faults, log, cleaning, counters, said } = built
    const partition = partitionOf(log, 1, 0)
    faults.arm({ point: 'group.write', firstCall: 1, lastCall: 10_000, fault: { kind: 'error', code: 'ENOSPC' } })
    pass(built, 1)
    pass(built, 2)
    assert.deepEqual([partition.startOffset, counters[counterIndex.retentionFailing]], [0, 1])
    const refused = ['retention was refused by the disk; it is tried again', 'retention 1: full', 'retention 2: full']
    assert.deepEqual(said, refused)
    assert.ok(cleaning.dueMs - clock.monotonicMs() <= 5000)
    faults.disarm()
    clock.wallMs = cleaning.dueMs
    cleaning.turn()
    assert.ok(partition.startOffset > 10 && partition.sizeBytes <= 1000)
    assert.equal(counters[counterIndex.retentionFailing], 0)
    assert.deepEqual(said.slice(3), ['retention works again'])
    assert.ok((counters[counterIndex.retentionSegments] ?? 0) > 3)
    append(log, { firstHandle: 1, records: [textRecord(0, null, 'more')] })
    assert.equal(partition.highWatermark, 21)
  })

  it('seals a segment at the age that its topic says, not at that of the others', () => {
    const built = stage()
    const partition = partitionOf(built.log, 1, 0)
    const topic = { firstHandle: 1, partitionCount: 1, segmentBytes: 500 }
    built.log.table.configure({ ...topic, segmentMs: 2n ** 64n - 1n })
    built.clock.wallMs += 2_000_000
    pass(built)
    assert.ok(partition.activeBytes > 0)
    append(built.log, { firstHandle: 1, records: [textRecord(0, null, 'z')] })
    built.log.table.configure({ ...topic, segmentMs: 50 })
    built.clock.wallMs += 50
    pass(built)
    assert.equal(partition.activeBytes, 0)
  })

  it('seals a segment by age, whatever time its records claim', () => {
    const built = stage()
    const partition = partitionOf(built.log, 1, 0)
    pass(built)
    assert.ok(partition.activeBytes > 0)
    built.clock.wallMs += 1_000_000
    pass(built)
    assert.deepEqual([partition.activeBytes, partition.highWatermark], [0, 20])
  })

  it('ends the shard when a sync failed: it cannot know what is on disk', () => {
    const built = stage()
    const { faults, log } = built
    faults.arm({ point: 'group.sync', firstCall: 1, lastCall: 10_000, fault: { kind: 'error', code: 'EIO' } })
    assert.throws(() => pass(built), /EIO at group.sync/)
    assert.equal(log.isPoisoned, true)
  })

  it('gives way between the partitions, and answers those who asked before the pass began', () => {
    const built = stage(false, 0.2)
    const { log, cleaning, said } = built
    const retention = { retentionMs: null, retentionBytes: 1000, cleanupPolicy: 'delete' } as const
    const wide = { firstHandle: 10, partitionCount: 1000, segmentBytes: 500, retention }
    log.table.open(wide)
    for (let i = 0; i < 10; i++)
      append(log, { firstHandle: 10, records: [3, 997].map(n => textRecord(n, null, 'x'.repeat(200))) })
    const starts = (): boolean[] =>
      [partitionOf(log, 1, 0), partitionOf(log, 10, 3), partitionOf(log, 10, 997)].map(
        ({ startOffset }) => startOffset > 0
      )
    cleaning.ask(1)
    cleaning.turn()
    assert.deepEqual(starts(), [true, true, false], 'what was looked at has moved')
    cleaning.ask(2)
    assert.equal(cleaning.dueMs, 0, 'it does not wait for the next interval')
    while (said.length === 0) cleaning.turn()
    assert.deepEqual([starts(), said], [[true, true, true], ['done 1']])
    const turns = pass(built, 3)
    assert.ok(turns > 2 && turns < 10, `${turns} turns`)
    assert.deepEqual(said, ['done 1', 'done 2', 'done 3'])
  })

  it('passes over a topic that is deleted while it is at it', () => {
    const { log, cleaning, said } = stage(false, 0.6)
    log.table.open({ firstHandle: 10, partitionCount: 1000, segmentBytes: 500 })
    cleaning.ask(1)
    cleaning.turn()
    assert.deepEqual(said, [])
    log.table.drop(10)
    cleaning.turn()
    assert.deepEqual(said, ['done 1'])
  })
})
