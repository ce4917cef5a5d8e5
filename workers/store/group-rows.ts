/**
 * The rows of consumer groups in store.db. Store thread only.
 *
 *   groups         number, name, owner: the id of the key that it belongs to
 *   group_offsets  by topic, group, partition: the next offset to read, and what a Kafka client noted beside it
 *
 * The key of group_offsets begins with the topic, so that what a deleted topic leaves is one range. Offsets are u64, and
 * SQLite's integers signed: from 2^63 on they stand as negative numbers, bit for bit.
 */
import type { DatabaseSync, SQLOutputValue, StatementSync } from 'node:sqlite'
import { assert } from '../../src/base/assert.ts'
import type { GroupChange, GroupOffsetRows, GroupRow } from '../../src/control/store-image.ts'

export const groupTables = `
  CREATE TABLE groups (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL
  ) STRICT;
  CREATE TABLE group_offsets (
    topic INTEGER NOT NULL,
    group_number INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    PRIMARY KEY (topic, group_number, partition)
  ) STRICT, WITHOUT ROWID;
`

/** What made format 9 of format 8: the leader epoch (−1: not told) and the metadata beside an offset. */
export const noteColumns = `
  ALTER TABLE group_offsets ADD COLUMN leader_epoch INTEGER NOT NULL DEFAULT -1;
  ALTER TABLE group_offsets ADD COLUMN metadata TEXT NOT NULL DEFAULT '';
`

/** Everything that stands for a group and a topic that are there. */
export function readGroups(database: DatabaseSync): { groups: GroupRow[]; groupOffsets: GroupOffsetRows } {
  const groups = database.prepare('SELECT number, name, owner FROM groups ORDER BY number').all().map(groupOf)
  const from = `FROM group_offsets WHERE topic IN (SELECT id FROM topics)
    AND group_number IN (SELECT number FROM groups)`
  const count = Number(database.prepare(`SELECT count(*) AS count ${from}`).get()?.['count'] ?? 0)
  const metadata = new Map<number, string>()
  const rows: GroupOffsetRows = {
    groups: new Uint32Array(count),
    topics: new Float64Array(count),
    partitions: new Uint32Array(count),
    offsets: new BigUint64Array(count),
    leaderEpochs: new Int32Array(count),
    metadata
  }
  // Most have nothing noted: null costs nothing on its way here.
  const noted = "nullif(leader_epoch, -1) AS leader_epoch, nullif(metadata, '') AS metadata"
  const statement = database.prepare(`SELECT topic, group_number, partition, offset, ${noted} ${from}`)
  statement.setReadBigInts(true)
  let at = 0
  statement.setReturnArrays(true)
  for (const row of statement.iterate() as unknown as Iterable<readonly SQLOutputValue[]>) {
    const [topic, group, partition, offset, epoch, text] = row
    assert(typeof offset === 'bigint', 'the columns of group_offsets are integers')
    rows.leaderEpochs[at] = epoch === null ? -1 : Number(epoch)
    if (typeof text === 'string') metadata.set(at, text)
    rows.topics[at] = Number(topic)
    rows.groups[at] = Number(group)
    rows.partitions[at] = Number(partition)
    rows.offsets[at++] = BigInt.asUintN(64, offset)
  }
  return { groups, groupOffsets: rows }
}

function groupOf({ number, name, owner }: Record<string, unknown>): GroupRow {
  assert(typeof number === 'number' && typeof name === 'string' && typeof owner === 'string', 'a STRICT table')
  return { number, name, owner }
}

/** Applies the changes of groups, each inside of the transaction of its commit. */
export class GroupRows {
  readonly #add: StatementSync
  readonly #remove: StatementSync
  readonly #removeOffsets: StatementSync
  readonly #removeOffset: StatementSync
  readonly #forgetTopic: StatementSync
  readonly #commit: StatementSync
  readonly #commitNoted: StatementSync

  constructor(database: DatabaseSync) {
    // OR REPLACE: main was told that a group of that name could not be stored, or not be removed.
    this.#add = database.prepare('INSERT OR REPLACE INTO groups (number, name, owner) VALUES (?, ?, ?)')
    this.#remove = database.prepare('DELETE FROM groups WHERE number = ?')
    this.#removeOffsets = database.prepare('DELETE FROM group_offsets WHERE topic = ? AND group_number = ?')
    this.#removeOffset = database.prepare(
      'DELETE FROM group_offsets WHERE topic = ? AND group_number = ? AND partition = ?'
    )
    this.#forgetTopic = database.prepare('DELETE FROM group_offsets WHERE topic = ?')
    this.#commit = database.prepare(
      'INSERT OR REPLACE INTO group_offsets (topic, group_number, partition, offset) VALUES (?, ?, ?, ?)'
    )
    this.#commitNoted = database.prepare(
      `INSERT OR REPLACE INTO group_offsets (topic, group_number, partition, offset, leader_epoch, metadata)
       VALUES (?, ?, ?, ?, ?, ?)`
    )
  }

  apply(change: GroupChange): void {
    switch (change.kind) {
      case 'group-added': {
        const { number, name, owner } = change.group
        this.#add.run(number, name, owner)
        return
      }
      case 'group-removed':
        for (const topic of change.topics) this.#removeOffsets.run(topic, change.number)
        this.#remove.run(change.number)
        return
      case 'group-offsets-removed':
        for (const { topic, partition } of change.places) this.#removeOffset.run(topic, change.number, partition)
        return
      case 'group-offsets':
        return this.#commitAll(change.rows)
    }
  }

  /** A row that is replaced loses what was noted in it: most have nothing, and their statement is the shorter one. */
  #commitAll({ groups, topics, partitions, offsets, leaderEpochs, metadata }: GroupOffsetRows): void {
    for (let i = 0; i < groups.length; i++) {
      const [topic, group, partition] = [topics[i] ?? 0, groups[i] ?? 0, partitions[i] ?? 0]
      const offset = BigInt.asIntN(64, offsets[i] ?? 0n)
      const epoch = leaderEpochs[i] ?? -1
      const text = metadata.get(i) ?? ''
      if (epoch === -1 && text === '') this.#commit.run(topic, group, partition, offset)
      else this.#commitNoted.run(topic, group, partition, offset, epoch, text)
    }
  }

  /** Its id never comes again, so the offsets mean nothing any more (spec D10). */
  forgetTopic(id: number): void {
    this.#forgetTopic.run(id)
  }
}
