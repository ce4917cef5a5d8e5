/** When a shard asks for settling, what it answers to whoever waits for it, and how it slows produce meanwhile (S4). */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { MessageChannel } from 'node:worker_threads'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { counterIndex, createCounters } from '../../../../src/wire/shard/counters.ts'
import type { SettleReport, SettleWish } from '../../../../src/wire/shard/settle.ts'
import { Settling } from '../../../../workers/shard/settling.ts'
import { atEnd } from '../../../support/clean-up.ts'
import { ManualClock, append, openLog, textRecord } from '../../../support/log-harness.ts'

const SLOT_BYTES = 128 * 1024

interface Stage {
  readonly clock: ManualClock
  readonly log: ShardLog
  readonly settling: Settling
  /** What was answered and asked for, in words. */
  readonly said: string[]
  readonly wishes: SettleWish[]
  readonly logged: unknown[]
  readonly counters: Float64Array
}

function stage(t: TestContext, budgetBytes: number): Stage {
  const clock = new ManualClock()
  const log = openLog(new SimulatedDisk(), { clock })
  log.table.open({ firstHandle: 1, partitionCount: 1, segmentBytes: 2 ** 30 })
  const said: string[] = []
  const wishes: SettleWish[] = []
  const logged: unknown[] = []
  const counters = new Float64Array(createCounters())
  const { port1, port2 } = new MessageChannel()
  atEnd(t, () => port1.close())
  const settling = new Settling({
    log,
    replies: {
      acknowledge: id => said.push(`done ${id}`),
      refuseByDisk: (id, what, isFull) => said.push(`${what} ${id}: ${isFull ? 'full' : 'refused'}`),
      event: event => {
        said.push(event.kind)
        if (event.kind === 'settle-wanted') wishes.push(event.wish)
      },
      log: (level, message, fields) => logged.push([level, message, fields])
    },
    changes: port2,
    counters,
    settings: { budgetBytes, idleMs: 1000, ageMs: 60_000 },
    monotonicMs: () => clock.monotonicMs()
  })
  return { clock, log, settling, said, wishes, logged, counters }
}

function write(log: ShardLog): void {
  append(log, { firstHandle: 1, records: [textRecord(0, null, 'x'.repeat(1000))] })
}

describe('a shard that is asked to settle all', () => {
  it('answers at once when it has nothing, and settles nothing sooner for it', t => {
    const { clock, log, settling, said } = stage(t, 100 * SLOT_BYTES)
    settling.settleAll(5)
    assert.deepEqual(said, ['done 5'])
    write(log)
    log.sealOpenSlot()
    settling.turn(true)
    assert.deepEqual(said, ['done 5'])
    clock.wallMs += 1000
    settling.turn(false)
    assert.deepEqual(said, ['done 5', 'settle-wanted'], 'it was idle for a second')
  })

  it('tells a full disk from one that refuses, and tries again', t => {
    const { clock, log, settling, said } = stage(t, 100 * SLOT_BYTES)
    for (const [id, isFull] of [
      [1, true],
      [2, false]
    ] as const) {
      write(log)
      settling.settleAll(id)
      settling.turn(false)
      settling.fail({ problem: 'no', isFull, isUnread: false })
      settling.turn(false)
      clock.wallMs += 30_000
    }
    settling.turn(false)
    assert.deepEqual(said, [
      'settle-wanted',
      'settling the journal 1: full',
      'settle-wanted',
      'settling the journal 2: refused',
      'settle-wanted'
    ])
  })
})

describe('a shard whose slots cannot be read', () => {
  const report: SettleReport = {
    sequence: 1,
    readBytes: 0,
    writtenBytes: 0,
    milliseconds: 1,
    damagedRuns: 3,
    damaged: [
      { handle: 1, firstOffset: 5, nextOffset: 7, isKept: false },
      { handle: 1, firstOffset: 9, nextOffset: 10, isKept: true }
    ],
    isDirect: true,
    nextRemovalMs: null,
    unused: []
  }

  it('counts the jobs in a row that ended so, and tells the settler', t => {
    const { clock, log, settling, wishes } = stage(t, 100 * SLOT_BYTES)
    write(log)
    settling.settleAll(1)
    for (const isUnread of [true, true, false, true]) {
      settling.turn(false)
      settling.fail({ problem: 'no', isFull: false, isUnread })
      clock.wallMs += 30_000
    }
    settling.turn(false)
    settling.finish({ ...report, damagedRuns: 0, damaged: [] })
    write(log)
    settling.settleAll(2)
    settling.turn(false)
    assert.deepEqual(
      wishes.map(({ unreadJobs }) => unreadJobs),
      [0, 1, 2, 2, 3, 0]
    )
  })

  it('says which offsets are lost, and how many ranges', t => {
    const { settling, logged, counters } = stage(t, 100 * SLOT_BYTES)
    settling.finish(report)
    assert.deepEqual(logged, [
      [
        'error',
        'records could not be read while settling, and are given up: see millrace quarantine',
        { handle: 1, first: 5, last: 6 }
      ],
      [
        'error',
        'damaged data was met while settling, and put aside: see millrace quarantine',
        { handle: 1, first: 9, last: 9 }
      ],
      ['error', 'more damaged data was met than is named here: see millrace quarantine', { damagedRuns: 3 }]
    ])
    assert.equal(counters[counterIndex.damagedRuns], 3)
  })
})

describe('produce, while the journal fills its budget', () => {
  it('is free up to three quarters, then slower and slower, and free again when the shard stops', t => {
    const holdAt = (share: number): number => {
      const { log, settling } = stage(t, SLOT_BYTES / share)
      write(log)
      settling.noteGroup(10_000_000)
      const held = settling.holdMs
      settling.isOpen = true
      assert.equal(settling.holdMs, 0)
      return Math.round(held)
    }
    assert.deepEqual(
      [0.5, 0.74, 0.76, 0.9, 1, 1.05, 2].map(holdAt),
      [0, 0, 17, 30, 67, 100, 100],
      '100 ms a look at most'
    )
  })
})
