/**
 * store.db: applies groups of commits, each commit whole or not at all, a group in one transaction with one sync.
 * Store thread only; owns the connection. Main decides what to store; nothing is validated here but the invariants that
 * must hold for ever: ids and handles only rise, and what is changed or deleted exists.
 *
 * After an I/O error the file's state is known only to the next open, so every later commit is refused.
 */
import type { DatabaseSync, StatementSync } from 'node:sqlite'
import { assert, unreachable } from '../../src/base/assert.ts'
import type { StoreChange, StoreImage } from '../../src/control/store-image.ts'
import type { Producer } from '../../src/model/producer.ts'
import type { Topic } from '../../src/model/topic.ts'
import {
  sqliteCodeOf,
  SQLITE_CANTOPEN,
  SQLITE_CORRUPT,
  SQLITE_FULL,
  SQLITE_IOERR,
  SQLITE_NOTADB,
  SQLITE_READONLY
} from '../../src/store/sqlite-error.ts'
import { INSERT_KEY, keyValues } from './key-rows.ts'
import { GroupRows } from './group-rows.ts'
import { SchemaRows } from './schema-rows.ts'
import { configColumns, configValues, readImage } from './schema.ts'

/**
 * full: no room, nothing of it stored, later commits may succeed. refused: an invariant would break; nothing stored.
 * failed: the disk or the file failed; `isUnknown` if the failure came when the group may already have been stored.
 */
export type CommitOutcome =
  | { readonly kind: 'committed' }
  | { readonly kind: 'full'; readonly cause: unknown }
  | { readonly kind: 'refused'; readonly cause: unknown }
  | { readonly kind: 'failed'; readonly cause: unknown; readonly isUnknown: boolean }

const committed: CommitOutcome = { kind: 'committed' }
const ioCodes: readonly (number | null)[] = [
  SQLITE_IOERR,
  SQLITE_CORRUPT,
  SQLITE_CANTOPEN,
  SQLITE_NOTADB,
  SQLITE_READONLY
]

export class StoreDatabase {
  readonly #database: DatabaseSync
  readonly #statements: Statements
  readonly #groups: GroupRows
  readonly #schemas: SchemaRows
  #failure: { readonly cause: unknown } | null = null

  /** @param database prepared by prepareTables; this object closes it. */
  constructor(database: DatabaseSync) {
    this.#database = database
    this.#statements = prepareStatements(database)
    this.#groups = new GroupRows(database)
    this.#schemas = new SchemaRows(database)
  }

