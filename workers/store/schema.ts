/**
 * The tables of store.db, their version, and the image read from them. Store thread only.
 *
 *   state       one row: directory id, placement, the next ids to allot
 *   topics      live topics with their configuration
 *   journals    by shard, the newest journal slot known to be durable (durability V2)
 *   tombstones  deleted topics whose handles may still stand in a slot (durability V6)
 *   added_partitions  of topics and tombstones, partitions that came later
 *   producers   producer ids of HTTP and ES01 with the numbers that the journal has for them (durability W5)
 *   keys        API keys: what they may do, and what is kept of their secrets (model/keys.ts)
 *   groups, group_offsets  consumer groups and what they committed: group-rows.ts
 *   schemas, schema_versions, schema_modes  the schema registry: schema-rows.ts
 *
 * u64 values (retention, tombstone retention) are kept as decimal text: SQLite integers are signed, and neither they
 * nor JavaScript numbers hold them exactly. Everything else is a safe integer by its limits.
 */
import { randomBytes } from 'node:crypto'
import type { DatabaseSync } from 'node:sqlite'
import { withRanges, type HandleRange } from '../../src/model/handles.ts'
import { toTopicId } from '../../src/model/ids.ts'
import type { Producer } from '../../src/model/producer.ts'
import { cleanupPolicies, partitioners, timestampTypes } from '../../src/model/topic.ts'
import type { Topic, TopicConfig } from '../../src/model/topic.ts'
import type { StoreImage, Tombstone } from '../../src/control/store-image.ts'
import { StoreOpenError } from '../../src/store/store-open-error.ts'
import { readKeys } from './key-rows.ts'
import { choiceOf, integerOf, textOf, countOf, wrongValue, type Row } from './columns.ts'
import { groupTables, noteColumns, readGroups } from './group-rows.ts'
import { readSchemas, schemaTables } from './schema-rows.ts'

/** PRAGMA user_version. Raised by one with every change of the tables; an older one is migrated, a newer one refused. */
export const FORMAT_VERSION = 10
/** PRAGMA application_id: the letters MLRC. */
export const APPLICATION_ID = 0x4d4c_5243

const tables = `
  CREATE TABLE state (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    directory_id TEXT NOT NULL,
    shard_count INTEGER,
    placement_epoch INTEGER NOT NULL,
    next_topic_id INTEGER NOT NULL,
    next_handle INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE topics (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    first_handle INTEGER NOT NULL UNIQUE,
    partition_count INTEGER NOT NULL,
    partitioner TEXT NOT NULL,
    retention_ms TEXT,
    retention_bytes TEXT,
    cleanup_policy TEXT NOT NULL,
    segment_bytes INTEGER NOT NULL,
    tombstone_retention_ms TEXT NOT NULL
  ) STRICT;
  CREATE TABLE journals (
    shard INTEGER PRIMARY KEY,
    newest_slot INTEGER NOT NULL
  ) STRICT;
  CREATE TABLE tombstones (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    first_handle INTEGER NOT NULL UNIQUE,
    partition_count INTEGER NOT NULL
  ) STRICT;
`

/** What made format 2 of format 1: producers. A new store is made the same way. */
const producerTables = `
  ALTER TABLE state ADD COLUMN next_producer_number INTEGER NOT NULL DEFAULT 1;
  CREATE TABLE producers (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    is_claimed INTEGER NOT NULL,
    last_used_ms INTEGER NOT NULL
  ) STRICT;
`

/** What made format 3 of format 2: changes of the number of shards (durability V7). */
const placementColumns = `
  ALTER TABLE state ADD COLUMN next_shard_count INTEGER;
  ALTER TABLE state ADD COLUMN previous_shard_count INTEGER;
`

/** What made format 4 of format 3: API keys. */
const keyTables = `
  CREATE TABLE keys (
    position INTEGER PRIMARY KEY,
    key_id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    rules TEXT NOT NULL,
    produce_bytes_per_sec INTEGER,
    consume_bytes_per_sec INTEGER,
    created_at_ms INTEGER NOT NULL,
    is_disabled INTEGER NOT NULL,
    secret_sha256 BLOB NOT NULL UNIQUE,
    scram_sha256_salt BLOB NOT NULL,
    scram_sha256_iterations INTEGER NOT NULL,
    scram_sha256_stored_key BLOB NOT NULL,
    scram_sha256_server_key BLOB NOT NULL,
    scram_sha512_salt BLOB NOT NULL,
    scram_sha512_iterations INTEGER NOT NULL,
    scram_sha512_stored_key BLOB NOT NULL,
    scram_sha512_server_key BLOB NOT NULL
  ) STRICT;
`

