/**
 * Starting again after a clean end, a kill and a power cut (V1, V3, V5, W1, W9): what is read, copied, cut, kept.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import type { Disk } from '../../../src/disk/disk.ts'
import type { ShardLog, ShardLogOptions } from '../../../src/log/shard-log.ts'
import { beginFill, fillSlot } from '../../../src/log/slot-files.ts'
import {
  append,
  gather,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord,
  type TestRequest
} from '../../support/log-harness.ts'
import { diskOf, fileBytes, takeImage, withChange, withFlip } from '../../support/log-image.ts'
import { Interruption, InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { diceOf } from '../../support/log-random.ts'

const topic = { firstHandle: 1, partitionCount: 2, segmentBytes: 2 ** 31 - 1 }
const other = { firstHandle: 7, partitionCount: 1, segmentBytes: 2 ** 31 - 1 }

function start(disk: Disk, options: Partial<ShardLogOptions> = {}): ShardLog {
  const log = openLog(disk, options)
  log.table.open(topic)
  log.table.open(other)
  return log
}

/** A start that is stopped at its n-th changing call, if it makes as many. */
function startStopped(disk: Disk, call: number, performs: boolean): void {
  const interruptible = new InterruptibleDisk(disk)
  interruptible.stopAt(call, performs)
  try {
    start(interruptible)
  } catch (error) {
    if (!(error instanceof Interruption)) throw error
  }
}

const one = (partition: number, value: string): TestRequest => ({
  firstHandle: topic.firstHandle,
  records: [textRecord(partition, 'key', value)]
})

/** Writes a group and does not sync it. */
function writeUnsynced(log: ShardLog, ...requests: TestRequest[]): void {
  gather(log, requests)
  log.prepare()
  const index = log.encode()
  log.publish(index, log.write(index))
  log.encoder.reset()
}

function valuesOf(log: ShardLog, partition: number): string[] {
  return readBack(log, partitionOf(log, topic.firstHandle, partition)).records.map(record => record.value.toString())
}

const slotNames = (disk: Disk): string[] => disk.list(testDirectory).filter(name => name.endsWith('.slot'))

describe('a start after a clean end', () => {
  it('reads footers only, however much the slots hold', () => {
    let disk = new SimulatedDisk()
    const log = start(disk, { firstSlotBytes: 2 * 1024 * 1024 })
    for (let i = 0; i < 100; i++) append(log, one(0, 'v'.repeat(9000)))
    log.close()
    disk = disk.killProcess()
    const again = start(disk)
    // 100 entries of 64 bytes, the tail block, and what stands between them in the last blocks.
    assert.ok(again.report.scannedBytes <= 4 * 4096, `${again.report.scannedBytes} bytes were read`)
    assert.deepEqual([again.report.groups, again.report.copiedGroups, again.report.cutGroups], [100, 0, 0])
    assert.equal(valuesOf(again, 0).length, 100)
  })

  it('goes on where the end was, in a fresh slot', () => {
    let disk = new SimulatedDisk()
    append(start(disk), one(0, 'a'))
    const log = start((disk = disk.killProcess()))
    log.close()
    const again = start((disk = disk.killProcess()))
    assert.deepEqual(append(again, one(0, 'b'), one(1, 'c')), [1, 0])
    assert.deepEqual([valuesOf(again, 0), valuesOf(again, 1)], [['a', 'b'], ['c']])
  })

  it('finds nothing in a log that was never written to', () => {
    let disk = new SimulatedDisk()
    start(disk).close()
    disk = disk.killProcess()
    assert.deepEqual([start(disk).report.groups, slotNames(disk)], [0, ['0001.slot']])
  })
})

