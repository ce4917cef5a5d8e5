/**
 * store.db of a dump: copied by SQLite itself (durability V8), and cut to what the archive is to hold. Main thread, with
 * the directory's lock held.
 *
 * Invariant: what is cut leaves no bytes behind: SQLite keeps deleted rows in its free pages, so the file is made anew.
 */
import { rmSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { prepareTables } from '../../../workers/store/schema.ts'

/** Tables with secrets, or with what is kept of them. */
const keyTables: readonly string[] = ['keys']

/** What a store is cut to. */
export interface StoreCut {
  /** Ids of the topics that stay; null: all. */
  readonly topics: readonly number[] | null
  readonly includesKeys: boolean
}

/**
 * Writes a copy of the store at `path` to `target`, which must not exist.
 * @throws the errors of node:sqlite; StoreOpenError if it is no store of this version or an older one.
 */
export function copyStore(path: string, target: string, cut: StoreCut): void {
  const source = new DatabaseSync(path)
  try {
    prepareTables(source, path)
    source.prepare('VACUUM INTO ?').run(target)
  } finally {
    source.close()
  }
  cutStore(target, cut)
}

/** Takes out of a store what is not wanted. Nobody else has it open. @throws as copyStore */
export function cutStore(path: string, { topics, includesKeys }: StoreCut): void {
  const database = new DatabaseSync(path)
  try {
    prepareTables(database, path)
    if (topics !== null) {
      database
        .prepare('DELETE FROM topics WHERE id NOT IN (SELECT value FROM json_each(?))')
        .run(JSON.stringify(topics))
      // Groups stay, with what they committed on the topics that do.
      database.exec('DELETE FROM group_offsets WHERE topic NOT IN (SELECT id FROM topics)')
    }
    // Their handles stand in no slot any more (V6): all is settled.
    database.exec('DELETE FROM tombstones')
    database.exec('DELETE FROM added_partitions WHERE topic NOT IN (SELECT id FROM topics)')
    if (!includesKeys) for (const table of keyTables) database.exec(`DELETE FROM ${table}`)
    // One file, without a write-ahead log beside it.
    database.exec('PRAGMA wal_checkpoint(TRUNCATE); PRAGMA journal_mode = DELETE; VACUUM')
  } finally {
    database.close()
  }
  for (const suffix of ['-wal', '-shm']) rmSync(path + suffix, { force: true })
}
