/** A compaction of files: what the settler makes of it, and what is left when it is stopped anywhere. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DiskError } from '../../../../src/disk/disk.ts'
import { FaultPlan } from '../../../../src/disk/fault-plan.ts'
import { SimulatedDisk } from '../../../../src/disk/simulated-disk.ts'
import { compactPartition, type PartitionResult } from '../../../../src/log/compaction/partition-job.ts'
import { loadManifest } from '../../../../src/log/manifest-file.ts'
import type { Manifest } from '../../../../src/log/manifest.ts'
import { SettleMemory } from '../../../../src/log/settle/settle-memory.ts'
import { removeDue } from '../../../../src/log/settle/removals.ts'
import { replaceSegments } from '../../../../src/log/settle/replace.ts'
import type { ShardLog } from '../../../../src/log/shard-log.ts'
import { append, openLog, partitionOf, readBack, testDirectory, textRecord } from '../../../support/log-harness.ts'
import { settleAll } from '../../../support/log-settle.ts'

const memory = new SettleMemory()
const nowMs = 1_700_000_000_000
const place = (disk: SimulatedDisk) => ({ disk, dataDirectory: '/data', journalDirectory: testDirectory, memory })

function open(disk: SimulatedDisk): ShardLog {
  const log = openLog(disk)
  log.table.open({ firstHandle: 1, partitionCount: 1, segmentBytes: 1000 })
  return log
}

function put(log: ShardLog, from: number, count: number, keyCount = 4): void {
  for (let i = from; i < from + count; i++) {
    append(log, { firstHandle: 1, records: [textRecord(0, `k${i % keyCount}`, `${i}:`.padEnd(120, 'x'))] })
  }
}

function settled(disk: SimulatedDisk, keyCount?: number): ShardLog {
  const log = open(disk)
  put(log, 0, 40, keyCount)
  log.sealOpenSlot()
  settleAll(disk, log)
  return log
}

function manifestOf(disk: SimulatedDisk): Manifest {
  return loadManifest(disk, testDirectory, 0, 1)
}

function* steps(disk: SimulatedDisk): Generator<undefined, PartitionResult, undefined> {
  const partition = manifestOf(disk).partitions.get(1)
  assert.ok(partition !== undefined)
  const options = { tombstoneRetentionMs: null, segmentBytes: 4000, mapBytes: 65_536, nowMs }
  return yield* compactPartition(place(disk), { shard: 0, placementEpoch: 1, partition, ...options })
}

function compact(disk: SimulatedDisk): PartitionResult {
  const running = steps(disk)
  for (;;) {
    const step = running.next()
    if (step.done === true) return step.value
  }
}

function commit(disk: SimulatedDisk, result: PartitionResult, graceMs = 0): ReturnType<typeof replaceSegments> {
  return replaceSegments(place(disk), manifestOf(disk), { handle: 1, ...result }, { nowMs, graceMs })
}

/** Directories that compactions made, finished or not. */
function compactionsOf(disk: SimulatedDisk): string[] {
  const names = disk.list('/data/topics/t~1/1').filter(name => name.startsWith('c'))
  return names.map(name => `topics/t~1/1/${name}`).sort()
}

function recordsOf(log: ShardLog): [number, string][] {
  const { records, damaged } = readBack(log, partitionOf(log, 1, 0))
  assert.deepEqual(damaged, [])
  return records.map(({ offset, value }) => [offset, value.toString()])
}

