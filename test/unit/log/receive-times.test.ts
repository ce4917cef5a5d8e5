/**
 * Receive times, offsets and timestamps are what a record had when it was acknowledged, whatever is made of its segment
 * later: settled, compacted, moved to cold storage (S7). Retention by age decides by them, so it decides the same.
 */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { prepareColdSegment, type OutgoingSegment } from '../../../src/log/cold-files.ts'
import { compactPartition, type PartitionResult } from '../../../src/log/compaction/partition-job.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import type { Manifest, ManifestPartition, ManifestSegment } from '../../../src/log/manifest.ts'
import { expiredSegments } from '../../../src/log/retention.ts'
import { SettleMemory } from '../../../src/log/settle/settle-memory.ts'
import { replaceSegments, type Replacement } from '../../../src/log/settle/replace.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import {
  ManualClock,
  append,
  openLog,
  partitionOf,
  readBack,
  testDirectory,
  textRecord
} from '../../support/log-harness.ts'
import { settleAll } from '../../support/log-settle.ts'

const memory = new SettleMemory()
const FIRST_MS = 1_700_000_000_000
const STEP_MS = 1000
const RECORDS = 60
/** Long after the last record: nothing that is made now may carry this time. */
const LATER_MS = FIRST_MS + 1_000_000_000

const timeAt = (offset: number): number => FIRST_MS + offset * STEP_MS

function open(disk: SimulatedDisk, clock = new ManualClock(LATER_MS)): ShardLog {
  const log = openLog(disk, { clock })
  log.table.open({ firstHandle: 1, partitionCount: 1, segmentBytes: 1000 })
  return log
}

/** One record a second, settled: sealed segments of a few records each, and an open one. */
function settledDisk(): SimulatedDisk {
  const disk = new SimulatedDisk()
  const clock = new ManualClock()
  const log = open(disk, clock)
  for (let offset = 0; offset < RECORDS; offset++) {
    clock.wallMs = timeAt(offset)
    append(log, { firstHandle: 1, records: [textRecord(0, `k${offset % 7}`, `${offset}:`.padEnd(120, 'x'))] })
  }
  clock.wallMs = LATER_MS
  log.sealOpenSlot()
  settleAll(disk, log, { nowMs: LATER_MS })
  return disk
}

const place = (disk: SimulatedDisk) => ({ disk, dataDirectory: '/data', journalDirectory: testDirectory, memory })

const manifestOf = (disk: SimulatedDisk): Manifest => loadManifest(disk, testDirectory, 0, 1)

function partitionIn(disk: SimulatedDisk): ManifestPartition {
  const partition = manifestOf(disk).partitions.get(1)
  assert.ok(partition !== undefined)
  return partition
}

function commit(disk: SimulatedDisk, replacement: Omit<Replacement, 'handle'>): void {
  const times = { nowMs: LATER_MS, graceMs: 0 }
  assert.ok(replaceSegments(place(disk), manifestOf(disk), { handle: 1, ...replacement }, times) !== null)
}

function runToEnd<T>(steps: Generator<undefined, T, undefined>): T {
  for (;;) {
    const step = steps.next()
    if (step.done === true) return step.value
  }
}

function compact(disk: SimulatedDisk): void {
  const shard = { shard: 0, placementEpoch: 1 }
  const options = { tombstoneRetentionMs: null, segmentBytes: 4000, mapBytes: 65_536, nowMs: LATER_MS }
  const job = { ...shard, ...options, partition: partitionIn(disk) }
  commit(disk, runToEnd<PartitionResult>(compactPartition(place(disk), job)))
}

/** Moves the oldest segment that is still here. */
function tier(disk: SimulatedDisk): void {
  const partition = partitionIn(disk)
  const segment = partition.segments.find(({ cold, extents }) => cold === undefined && extents.length > 0)
  assert.ok(segment !== undefined)
  const steps = prepareColdSegment(place(disk), { shard: 0, placementEpoch: 1 }, partition, segment)
  const outgoing = runToEnd<OutgoingSegment>(steps)
  commit(disk, { inputs: [segment], outputs: [outgoing.segment], directory: null })
}

type Times = Pick<ManifestSegment, 'baseOffset' | 'nextOffset' | 'firstReceiveMs' | 'receiveMsMax'>