/** What made format 7 of format 6: topics whose records must match a schema. */
const validationColumn = `
  ALTER TABLE topics ADD COLUMN validate_schema INTEGER NOT NULL DEFAULT 0;
`

/** What made format 8 of format 7: whose times records have, how large they may be, and when a segment ends by its age. */
const messageColumns = `
  ALTER TABLE topics ADD COLUMN message_timestamp_type TEXT NOT NULL DEFAULT 'CreateTime';
  ALTER TABLE topics ADD COLUMN max_message_bytes INTEGER;
  ALTER TABLE topics ADD COLUMN segment_ms TEXT;
`

/** What made format 10 of format 9: topics that grew, live or deleted, have a row for each time; partition_count is of all. */
const addedTable = `
  CREATE TABLE added_partitions (
    first_handle INTEGER PRIMARY KEY,
    topic INTEGER NOT NULL,
    first_partition INTEGER NOT NULL,
    partition_count INTEGER NOT NULL
  ) STRICT;
`

/** What makes each format of the one before, from format 2 on. Formats 5 and 9 are of consumer groups (group-rows.ts), 6 is of schemas. */
const migrations: readonly string[] = [
  producerTables,
  placementColumns,
  keyTables,
  groupTables,
  schemaTables,
  validationColumn,
  messageColumns,
  noteColumns,
  addedTable
]

/**
 * Checks that the file is ours and not newer than this code, sets how it commits, and makes the tables in a new one.
 * @param path for the message only.
 * @throws StoreOpenError newer-format, damaged · the errors of node:sqlite
 */
export function prepareTables(database: DatabaseSync, path: string): void {
  const version = pragmaInteger(database, 'user_version')
  const isNew = version === 0 && database.prepare('SELECT 1 FROM sqlite_schema LIMIT 1').get() === undefined
  if (!isNew && pragmaInteger(database, 'application_id') !== APPLICATION_ID) {
    throw new StoreOpenError('damaged', `${path} is not a store of this broker`)
  }
  if (version > FORMAT_VERSION) {
    throw new StoreOpenError(
      'newer-format',
      `${path} was written by a newer version (store format ${version}; this one reads up to ${FORMAT_VERSION})`
    )
  }
  // FULL: the write-ahead log is synced by every commit, so a commit that returned survives a power cut.
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  if (isNew) createTables(database)
  else if (version < FORMAT_VERSION) migrateTables(database, version)
}

/** One transaction: a crash leaves the old format or the new one. */
function migrateTables(database: DatabaseSync, version: number): void {
  const steps = migrations.slice(version - 1).join('')
  database.exec(`BEGIN IMMEDIATE; ${steps} PRAGMA user_version = ${FORMAT_VERSION}; COMMIT`)
}

/** One transaction, header fields included: a crash leaves an empty file or a whole store. */
function createTables(database: DatabaseSync): void {
  database.exec('BEGIN IMMEDIATE')
  database.exec(tables)
  for (const migration of migrations) database.exec(migration)
  database
    .prepare(
      'INSERT INTO state (one, directory_id, placement_epoch, next_topic_id, next_handle) VALUES (1, ?, 0, 1, 1)'
    )
    .run(randomBytes(16).toString('hex'))
  database.exec(`PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${FORMAT_VERSION}; COMMIT`)
}

/**
 * Everything the store holds.
 * @throws StoreOpenError damaged if a value is not what its column may hold.
 */
export function readImage(database: DatabaseSync): StoreImage {
  const state = database.prepare('SELECT * FROM state').get()
  if (state === undefined) throw new StoreOpenError('damaged', 'the store has no state row')
  const added = readAdded(database)
  return {
    directoryId: textOf(state, 'directory_id'),
    shardCount: countOf(state, 'shard_count'),
    placementEpoch: integerOf(state, 'placement_epoch'),
    nextShardCount: countOf(state, 'next_shard_count'),
    previousShardCount: countOf(state, 'previous_shard_count'),
    topics: database
      .prepare('SELECT * FROM topics ORDER BY id')
      .all()
      .map(row => withAdded(topicOf(row), added)),
    tombstones: database
      .prepare('SELECT * FROM tombstones ORDER BY id')
      .all()
      .map(row => withAdded(tombstoneOf(row), added)),
    newestSlots: database
      .prepare('SELECT * FROM journals ORDER BY shard')
      .all()
      .map(row => ({ shard: integerOf(row, 'shard'), sequence: integerOf(row, 'newest_slot') })),
    nextTopicId: integerOf(state, 'next_topic_id'),
    nextHandle: integerOf(state, 'next_handle'),
    producers: database.prepare('SELECT * FROM producers ORDER BY number').all().map(producerOf),
    nextProducerNumber: integerOf(state, 'next_producer_number'),
    keys: readKeys(database),
    ...readGroups(database),
    ...readSchemas(database),
    nextSchemaId: integerOf(state, 'next_schema_id')
  }
}

