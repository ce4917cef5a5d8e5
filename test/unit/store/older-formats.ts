/** Makes a store what an older version of the code would have written: what each format added is taken back, newest first. */
import type { DatabaseSync } from 'node:sqlite'
import { FORMAT_VERSION } from '../../../workers/store/schema.ts'

const dropColumns = (table: string, ...columns: readonly string[]): string =>
  columns.map(column => `ALTER TABLE ${table} DROP COLUMN ${column}`).join('; ')

/** By the format that added it. */
const additions: Readonly<Record<number, string>> = {
  2: `DROP TABLE producers; ${dropColumns('state', 'next_producer_number')}`,
  3: dropColumns('state', 'next_shard_count', 'previous_shard_count'),
  4: 'DROP TABLE keys',
  5: 'DROP TABLE groups; DROP TABLE group_offsets',
  6: `DROP TABLE schemas; DROP TABLE schema_versions; DROP TABLE schema_modes; ${dropColumns('state', 'next_schema_id')}`,
  7: dropColumns('topics', 'validate_schema'),
  8: dropColumns('topics', 'message_timestamp_type', 'max_message_bytes', 'segment_ms'),
  9: dropColumns('group_offsets', 'leader_epoch', 'metadata'),
  10: 'DROP TABLE added_partitions'
}

/** @param connection to a store of today's format. */
export function takeBackTo(connection: DatabaseSync, format: number): void {
  for (let taken = FORMAT_VERSION; taken > format; taken--) connection.exec(additions[taken] ?? '')
  connection.exec(`PRAGMA user_version = ${format}`)
}
