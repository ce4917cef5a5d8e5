/**
 * The directories of a restore: where it writes, and how that takes the place of what was there. Main thread.
 *
 *   D.restoring-<random>  written, checked, synced ─▶ D ─▶ D.before-restore-<time>, if it is not empty ─▶ renamed to D
 *
 * Invariants: nothing in D is ever changed or removed. A kill at any moment leaves D as it was, or the whole new one; or,
 * between two renames, no D, and the old one whole under its new name.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { DiskError, type Disk } from '../../disk/disk.ts'
import { makeDataDirectory, takeLock } from '../../store/directory-lock.ts'
import { DumpRefusal } from './dump-refusal.ts'

/** Refuses a directory that must not be replaced. Looked at before anything is read, and again at the end. */
export function checkTarget(dataDir: string, force: boolean): void {
  if (!existsSync(dataDir)) return
  if (!statSync(dataDir).isDirectory()) throw new DumpRefusal(`--data-dir ${dataDir} is there and is not a directory`)
  if (!force && readdirSync(dataDir).length > 0) {
    throw new DumpRefusal(
      `--data-dir ${dataDir} is not empty: restore into another, or add --force to put it aside and restore in its place`
    )
  }
}

/** Makes an empty directory beside the one to be. @returns its absolute path. @throws StoreOpenError, DiskError */
export function makeStaging(disk: Disk, dataDir: string): string {
  makeDataDirectory(dirname(dataDir))
  const path = `${dataDir}.restoring-${randomBytes(4).toString('hex')}`
  disk.makeDirectory('restore.directory', path)
  return path
}

/** What failed is taken away again, as far as the system lets it. */
export function removeStaging(path: string): void {
  rmSync(path, { recursive: true, force: true })
}

/** Makes the names of all files durable, those in a directory before its own. @throws DiskError */
export function syncNames(disk: Disk, directory: string): void {
  for (const entry of readdirSync(directory, { withFileTypes: true })) {
    if (entry.isDirectory()) syncNames(disk, join(directory, entry.name))
  }
  disk.syncDirectory('restore.directory-sync', directory)
}

/**
 * Puts the finished directory in its place; durable on return.
 * @returns where the old directory is now, or null: there was none, or an empty one.
 * @throws DumpRefusal, DiskError; StoreOpenError if a broker uses the old one. Then the old one is where it was.
 */
export function takePlace(disk: Disk, staging: string, dataDir: string, force: boolean): string | null {
  checkTarget(dataDir, force)
  const kept = existsSync(dataDir) && readdirSync(dataDir).length > 0 ? putAside(disk, dataDir) : null
  try {
    disk.rename('restore.rename', staging, dataDir)
  } catch (error) {
    if (kept !== null) disk.rename('restore.rename', kept, dataDir)
    if (error instanceof DiskError && error.code === 'ENOTEMPTY') {
      throw new DumpRefusal(`--data-dir ${dataDir} was taken into use meanwhile; nothing in it was changed`)
    }
    throw error
  }
  disk.syncDirectory('restore.directory-sync', dirname(dataDir))
  return kept
}

/** The lock goes with the directory: a broker that has it is met here, one that comes later finds no directory. */
function putAside(disk: Disk, dataDir: string): string {
  const isOurs = ['store.db', 'lock.db', 'journal'].some(name => existsSync(join(dataDir, name)))
  const lock = isOurs ? takeLock(dataDir) : null
  try {
    const time = new Date().toISOString().replace(/[-:]/g, '').replace(/\.\d+/, '')
    let kept = `${dataDir}.before-restore-${time}`
    for (let copy = 2; existsSync(kept); copy++) kept = `${dataDir}.before-restore-${time}-${copy}`
    disk.rename('restore.rename', dataDir, kept)
    disk.syncDirectory('restore.directory-sync', dirname(dataDir))
    // The lock wrote it, and looks for it where the directory was.
    rmSync(join(kept, 'lock.pid'), { force: true })
    return kept
  } finally {
    lock?.release()
  }
}
