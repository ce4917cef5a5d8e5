/** Slots and packs that the device does not read in full when they are settled: what can be read is, and nothing is given up in haste. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DiskError } from '../../../src/disk/disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import type { Extent } from '../../../src/log/manifest.ts'
import { packPath } from '../../../src/log/segment-files.ts'
import { isUnreadPack } from '../../../src/log/settle/pack-reader.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { limits } from '../../../src/model/limits.ts'
import { BadSectorDisk } from '../../support/bad-sector-disk.ts'
import { partitionOf, readBack, testDirectory, type ReadRecord } from '../../support/log-harness.ts'
import { diceOf } from '../../support/log-random.ts'
import { settleAll } from '../../support/log-settle.ts'
import { appendTo, openSettled, settledSizes } from '../../support/log-settled-sample.ts'

/** Two records a group; a byte in the second run of partition 1 cannot be read, nor the slot freed before it is settled. */
class Stage {
  readonly disk = new BadSectorDisk()
  readonly log = openSettled(this.disk)
  readonly records: readonly ReadRecord[]
  readonly others: readonly ReadRecord[]

  constructor(groups: number) {
    const dice = diceOf(8)
    for (let i = 0; i < groups; i++) {
      appendTo(this.log, 1, dice.bytes(900), dice.bytes(900))
      appendTo(this.log, 0, dice.bytes(300))
    }
    const { runs } = partitionOf(this.log, 1, 1)
    this.records = readBack(this.log, partitionOf(this.log, 1, 1)).records
    this.others = readBack(this.log, partitionOf(this.log, 1, 0)).records
    const start = runs.position(1) + 200
    this.disk.bad.push({
      path: `${testDirectory}/${this.log.files.nameOf(runs.slot(1))}`,
      start,
      end: start + 1
    })
    this.log.sealOpenSlot()
  }

  settle(givesUpUnread: boolean): ReturnType<typeof settleAll> {
    return settleAll(this.disk, this.log, { sizes: settledSizes, givesUpUnread })
  }

  /** @param lost offsets of partition 1 that are refused. */
  assertServed(reader: ShardLog, lost: readonly number[]): void {
    const read = readBack(reader, partitionOf(reader, 1, 1))
    assert.deepEqual(
      read.records,
      this.records.filter(({ offset }) => !lost.includes(offset))
    )
    const [first, last] = [lost[0], lost.at(-1)]
    const refused = first === undefined || last === undefined ? [] : [{ firstOffset: first, lastOffset: last }]
    assert.deepEqual(read.damaged, refused)
    assert.deepEqual(readBack(reader, partitionOf(reader, 1, 0)).records, this.others)
  }
}

describe('a run that the device does not read when it is settled', () => {
  for (const groups of [2, 12]) {
    it(`ends the job and changes nothing, unless the job gives up, of ${groups} groups`, () => {
      const stage = new Stage(groups)
      assert.throws(
        () => stage.settle(false),
        (error: unknown) => error instanceof DiskError && error.code === 'EIO' && error.point === 'slot.read'
      )
      assert.equal(loadManifest(stage.disk, testDirectory, 0, 1).commit, 0)
      assert.equal(stage.log.sealedSlots.length, 1)
      stage.assertServed(stage.log, [])
    })

    it(`is given up alone, without bytes, and its slot is free, of ${groups} groups`, () => {
      const stage = new Stage(groups)
      const { damaged, damagedRuns, manifest } = stage.settle(true)
      assert.deepEqual(manifest.partitions.get(2)?.damaged, [{ firstOffset: 2, nextOffset: 4, path: null }])
      assert.deepEqual([damagedRuns, damaged], [1, [{ handle: 2, firstOffset: 2, nextOffset: 4, isKept: false }]])
      assert.equal(stage.disk.exists('/data/quarantine'), false)
      assert.equal(stage.log.sealedSlots.length, 0)
      stage.assertServed(stage.log, [2, 3])
      stage.assertServed(openSettled(stage.disk.killProcess(), 2), [2, 3])
    })
  }

  it('loses nothing if it can be read before the last try of the job that gives up', () => {
    const stage = new Stage(12)
    // Once with what lies beside it, then alone.
    stage.disk.failuresLeft = limits.unreadRunReads
    const { damagedRuns } = stage.settle(true)
    assert.equal(stage.disk.failures, limits.unreadRunReads)
    assert.equal(damagedRuns, 0)
    stage.assertServed(openSettled(stage.disk.killProcess(), 2), [])
  })
})