describe('a compaction of files', () => {
  it('counts once it is committed: a log adopts it, another opens it, and both read the same', () => {
    const disk = new SimulatedDisk()
    const log = settled(disk)
    const before = recordsOf(log)
    const done = commit(disk, compact(disk))
    const partition = done?.manifest.partitions.get(1)
    assert.ok(partition !== undefined)
    assert.deepEqual(recordsOf(log), before, 'what was not adopted is not read')
    log.adoptCompacted(partition)
    const after = recordsOf(log)
    assert.ok(after.length < before.length)
    assert.deepEqual(
      after,
      before.filter(([offset]) => after.some(([kept]) => kept === offset))
    )
    put(log, 40, 1)
    const { sizeBytes, segmentCount } = partitionOf(log, 1, 0)
    const again = open(disk.killProcess())
    assert.deepEqual(recordsOf(again), [...after, [40, '40:'.padEnd(120, 'x')]])
    const found = partitionOf(again, 1, 0)
    assert.deepEqual([found.sizeBytes, found.segmentCount], [sizeBytes, segmentCount])
  })

  it('is of no use when the partition has other segments by now, and committed none of it', () => {
    const disk = new SimulatedDisk()
    const log = settled(disk)
    const result = compact(disk)
    const base = partitionOf(log, 1, 0).sealedSegments()[2]?.baseOffset ?? 0
    log.moveStarts([{ log: partitionOf(log, 1, 0), offset: base }])
    settleAll(disk, log, { startOffsets: new Map([[1, base]]) })
    assert.equal(commit(disk, result), null)
    assert.equal(recordsOf(log)[0]?.[0], base)
  })

  it('brings back nothing that was deleted while it ran', () => {
    const disk = new SimulatedDisk()
    const log = settled(disk, 30)
    const result = compact(disk)
    const partition = partitionOf(log, 1, 0)
    const offset = (partition.sealedSegments().at(-1)?.baseOffset ?? 0) + 1
    assert.ok(
      result.outputs.some(({ nextOffset }) => nextOffset <= offset),
      'some of it is wholly before the start'
    )
    log.moveStarts([{ log: partition, offset }])
    const before = recordsOf(log)
    // The manifest does not know of the move yet.
    const committed = commit(disk, result)?.manifest.partitions.get(1)
    assert.equal(committed?.startOffset, 0)
    log.adoptCompacted(committed)
    assert.deepEqual(recordsOf(log), before)
    assert.equal(partition.startOffset, offset)
    const { sizeBytes, segmentCount } = partition
    const again = open(disk.killProcess())
    const found = partitionOf(again, 1, 0)
    assert.deepEqual(recordsOf(again), before)
    assert.deepEqual([found.startOffset, found.sizeBytes, found.segmentCount], [offset, sizeBytes, segmentCount])
  })

  it('takes away what an earlier one left that was renamed and not committed, also if something was settled since', () => {
    for (const isSettledSince of [false, true]) {
      const disk = new SimulatedDisk()
      const log = settled(disk)
      const first = compact(disk)
      assert.ok(first.directory !== null)
      disk.rename('segment.rename', `/data/${first.directory.from}`, `/data/${first.directory.to}`)
      if (isSettledSince) {
        put(log, 40, 4)
        log.sealOpenSlot()
        settleAll(disk, log)
      }
      const second = compact(disk)
      assert.equal(second.directory?.to === first.directory.to, !isSettledSince)
      const done = commit(disk, second)
      const partition = done?.manifest.partitions.get(1)
      assert.ok(partition !== undefined)
      log.adoptCompacted(partition)
      assert.ok(recordsOf(log).length < 40)
      assert.deepEqual(compactionsOf(disk), [second.directory?.to])
    }
  })

  it('takes away nothing that readers may still be at, nor what no pass of this manifest can have made', () => {
    const disk = new SimulatedDisk()
    const log = settled(disk)
    const made: (string | undefined)[] = []
    for (const from of [40, 80]) {
      const result = compact(disk)
      commit(disk, result, 1000)
      made.push(result.directory?.to)
      const partition = manifestOf(disk).partitions.get(1)
      assert.ok(partition !== undefined)
      log.adoptCompacted(partition)
      put(log, from, 40)
      log.sealOpenSlot()
      settleAll(disk, log)
    }
    disk.makeDirectory('segment.directory', '/data/topics/t~1/1/c999')
    const last = compact(disk)
    commit(disk, last, 1000)
    assert.deepEqual(compactionsOf(disk), [...made, last.directory?.to, 'topics/t~1/1/c999'].sort())
  })

  it('leaves nothing on a disk that refuses to commit it, unless that is in doubt', () => {
    const points = ['manifest.write', 'manifest.sync', 'manifest.rename', 'manifest.directory-sync'] as const
    for (const point of points) {
      const plan = new FaultPlan()
      const disk = new SimulatedDisk({ faults: plan })
      settled(disk)
      const result = compact(disk)
      // Reading the manifest syncs its name, too.
      const firstCall = plan.callCount(point) + (point === 'manifest.directory-sync' ? 2 : 1)
      plan.arm({ point, firstCall, lastCall: firstCall, fault: { kind: 'error', code: 'ENOSPC' } })
      assert.throws(() => commit(disk, result), DiskError)
      assert.deepEqual(compactionsOf(disk), point === 'manifest.directory-sync' ? [result.directory?.to] : [], point)
    }
  })

  it('leaves nothing behind whose topic is deleted meanwhile, finished, renamed or not', () => {
    for (const state of ['finished', 'renamed', 'unfinished']) {
      const disk = new SimulatedDisk()
      const log = settled(disk)
      const result = state === 'unfinished' ? null : compact(disk)
      if (result === null) {
        // Killed: a file lies where it was writing.
        disk.makeDirectory('segment.directory', '/data/topics')
        disk.makeDirectory('segment.directory', '/data/topics/t~1')
        disk.makeDirectory('segment.directory', '/data/topics/t~1/1')
        disk.makeDirectory('segment.directory', '/data/topics/t~1/1/c2.new')
        disk.create('segment.create', '/data/topics/t~1/1/c2.new/00000000000000000000.log').close()
      }
      assert.ok(disk.exists('/data/topics/t~1/1/c2.new'))
      if (state === 'renamed') disk.rename('segment.rename', '/data/topics/t~1/1/c2.new', '/data/topics/t~1/1/c2')
      const { manifest } = settleAll(disk, log, { placeOf: () => ({ kind: 'dropped' }) })
      if (state === 'finished') assert.equal(commit(disk, result as PartitionResult), null)
      const { left, refused } = removeDue(disk, '/data', manifest.removals, nowMs)
      assert.deepEqual([left, refused], [[], []])
      assert.deepEqual(disk.list('/data/topics'), [])
    }
  })

  it('may lose the power at any step: a start finds all records, or all that compaction keeps', () => {
    const whole = new SimulatedDisk()
    const all = recordsOf(settled(whole))
    const kept = ((): [number, string][] => {
      const log = open(whole.killProcess())
      return recordsOf(log)
    })()
    assert.deepEqual(kept, all)
    let random = 1
    const dice = (): number => (random = (random * 48_271) % 2_147_483_647) / 2_147_483_647
    const lengths = new Set<number>()
    for (let life = 0; life < 60; life++) {
      const disk = new SimulatedDisk()
      settled(disk)
      const running = steps(disk)
      let step = running.next()
      for (let left = Math.floor(dice() * 4); left > 0 && step.done !== true; left--) step = running.next()
      if (step.done === true && dice() < 0.7) commit(disk, step.value)
      const after = recordsOf(open(disk.crash(dice)))
      lengths.add(after.length)
      assert.deepEqual(
        after,
        all.filter(([offset]) => after.some(([one]) => one === offset))
      )
      assert.ok(after.length === 40 || after.length < 14, String(after.length))
    }
    assert.equal(lengths.size, 2, 'both outcomes were met')
  })
})
