/** Groups in memory: offsets to the last digit, limits, and what the store is still to hear. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { GroupTable } from '../../../../src/control/groups/group-table.ts'
import { metadataCost } from '../../../../src/control/groups/topic-offsets.ts'
import type { GroupOffsetRows } from '../../../../src/control/store-image.ts'
import type { OffsetNote } from '../../../../src/model/groups.ts'
import { limits } from '../../../../src/model/limits.ts'
import { seed } from '../../../support/crash-run.ts'
import { diceOf, replayLine } from '../../../support/log-random.ts'
import { emptyImage } from '../topics.ts'

const FILE = 'test/unit/control/groups/group-table.test.ts'

type Row = readonly [group: number, topic: number, partition: number, offset: bigint, note: OffsetNote]

function rowsOf(rows: GroupOffsetRows | null): Row[] {
  if (rows === null) return []
  const { groups, topics, partitions, offsets, leaderEpochs, metadata } = rows
  return Array.from(offsets, (offset, i) => {
    const note = { leaderEpoch: leaderEpochs[i] ?? -1, metadata: metadata.get(i) ?? '' }
    return [groups[i] ?? 0, topics[i] ?? 0, partitions[i] ?? 0, offset, note]
  })
}

/** An offset with what is noted beside it. */
function textOf(offset: number | bigint, { leaderEpoch, metadata }: OffsetNote): string {
  return `${offset} ${leaderEpoch} ${metadata}`
}

function entriesOf(table: GroupTable): string[] {
  return Array.from(table.committedEntries(), ({ group, topicId, partition, offset }) => {
    return `${group} ${topicId}/${partition}=${offset}`
  }).sort()
}