/** Some groups of two partitions in a sealed slot, and one in the next. */
class SealedStage {
  readonly disk = new BadSectorDisk()
  readonly log = openSettled(this.disk)
  readonly path: string
  readonly sizeBytes: number

  constructor() {
    const dice = diceOf(9)
    for (let i = 0; i < 12; i++) {
      appendTo(this.log, 1, dice.bytes(900), dice.bytes(900))
      appendTo(this.log, 0, dice.bytes(300))
    }
    this.log.sealOpenSlot()
    appendTo(this.log, 0, dice.bytes(300))
    this.path = `${testDirectory}/${this.log.sealedSlots[0]?.name}`
    const file = this.disk.open('slot.open', this.path)
    this.sizeBytes = file.sizeBytes()
    file.close()
  }

  overwrite(position: number, bytes: Uint8Array): void {
    const file = this.disk.open('slot.open', this.path)
    file.write('slot.fill', bytes, 0, bytes.length, position)
    file.close()
  }

  /** Records of both partitions, and the ranges that are damaged. */
  contents(log: ShardLog): ReturnType<typeof readBack>[] {
    return [0, 1].map(partition => readBack(log, partitionOf(log, 1, partition)))
  }

  settled(): unknown {
    return settleAll(this.disk, this.log, { sizes: settledSizes }).manifest.partitions
  }
}

const block = 4096
/** What becomes of the parts of a slot that only tell of its groups. */
const unreadParts: readonly (readonly [name: string, spoil: (stage: SealedStage) => void])[] = [
  [
    'tail block cannot be read',
    ({ disk, path, sizeBytes }) => disk.bad.push({ path, start: sizeBytes - 1, end: sizeBytes })
  ],
  ['tail block is damaged', stage => stage.overwrite(stage.sizeBytes - block, new Uint8Array(block))],
  ['footer is damaged', stage => stage.overwrite(stage.log.sealedSlots[0]?.usedBytes ?? 0, new Uint8Array(9).fill(7))],
  ['first header block cannot be read', ({ disk, path }) => disk.bad.push({ path, start: 0, end: 1 })],
  ['second header block cannot be read', ({ disk, path }) => disk.bad.push({ path, start: block, end: block + 1 })]
]

describe('a sealed slot', () => {
  for (const [name, spoil] of unreadParts) {
    it(`whose ${name} is settled as if nothing were wrong, and is there after a start`, () => {
      const expected = new SealedStage()
      const stage = new SealedStage()
      const before = stage.contents(stage.log)
      spoil(stage)
      assert.deepEqual(stage.settled(), expected.settled())
      assert.deepEqual(stage.contents(stage.log), before)
      assert.equal(stage.log.sealedSlots.length, 0)
      const unsettled = new SealedStage()
      spoil(unsettled)
      assert.deepEqual(stage.contents(openSettled(unsettled.disk, 2)), before)
    })
  }

  it('of which no header can be read is settled by a shard that knows it', () => {
    const stage = new SealedStage()
    const { disk, path } = stage
    disk.bad.push({ path, start: 0, end: 2 * block })
    assert.deepEqual(stage.settled(), new SealedStage().settled())
    assert.ok(disk.failures === 0, 'nobody needs to read it')
  })

  it('whose footer and one run are damaged is settled without that run, which is put aside', () => {
    const stage = new SealedStage()
    const { runs } = partitionOf(stage.log, 1, 1)
    const [all, some] = stage.contents(stage.log)
    stage.overwrite(runs.position(1) + 200, new Uint8Array(9).fill(7))
    stage.overwrite(stage.sizeBytes - block, new Uint8Array(block))
    stage.settled()
    const damaged = [{ firstOffset: 2, lastOffset: 3 }]
    const records = some?.records.filter(({ offset }) => offset !== 2 && offset !== 3)
    assert.deepEqual(stage.contents(stage.log), [all, { ...some, records, damaged }])
  })
})

