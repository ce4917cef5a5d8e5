/** What a settle job leaves behind: when it is refused, killed, or meets what is not as it should be. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DiskError } from '../../../src/disk/disk.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { FaultPoint } from '../../../src/disk/faults.ts'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { checkOffsetIndex, checkTimeIndex } from '../../../src/log/kafka-index.ts'
import { readOutcomes } from '../../../src/log/log-reader.ts'
import { commitManifest, loadManifest } from '../../../src/log/manifest-file.ts'
import type { Manifest } from '../../../src/log/manifest.ts'
import { BlockTable } from '../../../src/log/segment-blocks.ts'
import { removeDue } from '../../../src/log/settle/removals.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { notReady, openLog, partitionOf, readBack, recordsOfBatch, testDirectory } from '../../support/log-harness.ts'
import { InterruptibleDisk } from '../../support/log-interruptible-disk.ts'
import { diceOf } from '../../support/log-random.ts'
import { settleAll, settleSteps, type SettleChoices } from '../../support/log-settle.ts'
import { appendTo, makeSettledSample, openSettled, settledSizes } from '../../support/log-settled-sample.ts'
import { diskOfTree, readWhole, takeTree } from '../../support/log-tree.ts'

const dice = diceOf(5)
const NOW = 1_700_000_000_000

function fill(log: ShardLog, partition: number, groups: number, valueBytes = 900): void {
  for (let i = 0; i < groups; i++) appendTo(log, partition, dice.bytes(valueBytes), dice.bytes(valueBytes))
}

function manifestOf(disk: SimulatedDisk): Manifest {
  return loadManifest(disk, testDirectory, 0, 1)
}

function filesOf(disk: SimulatedDisk): string[] {
  return [...takeTree(disk).keys()].filter(path => !path.includes('/journal/')).sort()
}

function numbersOf(log: ShardLog): unknown {
  return [0, 1, 2].map(partition => {
    const { startOffset, highWatermark, sizeBytes, segmentCount } = partitionOf(log, 1, partition)
    return { startOffset, highWatermark, sizeBytes, segmentCount }
  })
}

function contentsOf(log: ShardLog): unknown {
  return [0, 1, 2].map(partition => {
    const partitionLog = partitionOf(log, 1, partition)
    return readBack(log, partitionLog, partitionLog.startOffset)
  })
}

/** A log with something of each partition in a sealed slot. */
function filled(disk: SimulatedDisk): ShardLog {
  const log = openSettled(disk)
  fill(log, 0, 2)
  fill(log, 1, 12)
  fill(log, 2, 40)
  log.sealOpenSlot()
  return log
}

const settleIt = (disk: SimulatedDisk, log: ShardLog, choices: SettleChoices = {}): Manifest =>
  settleAll(disk, log, { sizes: settledSizes, ...choices }).manifest

describe('a settle job that the disk refuses', () => {
  const points: readonly FaultPoint[] = [
    'segment.directory',
    'segment.create',
    'segment.write',
    'segment.sync',
    'segment.truncate',
    'segment.directory-sync',
    'pack.create',
    'pack.write',
    'pack.sync',
    'manifest.write',
    'manifest.sync',
    'manifest.rename'
  ]
  for (const point of points) {
    it(`leaves no file behind at ${point}, and the next one succeeds`, () => {
      for (const call of [1, 2, 3]) {
        const disk = new SimulatedDisk()
        const log = filled(disk)
        const before = contentsOf(log)
        const outer = new InterruptibleDisk(disk)
        const firstCall = outer.faults.callCount(point) + call
        outer.faults.arm({ point, firstCall, lastCall: firstCall, fault: { kind: 'error', code: 'ENOSPC' } })
        const steps = settleSteps({ disk: outer, log, sizes: settledSizes })
        const isRefused = (): boolean => {
          try {
            while (steps.next().done !== true) continue
            return false
          } catch (error) {
            assert.ok(error instanceof DiskError && error.point === point)
            return true
          }
        }
        if (!isRefused()) {
          assert.ok(call > 1, 'the point is passed at least once')
          continue
        }
        assert.deepEqual(filesOf(disk), [])
        assert.equal(manifestOf(disk).commit, 0)
        settleIt(disk, log)
        assert.deepEqual(contentsOf(log), before)
        assert.deepEqual(contentsOf(openSettled(disk.killProcess(), 2)), before)
      }
    })
  }

  it('bypasses the page cache wherever the file system lets it', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    const result = settleAll(disk, log, { sizes: settledSizes })
    assert.equal(result.isDirect, true)
    assert.deepEqual(new Set(filesOf(disk).map(path => path.split('.').at(-1))).has('pack'), true)
  })

  it('goes on buffered where files cannot bypass the page cache', () => {
    for (const point of ['segment.create', 'pack.create', 'segment.write', 'pack.write'] as const) {
      const disk = new SimulatedDisk()
      const log = filled(disk)
      const outer = new InterruptibleDisk(disk)
      outer.faults.arm({ point, firstCall: 1, lastCall: 1, fault: { kind: 'error', code: 'EINVAL' } })
      const steps = settleSteps({ disk: outer, log, sizes: settledSizes })
      let step = steps.next()
      while (step.done !== true) step = steps.next()
      assert.equal(step.value.isDirect, false, point)
    }
  })
})