describe('the table of groups', () => {
  it('is what a map would be, and the store would have all of it after the last change, over random histories', t => {
    t.diagnostic(replayLine(seed, FILE))
    const dice = diceOf(seed)
    for (let history = 0; history < 60; history++) {
      const table = new GroupTable(emptyImage)
      const groups = ['a', 'b', 'c'].map(name => table.add(name, 'key'))
      const expected = new Map<string, string>()
      const stored = new Map<string, string>()
      const store = (rows: GroupOffsetRows | null): void => {
        for (const [number, topic, id, value, note] of rowsOf(rows))
          stored.set(`${number} ${topic} ${id}`, textOf(value, note))
      }
      const forget = (map: Map<string, string>, isGone: (key: string) => boolean): void => {
        for (const key of map.keys()) if (isGone(key)) map.delete(key)
      }
      for (let step = 0; step < 200; step++) {
        const group = dice.pick(groups)
        const topicId = 1 + dice.below(3)
        const partition = dice.below(40)
        const offset = dice.pick([BigInt(dice.below(1000)), 2n ** 53n - 1n, 2n ** 53n, 2n ** 64n - 1n - BigInt(step)])
        if (dice.chance(0.02)) {
          table.forgetTopic(topicId)
          // Its rows go with the topic's.
          for (const map of [expected, stored]) forget(map, key => key.split(' ')[1] === String(topicId))
        } else if (dice.chance(0.05)) {
          const key = `${group.number} ${topicId} ${partition}`
          const removed = table.removeOffset(group, topicId, partition)
          assert.equal(removed === null ? null : textOf(removed.offset, removed.note), expected.get(key) ?? null)
          for (const map of [expected, stored]) map.delete(key)
        } else if (dice.chance(0.1)) {
          const rows = table.takeChanged(1 + dice.below(20))
          if (rows !== null && dice.chance(0.3)) table.giveBack(rows)
          else store(rows)
        } else {
          const note = {
            leaderEpoch: dice.pick([-1, -1, 0, 2 ** 31 - 1]),
            metadata: dice.pick(['', '', 'ä', 'x'.repeat(100)])
          }
          table.commit(group, topicId, partition, offset <= 2n ** 53n - 1n ? Number(offset) : offset, note)
          expected.set(`${group.number} ${topicId} ${partition}`, textOf(offset, note))
        }
      }
      for (let rows = table.takeChanged(7); rows !== null; rows = table.takeChanged(7)) {
        assert.ok(rows.offsets.length <= 7)
        store(rows)
      }
      const sorted = (map: Map<string, string>): [string, string][] => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
      assert.deepEqual(sorted(stored), sorted(expected), `history ${history}`)
      const shown = groups.flatMap(({ number, topics }) => {
        return [...topics].flatMap(([topicId, offsets]) => {
          return Array.from(offsets.entries(), ([id, offset]): [string, string] => [
            `${number} ${topicId} ${id}`,
            textOf(offset, offsets.noteOf(id))
          ])
        })
      })
      assert.deepEqual(sorted(new Map(shown)), sorted(expected))
      assert.equal(table.offsetCount, expected.size)
      assert.equal(
        groups.reduce((sum, { offsetCount }) => sum + offsetCount, 0),
        expected.size
      )
      for (const { number, metadataBytes } of groups) {
        const texts = [...expected].filter(([key]) => key.startsWith(`${number} `))
        const sum = texts.reduce((bytes, [, text]) => bytes + metadataCost(text.split(' ')[2] ?? ''), 0)
        assert.equal(metadataBytes, sum, `history ${history}`)
      }
      assert.equal(table.isChanged, false)
    }
  })

  it('begins with what the store has, which is not written again', () => {
    const table = new GroupTable({
      groups: [{ number: 7, name: 'a', owner: 'key' }],
      groupOffsets: {
        groups: Uint32Array.of(7, 7),
        topics: Float64Array.of(3, 3),
        partitions: Uint32Array.of(0, 9),
        offsets: BigUint64Array.of(5n, 2n ** 64n - 1n),
        leaderEpochs: Int32Array.of(0, -1),
        metadata: new Map([[1, 'noted']])
      }
    })
    const stored = table.withName('a')
    assert.deepEqual(
      [0, 9].map(partition => stored?.topics.get(3)?.noteOf(partition)),
      [
        { leaderEpoch: 0, metadata: '' },
        { leaderEpoch: -1, metadata: 'noted' }
      ]
    )
    assert.deepEqual(entriesOf(table), ['a 3/0=5', 'a 3/9=18446744073709551615'])
    assert.equal(table.takeChanged(10), null)
    assert.equal(table.add('b', 'key').number, 8, 'numbers go on')
  })

  it('refuses names that no group may have, and one group more than there may be', () => {
    const table = new GroupTable(emptyImage)
    for (const name of ['', '.', '..', 'a/b', 'ä', 'x'.repeat(201)])
      assert.throws(() => table.add(name, 'key'), { code: 'NAME_INVALID' })
    for (let i = 0; i < limits.groupsMax; i++) table.add(`g${i}`, 'key')
    assert.throws(() => table.add('more', 'key'), { code: 'GROUPS_TOO_MANY', message: /'more'.*100000/ })
    const first = table.withName('g0')
    assert.ok(first !== undefined)
    table.remove(first)
    table.add('more', 'key')
  })

  it('refuses an entry more than a group may have, and takes further commits of those that it has', () => {
    const table = new GroupTable(emptyImage)
    const group = table.add('g', 'key')
    for (let i = 0; i < limits.groupOffsetsMax; i++) table.commit(group, 1 + Math.floor(i / 10_000), i % 10_000, i)
    assert.throws(() => table.commit(group, 99, 0, 1), { code: 'GROUP_OFFSETS_TOO_MANY', message: /'g'.*100000/ })
    table.commit(group, 1, 0, 77)
    assert.equal(table.offsetOf(group, 1, 0), 77)
    table.commit(table.add('other', 'key'), 99, 0, 1)
    table.forgetTopic(1)
    table.commit(group, 99, 0, 1)
  })

  it('refuses an entry more than all groups may have together', () => {
    const table = new GroupTable(emptyImage)
    const { groupOffsetsMax: each, groupOffsetsTotalMax: total } = limits
    for (let g = 0; g < total / each; g++) {
      const group = table.add(`g${g}`, 'key')
      for (let i = 0; i < each; i++) table.commit(group, 1 + Math.floor(i / 10_000), i % 10_000, i)
    }
    const more = table.add('more', 'key')
    assert.throws(() => table.commit(more, 1, 0, 1), { code: 'GROUP_OFFSETS_TOO_MANY', message: /all groups together/ })
  })

  it('puts a removed group back as it was, but for topics that have gone', () => {
    const table = new GroupTable(emptyImage)
    const group = table.add('g', 'key')
    table.commit(group, 1, 0, 5)
    table.commit(group, 2, 0, 2n ** 64n - 1n, { leaderEpoch: 4, metadata: 'noted' })
    table.takeChanged(10)
    table.remove(group)
    assert.deepEqual([table.withName('g'), table.offsetCount, entriesOf(table)], [undefined, 0, []])
    table.restore(group, topicId => topicId === 2)
    assert.deepEqual(entriesOf(table), ['g 2/0=18446744073709551615'])
    const note = { leaderEpoch: 4, metadata: 'noted' }
    assert.deepEqual(rowsOf(table.takeChanged(10)), [[group.number, 2, 0, 2n ** 64n - 1n, note]])
  })

  it('refuses metadata beyond what one offset, a group, and all groups together may have, and notes nothing then', () => {
    const table = new GroupTable(emptyImage)
    const metadata = 'x'.repeat(limits.offsetMetadataBytesMax)
    const note = { leaderEpoch: -1, metadata }
    const each = Math.floor(limits.groupMetadataBytesMax / metadataCost(metadata))
    const refused = (whose: string) => ({ code: 'OFFSET_METADATA_TOO_LARGE', message: new RegExp(whose) })
    const group = table.add('g', 'key')
    const longer = { ...note, metadata: `${metadata}x` }
    assert.throws(() => table.commit(group, 1, 0, 1, longer), refused('one offset'))
    assert.throws(() => table.commit(group, 1, 0, 1, { ...note, metadata: 'ä'.repeat(2049) }), refused('4098 bytes'))
    for (let i = 0; i < each; i++) table.commit(group, 1, i, 1, note)
    assert.throws(() => table.commit(group, 1, each, 1, note), refused('a group may have'))
    assert.equal(table.offsetOf(group, 1, each), null)
    table.commit(group, 1, 0, 2, note)
    table.commit(group, 1, each, 1)

    for (let g = 1; g < limits.groupMetadataBytesTotalMax / limits.groupMetadataBytesMax; g++) {
      const other = table.add(`g${g}`, 'key')
      for (let i = 0; i < each; i++) table.commit(other, 1, i, 1, note)
    }
    const more = table.add('more', 'key')
    // Text beyond Latin-1 takes two bytes a character of the memory, however few of them are beyond it.
    assert.equal(metadataCost(`${'x'.repeat(10)}漢`), 64 + 22)
    const rest = Math.floor(limits.groupMetadataBytesTotalMax / metadataCost(metadata))
    const fill = (): void => {
      for (let i = 0; i <= rest; i++) table.commit(more, 1, i, 1, note)
    }
    assert.throws(fill, refused('all groups together'))
    table.remove(group)
    for (let i = 0; i < each; i++) table.commit(more, 1, i, 1, note)
    table.forgetTopic(1)
    assert.deepEqual(
      [...table.groups()].map(({ metadataBytes }) => metadataBytes),
      [...table.groups()].map(() => 0)
    )
  })

  it('holds 100,000 entries in a few megabytes', t => {
    const table = new GroupTable(emptyImage)
    const group = table.add('g', 'key')
    const before = process.memoryUsage()
    for (let i = 0; i < 100_000; i++) table.commit(group, 1 + Math.floor(i / 10_000), i % 10_000, i * 1000)
    const after = process.memoryUsage()
    const bytes = after.heapUsed + after.arrayBuffers - before.heapUsed - before.arrayBuffers
    t.diagnostic(`${Math.round(bytes / 1024)} KiB for 100,000 entries, garbage included`)
    assert.ok(bytes < 16 * 1024 * 1024, `${bytes}`)
  })
})