const timesOf = ({ baseOffset, nextOffset, firstReceiveMs, receiveMsMax }: ManifestSegment): Times => ({
  baseOffset,
  nextOffset,
  firstReceiveMs,
  receiveMsMax
})

/** What a segment over these offsets must say. */
const expectedOf = ({ baseOffset, nextOffset }: Times): Times => ({
  baseOffset,
  nextOffset,
  firstReceiveMs: timeAt(baseOffset),
  receiveMsMax: timeAt(nextOffset - 1)
})

function checkRecords(log: ShardLog): number {
  const { records, damaged } = readBack(log, partitionOf(log, 1, 0))
  assert.deepEqual(damaged, [])
  for (const { offset, timestampMs, value } of records) {
    assert.deepEqual([timestampMs, value.toString().split(':')[0]], [timeAt(offset), `${offset}`])
  }
  return records.length
}

/** Of the segments that a log counts with, active one left out. */
const logTimes = (log: ShardLog): number[][] =>
  partitionOf(log, 1, 0)
    .sealedSegments()
    .map(({ baseOffset, firstReceiveMs, receiveMsMax }) => [baseOffset, firstReceiveMs, receiveMsMax])

/** Looks at what the manifest says and at what a log that starts with it counts with; the process ends between the two. */
function restarted(disk: SimulatedDisk): { disk: SimulatedDisk; log: ShardLog; segments: readonly ManifestSegment[] } {
  const { segments } = partitionIn(disk)
  assert.deepEqual(segments.map(timesOf), segments.map(expectedOf))
  const next = disk.killProcess()
  const log = open(next)
  const sealed = segments.filter(({ isSealed }) => isSealed).map(expectedOf)
  assert.deepEqual(
    logTimes(log),
    sealed.map(({ baseOffset, firstReceiveMs, receiveMsMax }) => [baseOffset, firstReceiveMs, receiveMsMax])
  )
  return { disk: next, log, segments }
}

describe('the receive times of a segment, and offsets and timestamps of its records', () => {
  it('survive settling, and compaction into fewer segments', () => {
    const settled = restarted(settledDisk())
    assert.equal(checkRecords(settled.log), RECORDS)
    compact(settled.disk)
    const compacted = restarted(settled.disk)
    const [before, after] = [settled.segments.length, compacted.segments.length]
    assert.ok(after < before && before > 5, `${before} segments, then ${after}`)
    const left = checkRecords(compacted.log)
    assert.ok(left < RECORDS && left >= 7, `${left} records are left`)
  })

  it('survive the way to cold storage, before and after a compaction', () => {
    const disk = settledDisk()
    tier(disk)
    compact(disk)
    tier(disk)
    const { segments } = restarted(disk)
    assert.equal(segments.filter(({ cold }) => cold !== undefined).length, 2)
  })

  it('let retention by age drop the same records after them as before', () => {
    const disk = settledDisk()
    const startAt = (nowMs: number): number => {
      const { segments, startOffset } = partitionIn(disk)
      const limits = { retentionMs: 10_000, retentionBytes: null, cleanupPolicy: 'delete' } as const
      return expiredSegments(segments, startOffset, limits, nowMs).startOffset
    }
    const uncompacted = partitionIn(disk).segments
    compact(disk)
    tier(disk)
    for (const { nextOffset, receiveMsMax } of partitionIn(disk).segments.filter(({ isSealed }) => isSealed)) {
      assert.ok(startAt(receiveMsMax + 10_000) < nextOffset, 'not a millisecond too early')
      assert.equal(startAt(receiveMsMax + 10_001), nextOffset)
      assert.ok(uncompacted.some(segment => segment.nextOffset === nextOffset && segment.receiveMsMax === receiveMsMax))
    }
  })

  it('are never undercut by what is written after all was settled, though the clock went back over a restart', () => {
    const disk = settledDisk().killProcess()
    const log = open(disk, new ManualClock(FIRST_MS - 1_000_000))
    append(log, { firstHandle: 1, records: [textRecord(0, null, 'new')] })
    const { timestampMs } = readBack(log, partitionOf(log, 1, 0), RECORDS).records[0] ?? {}
    assert.equal(timestampMs, timeAt(RECORDS - 1))
  })
})