describe('a start after a kill', () => {
  it('reads the open slot only', () => {
    let disk = new SimulatedDisk()
    const log = start(disk)
    while (log.rolledSlots < 3) append(log, one(0, 'v'.repeat(9000)))
    disk = disk.killProcess()
    const again = start(disk)
    // Three footers of less than two blocks with their tails, and one slot.
    assert.ok(again.report.scannedBytes <= 3 * 5 * 4096 + 256 * 1024, `${again.report.scannedBytes} bytes were read`)
    assert.equal(again.report.slots, 4)
  })

  it('copies the last group to a fresh slot and syncs it there before anyone reads it', () => {
    let disk = new SimulatedDisk()
    const log = start(disk)
    append(log, one(0, 'synced'))
    writeUnsynced(log, one(0, 'perhaps never synced'))
    disk = disk.killProcess()
    const again = start(disk)
    assert.equal(again.report.copiedGroups, 1)
    assert.equal(slotNames(disk).length, 2)
    const runs = partitionOf(again, 1, 0).runs
    assert.deepEqual([runs.slot(0), runs.slot(1)], [0, 1])
    // It was served, so no power cut may take it back.
    assert.deepEqual(valuesOf(again, 0), ['synced', 'perhaps never synced'])
    assert.deepEqual(valuesOf(start(disk.crash(() => 0)), 0), ['synced', 'perhaps never synced'])
  })

  it('keeps what was acknowledged last if the power fails while the slot for its copy gets its header', () => {
    for (let cut = 0; cut < 40; cut++) {
      let disk = new SimulatedDisk()
      append(start(disk), one(0, 'acknowledged'))
      disk = disk.killProcess()
      // The header of the slot that is there is confirmed first; the second one makes the copy count.
      startStopped(disk, callsUntil(disk, 'slot.header-write', 2), true)
      assert.deepEqual(valuesOf(start(disk.crash(diceOf(cut).unit)), 0), ['acknowledged'], `cut ${cut}`)
    }
  })

  it('never appends to a slot that it found', () => {
    let disk = new SimulatedDisk()
    append(start(disk), one(0, 'a'))
    disk = disk.killProcess()
    const recorder = new InterruptibleDisk(disk)
    const log = start(recorder)
    append(log, one(0, 'b'))
    const written = recorder.trace.filter(call => call.point === 'group.write').map(call => call.path)
    assert.deepEqual(new Set(written), new Set([`${testDirectory}/0002.slot`]))
  })

  it('survives being killed at every step of every start, and power cuts in between', () => {
    for (let call = 1; call < 60; call++) {
      for (const performs of [false, true]) {
        let disk = new SimulatedDisk()
        const log = start(disk)
        append(log, one(0, 'a'), one(1, 'b'))
        writeUnsynced(log, one(0, 'c'))
        disk = disk.killProcess()
        const dice = diceOf(call)
        for (let round = 0; round < 3; round++) {
          startStopped(disk, call, performs)
          disk = round === 1 ? disk.crash(dice.unit) : disk.killProcess()
        }
        const values = valuesOf(start(disk), 0)
        assert.deepEqual(values.slice(0, 1), ['a'], `call ${call}`)
        assert.ok(values.length === 1 || values[1] === 'c', `call ${call}`)
      }
    }
  })

  it('keeps a record that it served, though the slot before it was known to the page cache only', () => {
    // Killed between writing and syncing the header of the slot for copies; then the power fails at each step.
    let disk = new SimulatedDisk()
    writeUnsynced(start(disk), one(0, 'a'))
    disk = disk.killProcess()
    const interruptible = new InterruptibleDisk(disk)
    const headerSync = callsUntil(disk, 'slot.header-sync', 2)
    interruptible.stopAt(headerSync, false)
    assert.throws(() => start(interruptible), Interruption)
    disk = disk.killProcess()
    assert.deepEqual(valuesOf(start(disk), 0), ['a'])
    assert.deepEqual(valuesOf(start(disk.crash(() => 0)), 0), ['a'])
  })
})

