/**
 * Writing: the order of writes and syncs, full disks, failed syncs, time, and what a caller may conclude (W3 to W10).
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { BugError } from '../../../src/base/assert.ts'
import { DiskError } from '../../../src/disk/disk.ts'
import { FaultPlan, type FaultError } from '../../../src/disk/fault-plan.ts'
import type { FaultPoint } from '../../../src/disk/faults.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { poisons } from '../../../src/log/journal.ts'
import type { ShardLog, ShardLogOptions } from '../../../src/log/shard-log.ts'
import {
  ManualClock,
  append,
  gather,
  gatheredOffsets,
  notReady,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord,
  type TestRequest
} from '../../support/log-harness.ts'
import { diskOf, fileBytes, takeImage } from '../../support/log-image.ts'
import { InterruptibleDisk } from '../../support/log-interruptible-disk.ts'

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 2 ** 31 - 1 }

const request = (...values: string[]): TestRequest => ({
  firstHandle: 1,
  records: values.map((value, i) => textRecord(i % 3, null, value))
})

function start(disk: InterruptibleDisk | SimulatedDisk, options: Partial<ShardLogOptions> = {}): ShardLog {
  const log = openLog(disk, options)
  log.table.open(topic)
  return log
}

function valuesOf(log: ShardLog, partition = 0): string[] {
  return readBack(log, partitionOf(log, 1, partition)).records.map(record => record.value.toString())
}

/** Makes the next calls at that point fail. */
function failNext(
  disk: InterruptibleDisk,
  point: FaultPoint,
  code: FaultError,
  kind: 'error' | 'short' = 'error'
): void {
  const firstCall = disk.faults.callCount(point) + 1
  disk.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind, code } })
}

/** Gathers and writes a group without syncing it. */
function writeOnly(log: ShardLog, what: TestRequest): void {
  gather(log, [what])
  log.prepare()
  const index = log.encode()
  log.publish(index, log.write(index))
  log.encoder.reset()
}

/** Appends as a worker does: a group that the disk refuses is abandoned. @returns whether it was written. */
function tryAppend(log: ShardLog, what: TestRequest): boolean {
  gather(log, [what])
  let isPrepared = false
  try {
    log.prepare()
    isPrepared = true
    const index = log.encode()
    const position = log.write(index)
    log.sync()
    log.publish(index, position)
    return true
  } catch (error) {
    if (!(error instanceof DiskError) || poisons(error)) throw error
    if (isPrepared) log.abandonGroup()
    else log.encoder.rollback()
    return false
  } finally {
    log.encoder.reset()
  }
}

describe('a group', () => {
  it('is one write and one sync, whatever partitions and requests it holds, and the next waits for that sync', () => {
    const disk = new InterruptibleDisk(new SimulatedDisk())
    const log = start(disk)
    disk.trace.length = 0
    for (let i = 0; i < 5; i++) append(log, request('a', 'b', 'c'), request('d'))
    const points = disk.trace.map(call => call.point).filter(point => point.startsWith('group'))
    assert.deepEqual(points, Array.from({ length: 5 }, () => ['group.write', 'group.sync']).flat())
  })

  it('is written only to a slot whose header is synced', () => {
    const disk = new InterruptibleDisk(new SimulatedDisk())
    const log = start(disk)
    append(log, request('a'))
    const points = disk.trace.map(call => call.point)
    const begin = points.indexOf('slot.header-write')
    assert.deepEqual(points.slice(begin, begin + 4), [
      'slot.header-write',
      'slot.header-sync',
      'group.write',
      'group.sync'
    ])
  })

  it('gives offsets that follow each other in every partition', () => {
    const log = start(new SimulatedDisk())
    assert.deepEqual(append(log, request('a', 'b', 'c', 'd'), request('e')), [0, 0, 0, 1, 2])
    assert.deepEqual(append(log, request('f')), [3])
  })

  it('larger than a slot gets a slot of its own', () => {
    let disk = new SimulatedDisk()
    const log = start(disk)
    const value = 'v'.repeat(700_000)
    append(log, request('before'))
    append(log, request(value))
    append(log, request('after'))
    assert.deepEqual(valuesOf(log), ['before', value, 'after'])
    disk = disk.killProcess()
    assert.deepEqual(valuesOf(start(disk)), ['before', value, 'after'])
  })

  it('carries a receive time that never falls, though the clock jumps back, also over a restart', () => {
    const clock = new ManualClock(5_000_000)
    let disk = new SimulatedDisk()
    let log = start(disk, { clock })
    append(log, request('a'))
    clock.wallMs = 1_000_000
    append(log, request('b'))
    log.close()
    disk = disk.killProcess()
    log = start(disk, { clock })
    append(log, request('c'))
    clock.wallMs = 6_000_000
    append(log, request('d'))
    const times = readBack(log, partitionOf(log, 1, 0)).records.map(record => record.timestampMs)
    assert.deepEqual(times, [5_000_000, 5_000_000, 5_000_000, 6_000_000])
  })
})

