/** Settling all that a stopped shard holds, whatever state its journal was left in. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import { SettleMemory } from '../../../src/log/settle/settle-memory.ts'
import { settleAll, type SettleAllOptions, type SettleAllResult } from '../../../src/log/settle/settle-all.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import {
  ManualClock,
  append,
  gatheredResults,
  gather,
  notReady,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord
} from '../../support/log-harness.ts'
import { diceOf } from '../../support/log-random.ts'

const topic = { firstHandle: 1, partitionCount: 3, segmentBytes: 700 * 1024 }
const memory = new SettleMemory()

function open(disk: SimulatedDisk): ShardLog {
  const log = openLog(disk)
  log.table.open(topic)
  return log
}

function optionsOf(disk: SimulatedDisk, more: Partial<SettleAllOptions> = {}): SettleAllOptions {
  const dice = diceOf(99)
  return {
    disk,
    directory: testDirectory,
    dataDirectory: '/data',
    shard: 0,
    placementEpoch: 1,
    newestSlot: 0,
    clock: new ManualClock(),
    drawSalt: () => dice.bytes(8),
    placeOf: handle => ({ kind: 'kept', directory: `topics/t~1/${handle - 1}` }),
    memory,
    ...more
  }
}

function runToEnd(options: SettleAllOptions): SettleAllResult {
  const steps = settleAll(options)
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

/** Small and large partitions over several slots, none of them settled, the last one open. */
function fill(log: ShardLog): void {
  for (let i = 0; i < 60; i++) {
    const partition = i % 3
    const value = `${i}:`.padEnd(partition === 0 ? 20 : 30_000, 'x')
    const record = { ...textRecord(partition, null, value), sequence: BigInt(Math.floor(i / 3)) }
    append(log, { firstHandle: 1, producer: 7, records: [record] })
  }
}

function contentsOf(log: ShardLog): string[][] {
  return [0, 1, 2].map(partition => {
    const { records, damaged } = readBack(log, partitionOf(log, 1, partition))
    assert.deepEqual(damaged, [])
    return records.map(({ offset, value }) => `${offset} ${value.toString()}`)
  })
}

describe('settling all of a stopped shard', () => {
  it('leaves nothing in slots, and every record at its offset', () => {
    const disk = new SimulatedDisk()
    const log = open(disk)
    fill(log)
    const before = contentsOf(log)
    const killed = disk.killProcess()
    const result = runToEnd(optionsOf(killed))
    assert.equal(result.manifest.settledSequence, result.newestSlot)
    assert.ok(result.newestSlot > 2, 'there were several slots')
    const again = open(killed.killProcess())
    assert.deepEqual([again.report.slots, again.report.scannedBytes], [0, 0])
    assert.deepEqual(contentsOf(again), before)
    append(again, { firstHandle: 1, records: [textRecord(0, null, 'goes on')] })
    assert.equal(contentsOf(again)[0]?.at(-1), '20 goes on')
  })

  it('keeps what producers have sent', () => {
    const disk = new SimulatedDisk()
    fill(open(disk))
    const killed = disk.killProcess()
    runToEnd(optionsOf(killed))
    const log = open(killed.killProcess())
    gather(log, [{ firstHandle: 1, producer: 7, records: [{ ...textRecord(1, null, 'sent again'), sequence: 19n }] }])
    assert.deepEqual(gatheredResults(log), [{ offset: 19, isDuplicate: true }])
  })

  it('tells how far it is, up to all of it', () => {
    const disk = new SimulatedDisk()
    fill(open(disk))
    const told = [...settleAll(optionsOf(disk.killProcess()))]
    const last = told.at(-1)
    assert.ok(last !== undefined && last.totalBytes > 60 * 10_000)
    assert.equal(last.doneBytes, last.totalBytes)
  })

  it('may be run twice, and over a shard that never wrote', () => {
    const disk = new SimulatedDisk()
    const first = runToEnd(optionsOf(disk))
    assert.deepEqual([first.newestSlot, first.manifest.partitions.size], [0, 0])
    const next = disk.killProcess()
    fill(open(next))
    const killed = next.killProcess()
    const after = runToEnd(optionsOf(killed))
    assert.equal(runToEnd(optionsOf(killed)).manifest.commit, after.manifest.commit)
  })

  it('goes on where it was stopped or cut off from power, and loses nothing', () => {
    const seed = Number(process.env['MILLRACE_SEED'] ?? 20_000)
    for (let life = 0; life < 40; life++) {
      const replay = `MILLRACE_SEED=${seed + life} node --test test/unit/log/settle-all.test.ts`
      const dice = diceOf(seed + life)
      let disk = new SimulatedDisk()
      const log = open(disk)
      fill(log)
      const before = contentsOf(log)
      for (let cut = 0; cut < 3; cut++) {
        disk = dice.chance(0.5) ? disk.crash(dice.unit) : disk.killProcess()
        const steps = settleAll(optionsOf(disk))
        for (let i = dice.below(4); i > 0; i--) steps.next()
      }
      const last = disk.crash(dice.unit)
      runToEnd(optionsOf(last))
      assert.deepEqual(contentsOf(open(last.crash(dice.unit))), before, replay)
    }
  })

  it('takes away what deleted topics have, also what was settled before', () => {
    const disk = new SimulatedDisk()
    fill(open(disk))
    const killed = disk.killProcess()
    runToEnd(optionsOf(killed))
    assert.ok(killed.list('/data/topics/t~1').length > 0)
    const { manifest } = runToEnd(optionsOf(killed, { placeOf: () => ({ kind: 'dropped' }) }))
    assert.equal(manifest.partitions.size, 0)
    assert.equal(manifest.removals.length, 0)
    assert.deepEqual(killed.exists('/data/topics/t~1') ? killed.list('/data/topics/t~1') : [], [])
    assert.deepEqual(loadManifest(killed, testDirectory, 0, 1).commit, manifest.commit)
  })

  it('refuses a journal whose newest slot is missing, as a start does', () => {
    const disk = new SimulatedDisk()
    fill(open(disk))
    assert.throws(() => runToEnd(optionsOf(disk.killProcess(), { newestSlot: 99 })), notReady(/slot 99 was written/))
  })
})
