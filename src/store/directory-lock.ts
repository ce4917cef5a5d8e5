/**
 * The lock of a data directory (durability V8): `lock.db`, a SQLite file that nothing else opens, with an exclusive
 * transaction held for the whole life of the owner. The kernel drops it with the process, however that ends.
 * Runs on the store thread for the broker, and in-process for offline tools; take it before any other file is touched.
 *
 * Invariants: nothing but SQLite ever has `lock.db` open, because closing any other descriptor of it in this process
 * would silently drop the lock (POSIX locks belong to the process). SQLite itself keeps one table of locks for all
 * threads, so a second taker in the same process is refused as well and harms nothing.
 */
import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { sqliteCodeOf, SQLITE_BUSY } from './sqlite-error.ts'
import { StoreOpenError } from './store-open-error.ts'

/**
 * How long a taker tries. Two that start in the same instant get in each other's way for a moment, and both would be
 * refused without it.
 */
const TRY_MS = 200

export interface DirectoryLock {
  /** Gives the directory to whoever comes next. Call it last, once. */
  release(): void
}

/**
 * Makes the data directory (0700) and what is missing above it, and makes those names durable.
 * One level at a time: mkdir with `recursive` never returns on a file system that denies a name by ENOENT, as /proc does.
 * @throws StoreOpenError unusable
 */
export function makeDataDirectory(dataDir: string): void {
  const missing: string[] = []
  try {
    for (let path = resolve(dataDir); !existsSync(path); path = dirname(path)) missing.push(path)
    for (const path of missing.reverse()) {
      makeDirectory(path)
      syncDirectory(dirname(path))
    }
    if (missing.length === 0 && !statSync(dataDir).isDirectory())
      throw new StoreOpenError('unusable', notDirectory(dataDir))
  } catch (error) {
    throw error instanceof StoreOpenError ? error : unusable(dataDir, error)
  }
}

function notDirectory(dataDir: string): string {
  return `data directory ${dataDir} cannot be used: it is not a directory`
}

/** Another broker that starts on the same new path may be a moment ahead: the lock decides between them, not this. */
function makeDirectory(path: string): void {
  try {
    mkdirSync(path, { mode: 0o700 })
  } catch (error) {
    if (codeOf(error) !== 'EEXIST' || !statSync(path).isDirectory()) throw error
  }
}

/**
 * Takes the directory for this process; no other process, tool or thread gets it until release or the end of the process.
 *
 * @param dataDir must exist.
 * @throws StoreOpenError in-use, with the owner's pid when it is known; unusable
 */
export function takeLock(dataDir: string): DirectoryLock {
  const path = join(dataDir, 'lock.db')
  const pidPath = join(dataDir, 'lock.pid')
  let database: DatabaseSync | null = null
  try {
    makeFileIfMissing(path)
    database = new DatabaseSync(path, { timeout: TRY_MS })
    // Nothing is ever written to it, so it needs no journal file beside it.
    database.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
    // Only to name the owner in the other's message: who has the directory is decided by the lock alone.
    writeFileSync(pidPath, `${process.pid}\n`, { mode: 0o600 })
  } catch (error) {
    database?.close()
    if (sqliteCodeOf(error) !== SQLITE_BUSY) throw unusable(dataDir, error)
    throw new StoreOpenError(
      'in-use',
      `data directory ${dataDir} is in use by another millrace process${ownerOf(pidPath)}`
    )
  }
  return new HeldLock(database, pidPath)
}

class HeldLock implements DirectoryLock {
  readonly #database: DatabaseSync
  readonly #pidPath: string

  constructor(database: DatabaseSync, pidPath: string) {
    this.#database = database
    this.#pidPath = pidPath
  }

  release(): void {
    // The pid goes first: behind the release it could be the next owner's.
    rmSync(this.#pidPath, { force: true })
    this.#database.close()
  }
}

/**
 * Makes an empty file (0600) that SQLite will open, and makes its name durable. An existing file is not opened at all.
 * @throws the errors of node:fs
 */
export function makeFileIfMissing(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return
    throw error
  }
  syncDirectory(dirname(path))
}

/** The one line for a directory that the operating system or SQLite refuses. */
export function unusable(dataDir: string, error: unknown): StoreOpenError {
  const reason = reasons.get(codeOf(error) ?? '') ?? (error instanceof Error ? error.message : String(error))
  return new StoreOpenError('unusable', `data directory ${dataDir} cannot be used: ${reason}`, error)
}

const reasons: ReadonlyMap<string, string> = new Map([
  ['EACCES', 'permission denied (the broker must be able to make and write files there)'],
  ['EPERM', 'operation not permitted'],
  ['EROFS', 'the file system is mounted read-only'],
  ['ENOSPC', 'the disk is full'],
  ['ENOTDIR', 'a part of the path is not a directory'],
  ['EEXIST', 'it is not a directory'],
  ['ENOENT', 'it does not exist'],
  ['EMFILE', 'too many open files']
])

function codeOf(error: unknown): string | null {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : null
}

/** ` (pid 123)`, or nothing where the owner did not get to write it or did not leave it readable. */
function ownerOf(pidPath: string): string {
  try {
    const pid = Number.parseInt(readFileSync(pidPath, 'utf8'), 10)
    return Number.isInteger(pid) ? ` (pid ${pid})` : ''
  } catch (error) {
    if (codeOf(error) === null) throw error
    return ''
  }
}

function syncDirectory(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