/** The number of changing calls a start makes up to the n-th at that point. */
function callsUntil(disk: SimulatedDisk, point: string, count: number): number {
  const probe = new InterruptibleDisk(diskOf(takeImage(disk)))
  start(probe)
  let seen = 0
  const index = probe.trace.findIndex(call => call.point === point && ++seen === count)
  assert.ok(index >= 0, `a start has ${count} calls of ${point}`)
  return index + 1
}

describe('a torn tail', () => {
  /** Two synced groups, and a third of which only the first 512 bytes came to disk. */
  function tornDisk(): SimulatedDisk {
    const disk = new SimulatedDisk()
    const log = start(disk)
    append(log, one(0, 'a'), { firstHandle: 7, records: [textRecord(0, null, 'other')] })
    append(log, one(1, 'b'))
    writeUnsynced(log, one(0, 'x'.repeat(3000)))
    const position = 8192 + 2 * 4096
    return diskOf(withChange(takeImage(disk), '0001.slot', bytes => bytes.fill(0, position + 512)))
  }

  it('is cut, reported, and begins a new leader epoch of its partition', () => {
    const log = start(tornDisk())
    assert.deepEqual([valuesOf(log, 0), valuesOf(log, 1)], [['a'], ['b']])
    assert.equal(log.report.cutGroups, 1)
    assert.deepEqual(
      [0, 1].map(partition => partitionOf(log, 1, partition).leaderEpoch),
      [1, 0]
    )
    append(log, one(0, 'c'))
    const epochs = readBack(log, partitionOf(log, 1, 0)).records.map(record => record.leaderEpoch)
    assert.deepEqual(epochs, [0, 1])
  })

  it('begins a new leader epoch of every partition if the directory of the torn group is unreadable', () => {
    const image = withFlip(takeImage(tornDisk()), '0001.slot', 8192 + 2 * 4096 + 80)
    const log = start(diskOf(image))
    assert.deepEqual(
      [partitionOf(log, 1, 0), partitionOf(log, 1, 1), partitionOf(log, 7, 0)].map(l => l.leaderEpoch),
      [1, 1, 1]
    )
  })

  it('is cut once: the new epoch is durable, and the next start cuts nothing', () => {
    for (const unit of [0, 0.5, 0.999]) {
      let disk = tornDisk()
      start(disk)
      disk = disk.crash(() => unit)
      const log = start(disk)
      assert.deepEqual([log.report.cutGroups, partitionOf(log, 1, 0).leaderEpoch], [0, 1])
      append(log, one(0, 'c'))
      const again = start(disk.killProcess())
      assert.deepEqual([again.report.cutGroups, partitionOf(again, 1, 0).leaderEpoch], [0, 1])
    }
  })

  it('has its new epoch or is still there to be cut, wherever the start that cuts it is killed', () => {
    for (let call = 1; call < 40; call++) {
      const disk = tornDisk()
      startStopped(disk, call, true)
      const log = start(disk.killProcess())
      assert.ok(partitionOf(log, 1, 0).leaderEpoch >= 1, `call ${call}`)
    }
  })
})