describe('a settle job that was killed', () => {
  it('is done again over what it left, whatever stands in those files', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    const before = contentsOf(log)
    settleIt(disk, log)
    const paths = filesOf(disk)
    const fresh = new SimulatedDisk()
    const again = filled(fresh)
    const expected = contentsOf(again)
    for (const path of paths) {
      for (let at = path.indexOf('/', 6); at > 0; at = path.indexOf('/', at + 1)) {
        if (!fresh.exists(path.slice(0, at))) fresh.makeDirectory('segment.directory', path.slice(0, at))
      }
      const file = fresh.create('segment.create', path)
      file.write('segment.write', new Uint8Array(100_000).fill(0xaa), 0, 100_000, 0)
      file.close()
    }
    settleIt(fresh, again)
    assert.deepEqual(contentsOf(again), expected)
    assert.deepEqual(filesOf(fresh), paths)
    assert.equal(JSON.stringify(before).length > 1000, true)
  })

  it('commits nothing if a file is not the slot that it was said to be', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    const name = log.sealedSlots[0]?.name ?? ''
    const file = disk.open('slot.open', `${testDirectory}/${name}`)
    file.write('slot.fill', new Uint8Array(file.sizeBytes()), 0, file.sizeBytes(), 0)
    file.close()
    assert.throws(
      () => settleIt(disk, log),
      (error: unknown) => error instanceof BrokerError && /group 1 has neither/.test(String(error.details['problem']))
    )
    assert.equal(manifestOf(disk).commit, 0)
    assert.deepEqual(filesOf(disk), [])
  })
})

describe('files that nothing names any more', () => {
  const dropped: SettleChoices = { placeOf: () => ({ kind: 'dropped' }), nowMs: NOW, graceMs: 1000 }

  it('of a deleted topic go after the grace, directories too, though no slot holds anything of it', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    settleIt(disk, log)
    const files = filesOf(disk)
    const { removals, partitions } = settleIt(disk, log, dropped)
    assert.equal(partitions.size, 0)
    assert.deepEqual(removeDue(disk, '/data', removals, NOW + 999).left, removals)
    assert.deepEqual(filesOf(disk), files)
    assert.deepEqual(removeDue(disk, '/data', removals, NOW + 1000), { left: [], refused: [] })
    assert.deepEqual(filesOf(disk), [])
    assert.deepEqual(disk.list('/data/topics'), [])
    // Durably: a power cut does not bring them back once the manifest has forgotten them.
    assert.deepEqual(filesOf(disk.crash(() => 0)), [])
  })

  it('of segments before the start offset go, the others stay', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    settleIt(disk, log)
    const log2 = partitionOf(log, 1, 2)
    const [, second] = log2.sealedSegments()
    assert.ok(second !== undefined)
    log.moveStarts([{ log: log2, offset: second.baseOffset }])
    const numbers = numbersOf(log)
    const { removals } = settleIt(disk, log, { slots: [], startOffsets: new Map([[3, second.baseOffset]]) })
    assert.deepEqual(
      removals.map(({ path }) => path),
      ['.log', '.blocks', '.index', '.timeindex'].map(kind => `topics/t~1/3/${'0'.repeat(20)}${kind}`)
    )
    assert.deepEqual(numbersOf(log), numbers)
    assert.deepEqual(numbersOf(openSettled(disk.killProcess(), 2)), numbers)
  })

  it('are tried again if the disk refuses', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    settleIt(disk, log)
    const { removals } = settleIt(disk, log, { ...dropped, graceMs: 0 })
    const outer = new InterruptibleDisk(disk)
    outer.faults.arm({ point: 'segment.remove', firstCall: 2, lastCall: 2, fault: { kind: 'error', code: 'EIO' } })
    const first = removeDue(outer, '/data', removals, NOW)
    assert.equal(first.refused.length, 1)
    assert.ok(first.left.length > 0)
    assert.deepEqual(removeDue(outer, '/data', first.left, NOW), { left: [], refused: [] })
    assert.deepEqual(disk.list('/data/topics'), [])
  })
})