describe('a full disk', () => {
  for (const point of ['group.write', 'slot.create', 'slot.header-write', 'slot.footer-write'] as const) {
    for (const kind of ['error', 'short'] as const) {
      it(`at ${point} (${kind}) refuses the group, loses nothing, and appends go on when there is room`, () => {
        const inner = new SimulatedDisk()
        const disk = new InterruptibleDisk(inner)
        const log = start(disk)
        const kept: string[] = []
        let refused = 0
        for (let i = 0; i < 40; i++) {
          if (i % 7 === 3) failNext(disk, point, 'ENOSPC', kind)
          const value = `${i} ${'v'.repeat(9000)}`
          if (tryAppend(log, request(value))) kept.push(value)
          else refused++
        }
        assert.ok(refused > 0, 'the disk was full at least once')
        assert.deepEqual(valuesOf(log), kept)
        assert.equal(partitionOf(log, 1, 0).nextOffset, kept.length)
        // Also on a disk that kept only what was synced, and on one that kept all.
        assert.deepEqual(valuesOf(start(diskOf(takeImage(inner)))), kept)
        assert.deepEqual(valuesOf(start(inner.crash(() => 0))), kept)
      })
    }
  }

  it('ends the slot: the next one says where it ended, and nothing behind that is ever replayed', () => {
    const inner = new SimulatedDisk()
    const disk = new InterruptibleDisk(inner)
    const log = start(disk)
    append(log, request('a'))
    failNext(disk, 'group.write', 'ENOSPC', 'short')
    assert.equal(tryAppend(log, request('x'.repeat(9000))), false)
    append(log, request('b'))
    const second = fileBytes(inner, '0002.slot')
    assert.deepEqual([second.readBigUInt64BE(16), second.readBigUInt64BE(32), second.readBigUInt64BE(40)], [2n, 1n, 1n])
    const again = start(inner.killProcess())
    assert.deepEqual([valuesOf(again), again.report.cutGroups], [['a', 'b'], 0])
  })

  it('does not lose what deferred syncs had acknowledged before', () => {
    const inner = new SimulatedDisk()
    const disk = new InterruptibleDisk(inner)
    const log = start(disk)
    append(log, request('a'))
    writeOnly(log, request('b'))
    failNext(disk, 'group.write', 'ENOSPC')
    assert.equal(tryAppend(log, request('c')), false)
    assert.equal(log.hasUnsynced, false)
    append(log, request('d'))
    assert.deepEqual(valuesOf(start(inner.crash(() => 0))), ['a', 'b', 'd'])
  })

  it('leaves no slot behind whose header could not be written', () => {
    const inner = new SimulatedDisk()
    const disk = new InterruptibleDisk(inner)
    const log = start(disk)
    failNext(disk, 'slot.header-write', 'ENOSPC', 'short')
    assert.equal(tryAppend(log, request('a')), false)
    assert.deepEqual(inner.list(testDirectory), [])
    append(log, request('b'))
    assert.deepEqual(valuesOf(start(inner.crash(() => 0))), ['b'])
  })
})

describe('a disk that can no longer be trusted', () => {
  for (const [point, code] of [
    ['group.sync', 'EIO'],
    ['group.sync', 'ENOSPC'],
    ['group.write', 'EIO'],
    ['slot.header-sync', 'EIO'],
    ['slot.footer-sync', 'EIO'],
    ['journal.directory-sync', 'EIO']
  ] as const) {
    it(`(${code} at ${point}) fails the append, and the log is never used again`, () => {
      const inner = new SimulatedDisk()
      const disk = new InterruptibleDisk(inner)
      const log = start(disk, { firstSlotBytes: 64 * 1024, slotBytes: 64 * 1024 })
      append(log, request('a'))
      failNext(disk, point, code)
      const appendUntilStruck = (): void => {
        for (let i = 0; i < 20; i++) append(log, request('v'.repeat(9000)))
      }
      assert.throws(
        appendUntilStruck,
        (error: unknown) => error instanceof DiskError && error.point === point && poisons(error)
      )
      assert.equal(log.isPoisoned, true)
      log.encoder.rollback()
      log.encoder.reset()
      const calls = disk.trace.length
      for (const use of [() => append(log, request('b')), () => log.sync()]) assert.throws(use, BugError)
      log.close()
      assert.equal(disk.trace.length, calls, 'nothing was written or synced after the failure')
      assert.equal(valuesOf(start(inner.killProcess()))[0], 'a')
    })
  }

  it('is not a disk that is full or out of file handles', () => {
    for (const code of ['ENOSPC', 'EMFILE', 'EACCES']) {
      assert.equal(poisons(new DiskError(code, 'group.write', code)), false)
      assert.equal(poisons(new DiskError(code, 'slot.create', code)), false)
    }
  })

  it('loses nothing that was acknowledged, though the failed sync dropped what it should have written', () => {
    for (let call = 1; call < 12; call++) {
      const failing = new SimulatedDisk({ faults: syncFault(call) })
      const acked: string[] = []
      try {
        const log = start(failing, { firstSlotBytes: 64 * 1024, slotBytes: 64 * 1024 })
        for (let i = 0; i < 20; i++) {
          const value = `${i} ${'v'.repeat(9000)}`
          append(log, request(value))
          acked.push(value)
        }
      } catch (error) {
        if (!(error instanceof DiskError)) throw error
      }
      // The next process sees the page cache; what it serves must survive the power cut that follows.
      const second = failing.killProcess()
      const served = valuesOf(start(second))
      assert.deepEqual(served.slice(0, acked.length), acked, `sync ${call}`)
      assert.deepEqual(valuesOf(start(second.crash(() => 0))), served, `sync ${call}`)
    }
  })
})

