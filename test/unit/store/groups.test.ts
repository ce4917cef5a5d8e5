/** Consumer groups in store.db: rows in and out, what goes with a topic or a group, and stores of the format before. */
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test, type TestContext } from 'node:test'
import type { GroupOffsetRows, StoreChange, StoreImage } from '../../../src/control/store-image.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import { StoreDatabase } from '../../../workers/store/database.ts'
import { prepareTables } from '../../../workers/store/schema.ts'
import { topicOf } from '../control/topics.ts'
import { takeBackTo } from './older-formats.ts'

type Entry = readonly [
  ...[topic: number, group: number, partition: number, offset: bigint],
  ...note: readonly [leaderEpoch: number, metadata: string] | readonly []
]

const topic = (id: number): StoreChange => ({
  kind: 'topic-created',
  topic: topicOf({ id, name: `t${id}`, firstHandle: id })
})

const group = (number: number, name: string, owner = 'key'): StoreChange => ({
  kind: 'group-added',
  group: { number, name, owner }
})

function offsets(...entries: readonly Entry[]): StoreChange {
  const rows: GroupOffsetRows = {
    topics: Float64Array.from(entries, ([topic]) => topic),
    groups: Uint32Array.from(entries, ([, group]) => group),
    partitions: Uint32Array.from(entries, ([, , partition]) => partition),
    offsets: BigUint64Array.from(entries, ([, , , offset]) => offset),
    leaderEpochs: Int32Array.from(entries, ([, , , , epoch]) => epoch ?? -1),
    metadata: new Map(entries.flatMap(([, , , , , text], i) => (text === undefined ? [] : [[i, text]])))
  }
  return { kind: 'group-offsets', rows }
}

function entriesOf({ groupOffsets }: Pick<StoreImage, 'groupOffsets'>): Entry[] {
  const { topics, groups, partitions, offsets, leaderEpochs, metadata } = groupOffsets
  return Array.from(offsets, (offset, i) => {
    const place = [topics[i] ?? 0, groups[i] ?? 0, partitions[i] ?? 0, offset] as const
    const epoch = leaderEpochs[i] ?? -1
    return epoch === -1 && !metadata.has(i) ? place : [...place, epoch, metadata.get(i) ?? '']
  })
}

function openInMemory(t: TestContext): { connection: DatabaseSync; database: StoreDatabase } {
  const connection = new DatabaseSync(':memory:')
  prepareTables(connection, ':memory:')
  const database = new StoreDatabase(connection)
  t.after(() => database.close())
  return { connection, database }
}

