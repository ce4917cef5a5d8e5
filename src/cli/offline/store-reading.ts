/**
 * store.db as the offline tools read it: a copy of it, in the system's temporary folder, gone again at once. Main thread.
 *
 * A copy because SQLite cannot read a database in WAL mode without making files beside it, and the tools change nothing.
 * Copying files is safe here and only here: the directory's lock is held, so nobody else writes them, and this process
 * has no connection to the original, whose locks closing a descriptor would drop.
 */
import { copyFileSync, existsSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { StoreImage } from '../../control/store-image.ts'
import { sqliteCodeOf, SQLITE_CORRUPT, SQLITE_NOTADB } from '../../store/sqlite-error.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import { prepareTables, readImage } from '../../../workers/store/schema.ts'

/** Rows of SQLite's own report that are passed on. */
const PROBLEMS_MAX = 100

/** What the store says, and what is wrong with it. */
export interface StoreReading {
  /** null: missing, or too damaged to say. */
  readonly image: StoreImage | null
  /** One per fault; none in a sound store. */
  readonly problems: readonly string[]
  /** With its write-ahead log. */
  readonly bytes: number
}

/**
 * Reads the store of a locked data directory.
 * @throws StoreOpenError newer-format; unusable if the file or the temporary folder refuses.
 */
export function readStore(dataDir: string): StoreReading {
  const path = join(dataDir, 'store.db')
  if (!existsSync(path)) return { image: null, problems: ['the store is missing'], bytes: 0 }
  let folder: string | null = null
  try {
    folder = mkdtempSync(join(tmpdir(), 'millrace-store-'))
    const copy = join(folder, 'store.db')
    const files = ['', '-wal'].filter(suffix => existsSync(path + suffix))
    for (const suffix of files) copyFileSync(path + suffix, copy + suffix)
    const bytes = files.reduce((sum, suffix) => sum + statSync(path + suffix).size, 0)
    return { ...readCopy(copy, path), bytes }
  } catch (error) {
    if (error instanceof StoreOpenError || !(error instanceof Error) || !('code' in error)) throw error
    throw new StoreOpenError('unusable', `${path} cannot be read: ${error.message}`, error)
  } finally {
    if (folder !== null) rmSync(folder, { recursive: true, force: true })
  }
}

function readCopy(copy: string, path: string): Pick<StoreReading, 'image' | 'problems'> {
  let database: DatabaseSync | null = null
  try {
    database = new DatabaseSync(copy)
    prepareTables(database, path)
    const rows = database.prepare(`PRAGMA integrity_check(${PROBLEMS_MAX})`).all()
    const problems = rows.map(row => String(row['integrity_check'])).filter(text => text !== 'ok')
    return { image: readImage(database), problems }
  } catch (error) {
    if (error instanceof StoreOpenError && error.code === 'damaged') return { image: null, problems: [error.message] }
    const code = sqliteCodeOf(error)
    if (code !== SQLITE_NOTADB && code !== SQLITE_CORRUPT) throw error
    const reason = error instanceof Error ? error.message : String(error)
    return { image: null, problems: [`the store cannot be read: ${reason}`] }
  } finally {
    database?.close()
  }
}
