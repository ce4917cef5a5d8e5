/**
 * Opens a data directory in the one order that is safe: directory, lock, store. Store thread only.
 */
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { makeDataDirectory, makeFileIfMissing, takeLock, unusable } from '../../src/store/directory-lock.ts'
import type { DirectoryLock } from '../../src/store/directory-lock.ts'
import { sqliteCodeOf, SQLITE_CORRUPT, SQLITE_NOTADB } from '../../src/store/sqlite-error.ts'
import { StoreOpenError } from '../../src/store/store-open-error.ts'
import type { StoreImage } from '../../src/control/store-image.ts'
import { StoreDatabase } from './database.ts'
import { prepareTables } from './schema.ts'

export interface OpenedDirectory {
  readonly lock: DirectoryLock
  readonly database: StoreDatabase
  readonly image: StoreImage
}

/**
 * @param dataDir is made if missing.
 * @throws StoreOpenError; then nothing is held.
 */
export function openDirectory(dataDir: string): OpenedDirectory {
  makeDataDirectory(dataDir)
  const lock = takeLock(dataDir)
  try {
    return { lock, ...openStoreFile(dataDir) }
  } catch (error) {
    lock.release()
    throw error
  }
}

function openStoreFile(dataDir: string): { database: StoreDatabase; image: StoreImage } {
  const path = join(dataDir, 'store.db')
  let connection: DatabaseSync | null = null
  try {
    makeFileIfMissing(path)
    connection = new DatabaseSync(path)
    prepareTables(connection, path)
    const database = new StoreDatabase(connection)
    return { database, image: database.readImage() }
  } catch (error) {
    connection?.close()
    if (error instanceof StoreOpenError) throw error
    const code = sqliteCodeOf(error)
    if (code === SQLITE_NOTADB || code === SQLITE_CORRUPT) {
      throw new StoreOpenError('damaged', `${path} is damaged and cannot be read as a store`, error)
    }
    throw unusable(dataDir, error)
  }
}