describe('a slot file that was used before', () => {
  /** A spare in which the bytes of a whole earlier use stand, groups with the expected numbers among them. */
  function usedDisk(): SimulatedDisk {
    let old = new SimulatedDisk()
    start(old).prepare()
    old = old.killProcess()
    const log = start(old, oldSalt)
    for (const value of ['old 1', 'old 2', 'old 3']) append(log, one(0, value))
    const used = fileBytes(old, '0002.slot').fill(0, 0, 8192)
    return diskOf(new Map([['0001.slot', Buffer.concat([used, Buffer.alloc(64 * 1024)])]]))
  }
  const oldSalt = { drawSalt: (): Buffer => Buffer.from('old salt') }

  it('does not pass old groups for new ones', () => {
    let disk = usedDisk()
    const log = start(disk, { drawSalt: () => Buffer.from('new salt') })
    assert.deepEqual(log.report.groups, 0)
    append(log, one(0, 'new'))
    assert.equal(fileBytes(disk, '0001.slot').toString('latin1', 12288, 12292), 'MGRP')
    disk = disk.killProcess()
    const again = start(disk)
    assert.deepEqual([valuesOf(again, 0), again.report.cutGroups], [['new'], 0])
  })

  it('would pass them off if the salt were the same, so that the test above can fail', () => {
    const disk = usedDisk()
    append(start(disk, oldSalt), one(0, 'new'))
    assert.deepEqual(valuesOf(start(disk.killProcess()), 0), ['new', 'old 2', 'old 3'])
  })

  it('does not pass record bytes off for a group', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    append(log, one(0, 'a'))
    const group = fileBytes(disk, '0001.slot').subarray(8192, 12288)
    // A client sends whole groups in every alignment that a block can have.
    for (let shift = 0; shift < 4096; shift += 512) {
      const value = Buffer.concat([Buffer.alloc(shift), group, group])
      append(log, { firstHandle: 1, records: [{ partition: 1, key: null, value }] })
    }
    const torn = withChange(takeImage(disk), '0001.slot', bytes => bytes.fill(0, 12288, 12288 + 64))
    const again = start(diskOf(torn))
    assert.deepEqual(valuesOf(again, 0), ['a'])
    assert.equal(again.report.quarantinedRuns, 0)
  })
})

describe('filling slots ahead', () => {
  it('leaves no half-filled file behind and never uses one', () => {
    for (let call = 1; call <= 9; call++) {
      let disk = new SimulatedDisk()
      const log = start(disk)
      append(log, one(0, 'a'))
      const interruptible = new InterruptibleDisk(disk)
      interruptible.stopAt(call, false)
      const bytes = 3 * 1024 * 1024
      assert.throws(() => fillSlot(interruptible, testDirectory, '0002.slot', bytes), Interruption)
      disk = disk.killProcess()
      const again = start(disk)
      assert.deepEqual(
        disk.list(testDirectory).filter(name => name.endsWith('.filling')),
        []
      )
      const sizes = new Set(slotNames(disk).map(name => fileBytes(disk, name).length))
      assert.equal(sizes.has(bytes), call === 9, `stopped at call ${call}`)
      assert.deepEqual(valuesOf(again, 0), ['a'])
    }
  })

  it('takes a spare whose name was not durable when the process was killed, and makes it so', () => {
    let disk = new SimulatedDisk()
    start(disk).close()
    const interruptible = new InterruptibleDisk(disk)
    const filler = beginFill(interruptible, testDirectory, '0002.slot', 512 * 1024)
    interruptible.stopAt(4, false)
    assert.throws(() => filler.step(), Interruption)
    disk = disk.killProcess()
    const log = start(disk)
    append(log, one(0, 'v'.repeat(300_000)))
    assert.equal(partitionOf(log, 1, 0).runs.count, 1)
    assert.equal(valuesOf(start(disk.crash(() => 0)), 0).length, 1)
  })

  it('goes on from a file that an earlier fill of the same name left', () => {
    const disk = new SimulatedDisk()
    const log = start(disk)
    beginFill(disk, testDirectory, '0005.slot', 2 * 1024 * 1024).step()
    fillSlot(disk, testDirectory, '0005.slot', 1024 * 1024)
    assert.equal(fileBytes(disk, '0005.slot').length, 1024 * 1024)
    log.close()
  })
})

describe('handles that no topic claims', () => {
  it('are kept and named, and are served again once their topic is opened', () => {
    let disk = new SimulatedDisk()
    append(start(disk), one(0, 'a'), { firstHandle: 7, records: [textRecord(0, null, 'kept')] })
    disk = disk.killProcess()
    const log = openLog(disk)
    log.table.open(topic)
    assert.deepEqual(log.table.unclaimedHandles(), [7])
    log.table.open(other)
    assert.deepEqual(log.table.unclaimedHandles(), [])
    assert.equal(readBack(log, partitionOf(log, 7, 0)).records.length, 1)
  })
})