describe('a start after a settle job', () => {
  it('succeeds though later slots still tell of a topic that was deleted when the earlier ones were settled', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    const { sealedSlots } = log
    const first = [...sealedSlots]
    fill(log, 1, 3)
    settleIt(disk, log, { slots: first, placeOf: () => ({ kind: 'dropped' }) })
    const after = openLog(disk.killProcess())
    assert.deepEqual(after.table.unclaimedHandles(), [2])
    const found = after.table.logOf(2)
    assert.deepEqual([found?.startOffset, found?.highWatermark], [24, 30])
  })

  it('refuses a live topic whose settled part is nowhere', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    const first = [...log.sealedSlots]
    fill(log, 1, 3)
    settleIt(disk, log, { slots: first, placeOf: () => ({ kind: 'dropped' }) })
    assert.throws(() => openSettled(disk.killProcess(), 2), notReady(/handle 2.*offset 24/))
  })

  it('refuses slots that are newer than a manifest put back from a backup', () => {
    const disk = new SimulatedDisk()
    const log = openSettled(disk)
    let old: Manifest | null = null
    for (let round = 0; round < 4; round++) {
      fill(log, 2, 30)
      log.sealOpenSlot()
      const manifest = settleIt(disk, log)
      if (round === 0) old = manifest
    }
    fill(log, 2, 1)
    const next = disk.killProcess()
    assert.ok(old !== null)
    commitManifest(next, testDirectory, old)
    assert.throws(() => openSettled(next, 2), notReady(/slot \d+ .*where slot \d+ is expected/))
  })

  it('finds what was acknowledged, wherever the header of a slot that is used again was torn', () => {
    for (let cut = 0; cut < 60; cut++) {
      const disk = new SimulatedDisk()
      const log = openSettled(disk)
      for (let round = 0; round < 2; round++) {
        fill(log, 1, 10)
        log.sealOpenSlot()
        settleIt(disk, log)
      }
      assert.ok(log.files.spareCount > 0)
      const before = contentsOf(log)
      const outer = new InterruptibleDisk(disk)
      const again = openSettled(outer, 2)
      outer.stopAt(2 + (cut % 4), cut % 2 === 0)
      assert.throws(() => fill(again, 1, 1), /stopped at/)
      assert.ok(outer.trace.some(({ point }) => point === 'slot.header-write'))
      const after = openSettled(disk.crash(diceOf(cut).unit), 3)
      assert.deepEqual(contentsOf(after), before, `cut ${cut}`)
    }
  })
})

