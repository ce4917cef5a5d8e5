/** A slot that the device does not read in full when it is settled: what can be read is, and nothing is given up in haste. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { DiskError } from '../../../src/disk/disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
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
