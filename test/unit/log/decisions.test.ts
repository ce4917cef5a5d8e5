/** What an operator gave up: written whole or not at all, and no wider than it was meant. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { Decisions, LossWatch, readDecisions, writeDecisions, type Decision } from '../../../src/log/decisions.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import {
  append,
  notReady,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord
} from '../../support/log-harness.ts'
import { diskOf, takeImage, withFlip } from '../../support/log-image.ts'
import { Interruption, InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { plainSlot } from '../../support/log-slot-bytes.ts'

const group = (slot: number, position: number, newestSlot = slot): Decision => ({
  action: 'skip-group',
  slot,
  position,
  newestSlot,
  decidedMs: 1
})

const emptyDisk = (): SimulatedDisk => new SimulatedDisk({ directories: ['/data', '/data/journal', testDirectory] })

describe('the file of decisions', () => {
  it('is the old one or the new one, whatever call a kill or a power cut stops', () => {
    const old = [group(1, 8192)]
    const next = [...old, group(2, 12_288)]
    for (let call = 1; call <= 5; call++) {
      for (const isPowerCut of [false, true]) {
        const disk = emptyDisk()
        writeDecisions(disk, testDirectory, new Decisions(old))
        const interruptible = new InterruptibleDisk(disk)
        interruptible.stopAt(call, true)
        assert.throws(() => writeDecisions(interruptible, testDirectory, new Decisions(next)), Interruption)
        const after = isPowerCut ? disk.crash(() => 0) : disk.killProcess()
        const { all } = readDecisions(after, testDirectory)
        assert.ok(all.length === 1 || all.length === 2, `call ${call}`)
        assert.deepEqual(all, next.slice(0, all.length))
      }
    }
  })

  it('is refused if a byte of it changed, or if it is of a newer version', () => {
    const disk = emptyDisk()
    writeDecisions(disk, testDirectory, new Decisions([group(1, 8192)]))
    const image = takeImage(disk)
    const text = image.get('decisions.json')?.toString() ?? ''
    const put = (changed: string): SimulatedDisk => diskOf(new Map([['decisions.json', Buffer.from(changed)]]))
    for (const [changed, pattern] of [
      [text.replace('8192', '8193'), /is damaged/],
      [text.replace('"version": 1', '"version": 2'), /newer version/],
      [text.slice(0, -9), /is no JSON/],
      ['null', /is damaged/]
    ] as const) {
      assert.notEqual(changed, text)
      assert.throws(() => readDecisions(put(changed), testDirectory), notReady(pattern))
    }
  })
})

describe('a loss', () => {
  it('explains a gap behind it once for each partition, and none before it', () => {
    const watch = new LossWatch(new Decisions([group(5, 12_288)]), 4)
    watch.enterSlot(5)
    assert.equal(watch.explains(1, 8192), false)
    watch.noteRun(1)
    assert.equal(watch.explains(1, 16_384), true)
    watch.noteRun(1)
    assert.equal(watch.explains(1, 20_480), false)
    watch.enterSlot(6)
    assert.deepEqual([watch.explains(1, 8192), watch.explains(2, 8192)], [false, true])
    // A slot that is not there is another loss.
    watch.enterSlot(8)
    assert.equal(watch.explains(1, 8192), true)
  })
})

describe('a start behind a loss', () => {
  const open = (disk: SimulatedDisk): ShardLog => {
    const log = openLog(disk)
    log.table.open({ firstHandle: 1, partitionCount: 2, segmentBytes: 2 ** 31 - 1 })
    return log
  }
  const put = (log: ShardLog, partition: number, count: number): void => {
    append(log, { firstHandle: 1, records: Array.from({ length: count }, () => textRecord(partition, null, 'v')) })
  }

  it('takes in a move of the start offset that lies in what is lost', () => {
    const disk = new SimulatedDisk()
    const log = open(disk)
    put(log, 0, 10)
    put(log, 0, 10)
    log.moveStarts([{ log: partitionOf(log, 1, 0), offset: 15 }])
    put(log, 1, 1)
    const image = takeImage(disk)
    const slot = image.get('0001.slot') ?? assert.fail('no slot')
    const lost = plainSlot(slot).groups[1] ?? assert.fail('no group')
    const spoilt = withFlip(
      withFlip(image, '0001.slot', lost.position + 70),
      '0001.slot',
      lost.position + lost.totalBytes - 5
    )
    assert.throws(() => open(diskOf(spoilt)), notReady(/an operator must decide/))
    const decided = diskOf(spoilt)
    writeDecisions(decided, testDirectory, new Decisions([group(1, lost.position)]))
    const again = open(decided)
    const first = partitionOf(again, 1, 0)
    assert.deepEqual([first.startOffset, first.nextOffset], [15, 15])
    assert.equal(readBack(again, partitionOf(again, 1, 1)).records.length, 1)
    put(again, 0, 1)
    again.close()
    const later = open(decided.killProcess())
    assert.deepEqual(
      readBack(later, partitionOf(later, 1, 0), 15).records.map(({ offset, leaderEpoch }) => [offset, leaderEpoch]),
      [[15, 1]]
    )
  })

  it('is refused where a gap has another reason than the loss that was decided', () => {
    const disk = new SimulatedDisk()
    const log = open(disk)
    for (let i = 0; i < 6; i++) put(log, 0, 1)
    const image = takeImage(disk)
    const slot = image.get('0001.slot') ?? assert.fail('no slot')
    const { groups } = plainSlot(slot)
    let spoilt = image
    for (const lost of [groups[1], groups[3]]) {
      assert.ok(lost !== undefined)
      spoilt = withFlip(spoilt, '0001.slot', lost.position + 70)
      spoilt = withFlip(spoilt, '0001.slot', lost.position + lost.totalBytes - 5)
    }
    const decided = diskOf(spoilt)
    writeDecisions(decided, testDirectory, new Decisions([group(1, groups[1]?.position ?? 0)]))
    assert.throws(() => open(decided), notReady(/group 4 has neither/))
  })
})
