/** What bit rot does to settled data: a range that cannot be read, or nothing. Never a wrong byte. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { SimulatedDisk } from '../../../src/disk/simulated-disk.ts'
import { loadManifest } from '../../../src/log/manifest-file.ts'
import type { ShardLog } from '../../../src/log/shard-log.ts'
import { partitionOf, readBack, testDirectory } from '../../support/log-harness.ts'
import { chosenSeed, diceOf, replayLine } from '../../support/log-random.ts'
import { settleAll } from '../../support/log-settle.ts'
import { appendTo, makeSettledSample, openSettled, settledSizes } from '../../support/log-settled-sample.ts'
import { diskOfTree, readWhole, withBitTurned, without, type DataTree } from '../../support/log-tree.ts'

const FILE = 'test/unit/log/settled-damage.test.ts'
const sample = makeSettledSample()
const PARTITIONS = [0, 1, 2] as const

/** Offsets of a partition that are not served. @throws if one is served with another content, twice, or goes missing unsaid. */
function unreadOf(log: ShardLog, partition: number, from = 0, records = sample.records[partition] ?? []): number[] {
  const found = readBack(log, partitionOf(log, 1, partition), from)
  const unread = found.damaged.flatMap(({ firstOffset, lastOffset }) =>
    Array.from({ length: lastOffset - firstOffset + 1 }, (_, i) => firstOffset + i)
  )
  const expected = records.slice(from).filter(({ offset }) => !unread.includes(offset))
  assert.deepEqual(found.records, expected, `partition ${partition} from ${from}`)
  return unread
}

function open(tree: DataTree): ShardLog {
  return openSettled(diskOfTree(tree), 2)
}

/** Reads everything, from the start and from somewhere. @returns how many offsets are not served. */
function readAll(tree: DataTree, from: (count: number) => number): number {
  const [log, other] = [open(tree), open(tree)]
  for (const partition of PARTITIONS) unreadOf(other, partition, from(sample.records[partition]?.length ?? 0))
  return PARTITIONS.reduce<number>((sum, partition) => sum + unreadOf(log, partition).length, 0)
}

const settledFiles = [...sample.tree.keys()].filter(path => /\.(log|blocks|pack)$/.test(path))

describe('settled data that was damaged', () => {
  it('is served whole if nothing is', () => {
    assert.equal(
      readAll(sample.tree, () => 7),
      0
    )
    assert.deepEqual([...new Set(settledFiles.map(path => path.split('.').at(-1)))].sort(), ['blocks', 'log', 'pack'])
  })

  it('never gives a wrong byte, whichever bit of whichever file is turned', () => {
    const seed = chosenSeed()
    const dice = diceOf(seed)
    let struck = 0
    for (const path of settledFiles) {
      const length = sample.tree.get(path)?.length ?? 0
      const places = Array.from({ length: 20 }, () => dice.below(length))
      // The bytes of a batch that its own checksum does not cover, and entries of blocks.
      const firsts = Array.from({ length: 24 }, (_, at) => at)
      for (const at of [...firsts, ...places]) {
        const bit = dice.below(8)
        try {
          struck += readAll(withBitTurned(sample.tree, path, at, bit), count => dice.below(count))
        } catch (error) {
          throw new Error(`byte ${at}, bit ${bit} of ${path}; ${replayLine(seed, FILE)}`, { cause: error })
        }
      }
    }
    assert.ok(struck > 0, 'some of it was noticed')
  })

  it('loses no record to a bit of a segment that stands in its blocks alone', () => {
    const path = settledFiles.find(file => file.endsWith('.blocks')) ?? ''
    for (let at = 0; at < (sample.tree.get(path)?.length ?? 0); at++) {
      const tree = withBitTurned(sample.tree, path, at, at % 8)
      for (let from = 0; from < 70; from += 5) {
        assert.deepEqual(unreadOf(open(tree), 2, from), [], `byte ${at}, from ${from}`)
        if (at % 16 !== 0) break
      }
    }
  })

  it('is served whole without any file of blocks', () => {
    const tree = without(sample.tree, /\.blocks$/)
    assert.ok(tree.size < sample.tree.size)
    assert.equal(
      readAll(tree, () => 10),
      0
    )
  })

  it('is not made right by settling on: what was damaged in a pack goes to quarantine', () => {
    const packs = settledFiles.filter(path => path.endsWith('.pack'))
    const dice = diceOf(3)
    let quarantined = 0
    for (const path of packs) {
      for (let i = 0; i < 20; i++) {
        const at = dice.below(sample.tree.get(path)?.length ?? 0)
        const disk = diskOfTree(withBitTurned(sample.tree, path, at, dice.below(8)))
        const log = openSettled(disk, 2)
        const added = [0, 1].map(() => dice.bytes(9000))
        appendTo(log, 0, ...added)
        log.sealOpenSlot()
        const before = sample.records[0]?.length ?? 0
        settleAll(disk, log, { sizes: settledSizes })
        const partition = loadManifest(disk, testDirectory, 0, 1).partitions.get(1)
        assert.ok(
          partition?.segments.every(({ extents }) => extents.every(({ pack }) => pack === 0)),
          'all of it moved'
        )
        const again = openSettled(disk.killProcess(), 3)
        const found = readBack(again, partitionOf(again, 1, 0)).records
        const known = [...(sample.records[0] ?? []), ...found.filter(({ offset }) => offset >= before)]
        const unread = unreadOf(again, 0, 0, known)
        assert.deepEqual(
          found.slice(-2).map(({ value }) => value),
          added
        )
        if (unread.length > 0) quarantined++
        for (const { path: kept } of partition?.damaged ?? []) assert.ok(kept !== null)
      }
    }
    assert.ok(quarantined > 0)
  })
})

describe('a run that is damaged when it is settled', () => {
  for (const groups of [2, 12]) {
    it(`goes to quarantine whole, and the rest is served, of ${groups} groups`, () => {
      const disk = new SimulatedDisk()
      const log = openSettled(disk)
      const dice = diceOf(8)
      for (let i = 0; i < groups; i++) appendTo(log, 1, dice.bytes(900), dice.bytes(900))
      const { runs } = partitionOf(log, 1, 1)
      const records = readBack(log, partitionOf(log, 1, 1)).records
      const path = `${testDirectory}/${log.files.nameOf(runs.slot(1))}`
      const position = runs.position(1)
      const length = runs.bytes(1)
      log.sealOpenSlot()
      const file = disk.open('slot.open', path)
      file.write('slot.fill', Uint8Array.of(0x55), 0, 1, position + 200)
      const found = Buffer.alloc(length)
      file.read('slot.read', found, 0, length, position)
      file.close()
      const { damaged } = settleAll(disk, log, { sizes: settledSizes }).manifest.partitions.get(2) ?? { damaged: [] }
      assert.deepEqual(
        damaged.map(({ firstOffset, nextOffset }) => [firstOffset, nextOffset]),
        [[2, 4]]
      )
      assert.deepEqual(readWhole(disk, `/data/${damaged[0]?.path}`), found)
      const check = (reader: ShardLog): void => {
        for (const from of [0, 1, 3, 4]) {
          const read = readBack(reader, partitionOf(reader, 1, 1), from)
          assert.deepEqual(
            read.records,
            records.filter(({ offset }) => offset >= from && offset !== 2 && offset !== 3)
          )
          assert.deepEqual(read.damaged, from < 4 ? [{ firstOffset: Math.max(2, from), lastOffset: 3 }] : [])
        }
      }
      check(log)
      check(openSettled(disk.killProcess(), 2))
    })
  }
})