  /** @throws StoreOpenError damaged */
  readImage(): StoreImage {
    return readImage(this.#database)
  }

  /**
   * Stores a group. On return every `committed` is on disk.
   * @returns one outcome per commit, in order.
   * @cost one sync, whatever the group holds.
   */
  commitGroup(commits: readonly (readonly StoreChange[])[]): CommitOutcome[] {
    if (this.#failure !== null) {
      const { cause } = this.#failure
      return commits.map(() => ({ kind: 'failed', cause, isUnknown: false }))
    }
    let isCommitting = false
    try {
      this.#database.exec('BEGIN IMMEDIATE')
      const outcomes = commits.map(changes => this.#applyOne(changes))
      isCommitting = true
      this.#database.exec('COMMIT')
      return outcomes
    } catch (error) {
      this.#rollBack()
      const outcome = this.#outcomeOf(error, isCommitting)
      return commits.map(() => outcome)
    }
  }

  /** Moves the write-ahead log into the database and closes it. @throws the errors of node:sqlite */
  close(): void {
    if (this.#failure === null) this.#database.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    this.#database.close()
  }

  /** One commit inside of the group's transaction. Throws only if the transaction itself is lost. */
  #applyOne(changes: readonly StoreChange[]): CommitOutcome {
    this.#database.exec('SAVEPOINT one')
    try {
      for (const change of changes) this.#apply(change)
    } catch (error) {
      if (!this.#database.isTransaction || isIoError(error)) throw error
      this.#database.exec('ROLLBACK TO one; RELEASE one')
      return this.#outcomeOf(error, false)
    }
    this.#database.exec('RELEASE one')
    return committed
  }

  #apply(change: StoreChange): void {
    switch (change.kind) {
      case 'placement':
        return this.#place(change)
      case 'slot-opened':
        this.#statements.noteSlot.run(change.shard, change.sequence)
        return
      case 'topic-created':
        return this.#createTopic(change.topic)
      case 'topic-configured':
        changedOne(this.#statements.configure.run(...configValues(change.config), change.id))
        return
      case 'topic-grown':
        return this.#growTopic(change)
      case 'topic-deleted':
        changedOne(this.#statements.bury.run(change.id))
        changedOne(this.#statements.remove.run(change.id))
        this.#groups.forgetTopic(change.id)
        return
      case 'tombstones-forgotten':
        for (const id of change.ids) {
          this.#statements.forgetTombstone.run(id)
          this.#statements.forgetAdded.run(id)
          // Offsets that were on their way when the topic was deleted.
          this.#groups.forgetTopic(id)
        }
        return
      case 'producer-added':
        return this.#addProducer(change.producer)
      case 'producer-used': {
        const { lastUsedMs, isClaimed, number } = change.producer
        this.#statements.useProducer.run(lastUsedMs, isClaimed ? 1 : 0, number)
        return
      }
      case 'producer-forgotten':
        this.#statements.forgetProducer.run(change.number)
        return
      case 'key-created':
        this.#statements.createKey.run(...keyValues(change.key))
        return
      case 'key-revoked':
        this.#statements.revokeKey.run(change.keyId)
        return
      case 'key-forgotten':
        this.#statements.forgetKey.run(change.keyId)
        return
      case 'group-added':
      case 'group-removed':
      case 'group-offsets':
      case 'group-offsets-removed':
        return this.#groups.apply(change)
      case 'schema-added':
      case 'schema-mode':
        return this.#schemas.apply(change)
      default:
        unreachable(change)
    }
  }

  /** Newest slots belong to an epoch: they go with it, in the same transaction. */
  #place(change: Extract<StoreChange, { kind: 'placement' }>): void {
    const { shardCount, epoch, nextShardCount = null, previousShardCount = null } = change
    this.#statements.leaveSlots.run(epoch)
    const moved = this.#statements.place.run(shardCount, epoch, nextShardCount, previousShardCount, epoch)
    assert(moved.changes === 1, 'placement epochs only rise')
  }

  /** The counters move with the row, in the same transaction: no id or handle is ever allotted twice. */
  #createTopic(topic: Topic): void {
    const { id, name, firstHandle, partitionCount, config } = topic
    const moved = this.#statements.allot.run(id + 1, firstHandle + partitionCount, id, firstHandle)
    assert(moved.changes === 1, 'topic id and handles must be above every one ever allotted')
    this.#statements.create.run(id, name, firstHandle, partitionCount, ...configValues(config))
  }

  #growTopic({ id, range }: Extract<StoreChange, { kind: 'topic-grown' }>): void {
    const { firstPartition, firstHandle, partitionCount } = range
    const moved = this.#statements.allotHandles.run(firstHandle + partitionCount, firstHandle)
    assert(moved.changes === 1, 'handles must be above every one ever allotted')
    changedOne(this.#statements.grow.run(firstPartition + partitionCount, id, firstPartition))
    this.#statements.addPartitions.run(firstHandle, id, firstPartition, partitionCount)
  }

  /** Replaces a row of that id: main was told that it could not be stored, or it could not be removed. */
  #addProducer({ number, id, owner, isClaimed, lastUsedMs }: Producer): void {
    const moved = this.#statements.allotProducer.run(number + 1, number)
    assert(moved.changes === 1, 'producer number must be above every one ever allotted')
    this.#statements.addProducer.run(number, id, owner, isClaimed ? 1 : 0, lastUsedMs)
  }

  #outcomeOf(cause: unknown, isCommitting: boolean): CommitOutcome {
    if (sqliteCodeOf(cause) === SQLITE_FULL) return { kind: 'full', cause }
    if (!isCommitting && !isIoError(cause)) return { kind: 'refused', cause }
    this.#failure = { cause }
    return { kind: 'failed', cause, isUnknown: isCommitting }
  }

  #rollBack(): void {
    if (!this.#database.isTransaction) return
    try {
      this.#database.exec('ROLLBACK')
    } catch (error) {
      // The error that led here is the one to report; this one says that the connection is of no more use.
      this.#failure = { cause: error }
    }
  }
}

function isIoError(error: unknown): boolean {
  return ioCodes.includes(sqliteCodeOf(error))
}

function changedOne(result: { readonly changes: number | bigint }): void {
  assert(result.changes === 1, 'a topic that is changed or deleted must exist')
}

interface Statements {
  readonly noteSlot: StatementSync
  readonly place: StatementSync
  readonly leaveSlots: StatementSync
  readonly allot: StatementSync
  readonly allotHandles: StatementSync
  readonly grow: StatementSync
  readonly addPartitions: StatementSync
  readonly forgetAdded: StatementSync
  readonly create: StatementSync
  readonly configure: StatementSync
  readonly bury: StatementSync
  readonly forgetTombstone: StatementSync
  readonly remove: StatementSync
  readonly allotProducer: StatementSync
  readonly addProducer: StatementSync
  readonly useProducer: StatementSync
  readonly forgetProducer: StatementSync
  readonly createKey: StatementSync
  readonly revokeKey: StatementSync
  readonly forgetKey: StatementSync
}

function prepareStatements(database: DatabaseSync): Statements {
  const columns = configColumns.join(', ')
  const assignments = configColumns.map(column => `${column} = ?`).join(', ')
  return {
    noteSlot: database.prepare(
      'INSERT INTO journals (shard, newest_slot) VALUES (?, ?) ON CONFLICT (shard) DO UPDATE SET newest_slot = max(newest_slot, excluded.newest_slot)'
    ),
    place: database.prepare(
      'UPDATE state SET shard_count = ?, placement_epoch = ?, next_shard_count = ?, previous_shard_count = ? WHERE placement_epoch <= ?'
    ),
    leaveSlots: database.prepare('DELETE FROM journals WHERE (SELECT placement_epoch FROM state) <> ?'),
    allot: database.prepare(
      'UPDATE state SET next_topic_id = ?, next_handle = ? WHERE next_topic_id <= ? AND next_handle <= ?'
    ),
    allotHandles: database.prepare('UPDATE state SET next_handle = ? WHERE next_handle <= ?'),
    grow: database.prepare('UPDATE topics SET partition_count = ? WHERE id = ? AND partition_count = ?'),
    addPartitions: database.prepare(
      'INSERT INTO added_partitions (first_handle, topic, first_partition, partition_count) VALUES (?, ?, ?, ?)'
    ),
    forgetAdded: database.prepare('DELETE FROM added_partitions WHERE topic = ?'),
    create: database.prepare(
      `INSERT INTO topics (id, name, first_handle, partition_count, ${columns})
       VALUES (?, ?, ?, ?, ${configColumns.map(() => '?').join(', ')})`
    ),
    configure: database.prepare(`UPDATE topics SET ${assignments} WHERE id = ?`),
    forgetTombstone: database.prepare('DELETE FROM tombstones WHERE id = ?'),
    bury: database.prepare(
      `INSERT INTO tombstones (id, name, first_handle, partition_count)
       SELECT id, name, first_handle, partition_count FROM topics WHERE id = ?`
    ),
    remove: database.prepare('DELETE FROM topics WHERE id = ?'),
    allotProducer: database.prepare('UPDATE state SET next_producer_number = ? WHERE next_producer_number <= ?'),
    addProducer: database.prepare(
      'INSERT OR REPLACE INTO producers (number, id, owner, is_claimed, last_used_ms) VALUES (?, ?, ?, ?, ?)'
    ),
    useProducer: database.prepare('UPDATE producers SET last_used_ms = ?, is_claimed = ? WHERE number = ?'),
    forgetProducer: database.prepare('DELETE FROM producers WHERE number = ?'),
    createKey: database.prepare(INSERT_KEY),
    revokeKey: database.prepare('UPDATE keys SET is_disabled = 1 WHERE key_id = ?'),
    forgetKey: database.prepare('DELETE FROM keys WHERE key_id = ? AND is_disabled = 1')
  }
}