/** Partition 0 lies in two packs; what is added to it now makes all of it move to a file of its own. */
class PackStage {
  readonly disk = new BadSectorDisk()
  readonly log = openSettled(this.disk)
  readonly records: readonly ReadRecord[]
  /** Of its records in the first pack. */
  readonly extent: Extent

  constructor() {
    const dice = diceOf(10)
    for (const groups of [5, 1]) {
      for (let i = 0; i < groups; i++) appendTo(this.log, 0, dice.bytes(900), dice.bytes(900))
      this.log.sealOpenSlot()
      settleAll(this.disk, this.log, { sizes: settledSizes })
    }
    const partition = loadManifest(this.disk, testDirectory, 0, 1).partitions.get(1)
    const extent = partition?.segments[0]?.extents[0]
    assert.ok(extent !== undefined && extent.pack > 0)
    this.extent = extent
    appendTo(this.log, 0, dice.bytes(6000))
    this.log.sealOpenSlot()
    this.records = readBack(this.log, partitionOf(this.log, 1, 0)).records
  }

  spoil(start: number, end: number): void {
    this.disk.bad.push({ path: `/data/${packPath({ shard: 0, placementEpoch: 1 }, this.extent.pack)}`, start, end })
  }

  settle(givesUpUnread: boolean): ReturnType<typeof settleAll> {
    return settleAll(this.disk, this.log, { sizes: settledSizes, givesUpUnread })
  }

  /** Offsets that cannot be read after a start on a disk that reads all it has. */
  lost(): readonly number[] {
    this.disk.failuresLeft = 0
    const again = openSettled(this.disk.killProcess(), 2)
    const found = readBack(again, partitionOf(again, 1, 0)).records
    const has = new Set(found.map(({ offset }) => offset))
    assert.deepEqual(
      found,
      this.records.filter(({ offset }) => has.has(offset))
    )
    return this.records.flatMap(({ offset }) => (has.has(offset) ? [] : [offset]))
  }
}

describe('a pack that the device does not read when its records move on', () => {
  it('ends the job, as one that may be read later, unless the job gives up', () => {
    const stage = new PackStage()
    stage.spoil(stage.extent.position + 10, stage.extent.position + 11)
    assert.throws(() => stage.settle(false), isUnreadPack)
    assert.equal(stage.log.sealedSlots.length, 1)
    stage.disk.failuresLeft = 0
    assert.equal(stage.settle(false).damagedRuns, 0)
    assert.deepEqual(stage.lost(), [])
  })

  it('costs what lies in the block that is given up, which is named, and nothing else', () => {
    const stage = new PackStage()
    stage.spoil(stage.extent.position + 10, stage.extent.position + 11)
    const { damaged, damagedRuns } = stage.settle(true)
    assert.equal(stage.log.sealedSlots.length, 0)
    assert.equal(damagedRuns, 1)
    const lost = stage.lost()
    const [{ firstOffset, nextOffset } = { firstOffset: -1, nextOffset: -1 }] = damaged
    assert.ok(lost.length > 0 && nextOffset < stage.extent.nextOffset)
    assert.ok(lost.every(offset => offset >= firstOffset && offset < nextOffset))
  })

  it('costs nothing where it is the entries of its blocks that are given up', () => {
    const stage = new PackStage()
    stage.spoil(stage.extent.blocksPosition, stage.extent.blocksPosition + 1)
    assert.equal(stage.settle(true).damagedRuns, 0)
    assert.ok(stage.disk.failures > 1)
    assert.deepEqual(stage.lost(), [])
  })

  it('costs nothing if it can be read before the last try', () => {
    const stage = new PackStage()
    stage.spoil(stage.extent.position + 10, stage.extent.position + 11)
    // Once with all of the extent, then alone.
    stage.disk.failuresLeft = limits.unreadRunReads
    assert.equal(stage.settle(true).damagedRuns, 0)
    assert.equal(stage.disk.failures, limits.unreadRunReads)
    assert.deepEqual(stage.lost(), [])
  })
})