describe('consumer groups in the store', () => {
  test('come back as they were, offsets up to 2^64 − 1 digit for digit, the last of each partition', t => {
    const { database } = openInMemory(t)
    database.commitGroup([
      [topic(1), topic(2)],
      [group(1, 'a'), group(2, 'b', 'another')]
    ])
    const large = 2n ** 64n - 1n
    database.commitGroup([[offsets([1, 1, 0, 5n], [1, 1, 1, large], [2, 1, 0, 2n ** 53n + 1n], [1, 2, 0, 2n ** 63n])]])
    database.commitGroup([[offsets([1, 1, 0, 3n])]])
    const image = database.readImage()
    assert.deepEqual(image.groups, [
      { number: 1, name: 'a', owner: 'key' },
      { number: 2, name: 'b', owner: 'another' }
    ])
    assert.deepEqual(entriesOf(image), [
      [1, 1, 0, 3n],
      [1, 1, 1, large],
      [1, 2, 0, 2n ** 63n],
      [2, 1, 0, 2n ** 53n + 1n]
    ])
  })

  test('lose the offsets of a deleted topic, also those that came behind the deletion', t => {
    const { database, connection } = openInMemory(t)
    database.commitGroup([[topic(1), topic(2), group(1, 'a'), offsets([1, 1, 0, 5n], [2, 1, 0, 6n])]])
    database.commitGroup([[{ kind: 'topic-deleted', id: toTopicId(1) }]])
    database.commitGroup([[offsets([1, 1, 1, 7n])]])
    assert.deepEqual(entriesOf(database.readImage()), [[2, 1, 0, 6n]])
    database.commitGroup([[{ kind: 'tombstones-forgotten', ids: [toTopicId(1)] }]])
    assert.equal(connection.prepare('SELECT count(*) AS n FROM group_offsets').get()?.['n'], 1)
  })

  test('go with their offsets when they are removed, and leave those of others', t => {
    const { database, connection } = openInMemory(t)
    database.commitGroup([[topic(1), topic(2), group(1, 'a'), group(2, 'b')]])
    database.commitGroup([[offsets([1, 1, 0, 5n], [2, 1, 0, 6n], [1, 2, 0, 7n])]])
    database.commitGroup([[{ kind: 'group-removed', number: 1, topics: [1, 2] }]])
    const image = database.readImage()
    assert.deepEqual([image.groups.length, entriesOf(image)], [1, [[1, 2, 0, 7n]]])
    assert.equal(connection.prepare('SELECT count(*) AS n FROM group_offsets').get()?.['n'], 1)
  })

  test('lose single offsets, and those of others stay', t => {
    const { database } = openInMemory(t)
    database.commitGroup([[topic(1), topic(2), group(1, 'a'), group(2, 'b')]])
    database.commitGroup([[offsets([1, 1, 0, 5n], [2, 1, 0, 6n], [1, 2, 0, 7n], [1, 1, 1, 8n])]])
    const places = [
      { topic: 1, partition: 0 },
      { topic: 2, partition: 5 }
    ]
    database.commitGroup([[{ kind: 'group-offsets-removed', number: 1, places }]])
    assert.deepEqual(entriesOf(database.readImage()), [
      [1, 1, 1, 8n],
      [1, 2, 0, 7n],
      [2, 1, 0, 6n]
    ])
  })

  test('replace a row of their name that main could not remove', t => {
    const { database } = openInMemory(t)
    database.commitGroup([[topic(1), group(1, 'a'), offsets([1, 1, 0, 5n])]])
    database.commitGroup([[group(2, 'a', 'another')]])
    const image = database.readImage()
    assert.deepEqual([image.groups, entriesOf(image)], [[{ number: 2, name: 'a', owner: 'another' }], []])
  })

  test('keep what is noted beside them byte for byte, until they are committed without', t => {
    const { database } = openInMemory(t)
    const metadata = 'a\0b "ä" \u{1f600}'
    database.commitGroup([[topic(1), group(1, 'a')]])
    database.commitGroup([
      [offsets([1, 1, 0, 5n, 0, ''], [1, 1, 1, 6n, 2 ** 31 - 1, metadata], [1, 1, 2, 7n, -1, 'x'])]
    ])
    assert.deepEqual(entriesOf(database.readImage()), [
      [1, 1, 0, 5n, 0, ''],
      [1, 1, 1, 6n, 2 ** 31 - 1, metadata],
      [1, 1, 2, 7n, -1, 'x']
    ])
    database.commitGroup([[offsets([1, 1, 0, 8n], [1, 1, 1, 9n], [1, 1, 2, 7n, -1, 'y'])]])
    assert.deepEqual(entriesOf(database.readImage()), [
      [1, 1, 0, 8n],
      [1, 1, 1, 9n],
      [1, 1, 2, 7n, -1, 'y']
    ])
  })

  test('of a store of format 7 have nothing noted, and can have', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[topic(1), group(1, 'a'), offsets([1, 1, 0, 5n], [1, 1, 1, 2n ** 64n - 1n])]])
    takeBackTo(connection, 7)
    prepareTables(connection, ':memory:')
    const migrated = new StoreDatabase(connection)
    assert.deepEqual(entriesOf(migrated.readImage()), [
      [1, 1, 0, 5n],
      [1, 1, 1, 2n ** 64n - 1n]
    ])
    migrated.commitGroup([[offsets([1, 1, 0, 6n, 0, 'noted'])]])
    assert.deepEqual(entriesOf(migrated.readImage())[0], [1, 1, 0, 6n, 0, 'noted'])
  })

  test('have their tables in a store of format 4, which keeps what it had', t => {
    const { connection, database } = openInMemory(t)
    database.commitGroup([[topic(1)]])
    takeBackTo(connection, 4)
    prepareTables(connection, ':memory:')
    const migrated = new StoreDatabase(connection)
    migrated.commitGroup([[group(1, 'a'), offsets([1, 1, 0, 5n])]])
    const image = migrated.readImage()
    assert.deepEqual([image.topics.length, entriesOf(image)], [1, [[1, 1, 0, 5n]]])
  })
})