/** By topic, in the order of their partitions. */
function readAdded(database: DatabaseSync): ReadonlyMap<number, readonly HandleRange[]> {
  const added = new Map<number, HandleRange[]>()
  for (const row of database.prepare('SELECT * FROM added_partitions ORDER BY topic, first_partition').all()) {
    const topic = integerOf(row, 'topic')
    const range = {
      firstPartition: integerOf(row, 'first_partition'),
      firstHandle: integerOf(row, 'first_handle'),
      partitionCount: integerOf(row, 'partition_count')
    }
    added.set(topic, [...(added.get(topic) ?? []), range])
  }
  return added
}

function withAdded<T extends Topic | Tombstone>(topic: T, added: ReadonlyMap<number, readonly HandleRange[]>): T {
  return withRanges(topic, added.get(topic.id) ?? [])
}

/** The config columns, in the order of configColumns. */
export function configValues(config: TopicConfig): (string | number | null)[] {
  return [
    config.retention_ms === null ? null : String(config.retention_ms),
    config.retention_bytes === null ? null : String(config.retention_bytes),
    config.cleanup_policy,
    config.segment_bytes,
    String(config.tombstone_retention_ms),
    Number(config.validate_schema),
    config.message_timestamp_type,
    config.max_message_bytes,
    config.segment_ms === null ? null : String(config.segment_ms),
    config.partitioner
  ]
}

/** Names of the columns that hold a TopicConfig. */
export const configColumns = [
  'retention_ms',
  'retention_bytes',
  'cleanup_policy',
  'segment_bytes',
  'tombstone_retention_ms',
  'validate_schema',
  'message_timestamp_type',
  'max_message_bytes',
  'segment_ms',
  'partitioner'
] as const

function topicOf(row: Row): Topic {
  return {
    id: toTopicId(integerOf(row, 'id')),
    name: textOf(row, 'name'),
    firstHandle: integerOf(row, 'first_handle'),
    partitionCount: integerOf(row, 'partition_count'),
    config: {
      retention_ms: row['retention_ms'] === null ? null : u64Of(row, 'retention_ms'),
      retention_bytes: row['retention_bytes'] === null ? null : u64Of(row, 'retention_bytes'),
      cleanup_policy: choiceOf(row, 'cleanup_policy', cleanupPolicies),
      segment_bytes: integerOf(row, 'segment_bytes'),
      tombstone_retention_ms: u64Of(row, 'tombstone_retention_ms'),
      validate_schema: integerOf(row, 'validate_schema') !== 0,
      message_timestamp_type: choiceOf(row, 'message_timestamp_type', timestampTypes),
      max_message_bytes: countOf(row, 'max_message_bytes'),
      segment_ms: row['segment_ms'] === null ? null : u64Of(row, 'segment_ms'),
      partitioner: choiceOf(row, 'partitioner', partitioners)
    }
  }
}

function tombstoneOf(row: Row): Tombstone {
  return {
    id: toTopicId(integerOf(row, 'id')),
    name: textOf(row, 'name'),
    firstHandle: integerOf(row, 'first_handle'),
    partitionCount: integerOf(row, 'partition_count')
  }
}

function producerOf(row: Row): Producer {
  return {
    number: integerOf(row, 'number'),
    id: textOf(row, 'id'),
    owner: textOf(row, 'owner'),
    isClaimed: integerOf(row, 'is_claimed') !== 0,
    lastUsedMs: integerOf(row, 'last_used_ms')
  }
}

function pragmaInteger(database: DatabaseSync, name: 'user_version' | 'application_id'): number {
  return integerOf(database.prepare(`PRAGMA ${name}`).get() ?? {}, name)
}

/** A number where a number is exact, else a bigint (D25). */
function u64Of(row: Row, column: string): number | bigint {
  const text = textOf(row, column)
  if (!/^\d{1,20}$/.test(text)) throw wrongValue(column, text)
  const number = Number(text)
  return Number.isSafeInteger(number) ? number : BigInt(text)
}