function syncFault(call: number): FaultPlan {
  const plan = new FaultPlan()
  const points = ['group.sync', 'slot.header-sync', 'slot.footer-sync'] as const
  for (const point of points)
    plan.arm({ point, firstCall: call, lastCall: call, fault: { kind: 'error', code: 'EIO' } })
  return plan
}

describe('deferred syncs', () => {
  it('lose at most what came after the last one, and a kill loses nothing', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    append(log, request('a'))
    writeOnly(log, request('b'))
    writeOnly(log, request('c'))
    assert.equal(log.hasUnsynced, true)
    assert.deepEqual(valuesOf(log), ['a', 'b', 'c'])
    // The second group's header says that the first was synced; the others are in doubt.
    const killed = start(diskOf(takeImage(disk)))
    assert.deepEqual([valuesOf(killed), killed.report.copiedGroups], [['a', 'b', 'c'], 2])
    assert.deepEqual(valuesOf(start(disk.crash(() => 0))), ['a'])
  })

  it('are made up for before a slot is left, and at a clean end', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    for (let i = 0; i < 40; i++) writeOnly(log, request(`${i} ${'v'.repeat(9000)}`))
    assert.ok(log.rolledSlots > 0)
    log.close()
    assert.equal(valuesOf(start(disk.crash(() => 0))).length, 40)
  })

  it('take damage in the middle for damage, once any later group says that it was synced', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    for (const value of ['a', 'b', 'c']) writeOnly(log, request(value))
    log.sync()
    append(log, request('d'))
    append(log, request('e'))
    const image = takeImage(disk)
    const slot = image.get('0001.slot')
    assert.ok(slot !== undefined)
    // The second group loses a byte of its record; the third was written before any sync of the second.
    slot[8192 + 4096 + 150] = 0xff
    const again = start(diskOf(image))
    const { records, damaged } = readBack(again, partitionOf(again, 1, 0))
    assert.deepEqual(
      records.map(record => record.value.toString()),
      ['a', 'c', 'd', 'e']
    )
    assert.deepEqual(damaged, [{ firstOffset: 1, lastOffset: 1 }])
  })

  it('begin a new epoch everywhere if whole groups stand behind the torn one', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    append(log, { firstHandle: 1, records: [0, 1, 2].map(partition => textRecord(partition, null, 'a')) })
    writeOnly(log, { firstHandle: 1, records: [textRecord(0, null, 'torn')] })
    writeOnly(log, { firstHandle: 1, records: [textRecord(1, null, 'whole, but behind it')] })
    const image = takeImage(disk)
    image.get('0001.slot')?.fill(0, 8192 + 4096 + 150, 8192 + 8192)
    const again = start(diskOf(image))
    assert.equal(again.report.cutGroups, 1)
    assert.deepEqual(
      [0, 1, 2].map(partition => valuesOf(again, partition)),
      [['a'], ['a'], ['a']]
    )
    assert.deepEqual(
      [0, 1, 2].map(partition => partitionOf(again, 1, partition).leaderEpoch),
      [1, 1, 1]
    )
  })
})

describe('a group that was gathered and not written', () => {
  it('leaves offsets, sizes and segments as they were', () => {
    const log = openLog(new SimulatedDisk())
    log.table.open({ ...topic, segmentBytes: 300 })
    append(log, request('a', 'b', 'c'))
    const state = (): unknown =>
      [0, 1, 2].map(partition => {
        const { nextOffset, highWatermark, sizeBytes, segmentCount } = partitionOf(log, 1, partition)
        return [nextOffset, highWatermark, sizeBytes, segmentCount]
      })
    const before = state()
    gather(log, [request(...Array.from({ length: 30 }, (_, i) => `value ${i}`))])
    assert.notDeepEqual(state(), before)
    assert.equal(gatheredOffsets(log).length, 30)
    log.encoder.rollback()
    log.encoder.reset()
    assert.deepEqual(state(), before)
    append(log, request('d'))
    assert.deepEqual(valuesOf(log), ['a', 'd'])
  })
})

describe('a journal whose chain is broken', () => {
  it('is refused when a slot has a sequence number twice', () => {
    const disk = new SimulatedDisk()
    append(start(disk), request('a'))
    const image = new Map(takeImage(disk))
    image.set('0002.slot', Buffer.from(image.get('0001.slot') ?? Buffer.alloc(0)))
    assert.throws(() => start(diskOf(image)), notReady(/slot 1 \(0002\.slot\) where slot 2 is expected/))
  })
})