describe('readers and settle jobs', () => {
  it('a reader goes on where it was when data moves under it', () => {
    for (let pause = 0; pause < 8; pause++) {
      const disk = new SimulatedDisk()
      const log = openSettled(disk)
      fill(log, 1, 8)
      const expected = readBack(log, partitionOf(log, 1, 1)).records
      const reader = log.read(partitionOf(log, 1, 1), 0)
      const found = []
      let wanted = 0
      for (let batch = 0; reader.next(wanted) === readOutcomes.batch; batch++) {
        found.push(...recordsOfBatch(reader, wanted))
        wanted = reader.lastOffset + 1
        if (batch !== pause) continue
        log.sealOpenSlot()
        settleIt(disk, log)
        fill(log, 2, 5)
      }
      assert.deepEqual(found, expected, `paused after batch ${pause}`)
    }
  })

  it('data of a handle that nobody knows is kept and read again', () => {
    const disk = new SimulatedDisk()
    const log = filled(disk)
    const before = contentsOf(log)
    settleIt(disk, log, { placeOf: handle => ({ kind: 'kept', directory: `topics/unknown~h${handle}/0` }) })
    assert.ok(filesOf(disk).some(path => path.startsWith('/data/topics/unknown~h3/0/')))
    const after = openLog(disk.killProcess())
    assert.deepEqual(after.table.unclaimedHandles(), [1, 2, 3])
    after.table.open({ firstHandle: 1, partitionCount: 3, segmentBytes: 30_000 })
    assert.deepEqual(contentsOf(after), before)
  })
})

describe('numbers of a partition', () => {
  it('stay when records are deleted that were settled in part, over settling and starts', () => {
    const disk = new SimulatedDisk()
    let log = filled(disk)
    const first = [...log.sealedSlots]
    fill(log, 1, 4)
    const log1 = partitionOf(log, 1, 1)
    // Into the middle of what lies in the next slot: the segment goes on, so it stays as it is.
    log.moveStarts([{ log: log1, offset: 26 }])
    const numbers = numbersOf(log)
    const contents = contentsOf(log)
    settleIt(disk, log, { slots: first, startOffsets: new Map([[2, 26]]) })
    assert.deepEqual([numbersOf(log), contentsOf(log)], [numbers, contents])
    const next = disk.killProcess()
    log = openSettled(next, 2)
    assert.deepEqual([numbersOf(log), contentsOf(log)], [numbers, contents])
    settleIt(next, log)
    assert.deepEqual([numbersOf(log), contentsOf(log)], [numbers, contents])
    assert.deepEqual(numbersOf(openSettled(next.killProcess(), 3)), numbers)
  })
})

describe('a sealed segment', () => {
  it('has the indexes that its blocks make, so that Kafka reads it', () => {
    const { tree } = makeSettledSample()
    const disk = diskOfTree(tree)
    let count = 0
    for (const { directory, segments } of manifestOf(disk).partitions.values()) {
      for (const { isSealed, baseOffset, extents } of segments) {
        if (!isSealed || extents.some(({ pack }) => pack !== 0)) continue
        const path = `/data/${directory}/${String(baseOffset).padStart(20, '0')}`
        const blocks = new BlockTable(readWhole(disk, `${path}.blocks`), baseOffset)
        assert.ok(checkOffsetIndex(readWhole(disk, `${path}.index`), blocks))
        assert.ok(checkTimeIndex(readWhole(disk, `${path}.timeindex`), blocks))
        assert.equal(readWhole(disk, `${path}.log`).length, extents[0]?.bytes, 'its log ends with its last batch')
        assert.equal(extents.length, 1)
        count++
      }
    }
    assert.ok(count >= 2)
  })

  it('that began in a pack has one log of all its batches, and the pack is given up', () => {
    const disk = new SimulatedDisk()
    const log = openSettled(disk)
    const placesOf = (): number[][] =>
      (manifestOf(disk).partitions.get(2)?.segments ?? []).map(({ extents }) => extents.map(({ pack }) => pack))
    fill(log, 1, 2)
    log.sealOpenSlot()
    settleIt(disk, log)
    assert.deepEqual(placesOf(), [[1]])
    fill(log, 1, 8)
    log.sealOpenSlot()
    settleIt(disk, log)
    assert.deepEqual(placesOf(), [[0, 0]])
    fill(log, 1, 12)
    log.sealOpenSlot()
    const before = contentsOf(log)
    const { removals } = settleIt(disk, log)
    assert.deepEqual(placesOf().slice(0, -1), [[0]])
    assert.ok(removals.some(({ path }) => path === 'packs/000/00000001.pack'))
    removeDue(disk, '/data', removals, NOW)
    assert.deepEqual(contentsOf(openSettled(disk.killProcess(), 2)), before)
  })
})
