/**
 * Looks at a data directory without changing it: who may write there, who has it, how much room is below. Main thread.
 * Where there is none yet, a folder is made and removed at once in the place where `serve` would make it.
 * The lock is taken for a moment where nobody has it, and only where its file exists: a broker that runs is not disturbed.
 */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  statfsSync,
  statSync
} from 'node:fs'
import { dirname, join, relative, resolve, sep } from 'node:path'
import { unusable } from '../../../store/directory-lock.ts'
import { StoreOpenError } from '../../../store/store-open-error.ts'
import { openDataDirectory } from '../data-directory.ts'
import type { DirectoryFacts, OwnerFacts, SpaceFacts } from './facts.ts'

export function gatherDirectory(dataDir: string): DirectoryFacts {
  const path = resolve(dataDir)
  const nearest = nearestExisting(path)
  const { mode, uid } = statSync(nearest)
  const exists = nearest === path
  const isDirectory = statSync(nearest).isDirectory()
  const isWritable = mayWrite(nearest)
  return {
    path,
    nearest,
    exists,
    isDirectory,
    mode,
    ownerId: uid,
    userId: process.getuid?.() ?? null,
    isWritable,
    problem: exists || !isDirectory || !isWritable ? null : problemOfMaking(path, nearest)
  }
}

/**
 * Rights do not tell all: a link that leads nowhere has the name already, and /proc takes no folder of anybody.
 * @returns why `serve` could not make the directory; null: it could.
 */
function problemOfMaking(path: string, nearest: string): string | null {
  const [first = ''] = relative(nearest, path).split(sep)
  const name = join(nearest, first)
  if (lstatSync(name, { throwIfNoEntry: false }) !== undefined) return `${name} is a link that leads nowhere`
  try {
    rmdirSync(mkdtempSync(join(nearest, '.millrace-doctor-')))
    return null
  } catch (error) {
    return unusable(path, error).message
  }
}

function nearestExisting(path: string): string {
  let nearest = path
  while (!existsSync(nearest) && nearest !== dirname(nearest)) nearest = dirname(nearest)
  return nearest
}

function mayWrite(path: string): boolean {
  try {
    accessSync(path, constants.W_OK | constants.X_OK)
    return true
  } catch (error) {
    if (error instanceof Error && 'code' in error) return false
    throw error
  }
}

export function gatherOwner({ path, exists, isDirectory, isWritable }: DirectoryFacts): OwnerFacts {
  if (!exists || !isDirectory || !existsSync(join(path, 'lock.db'))) return { state: 'unused' }
  if (!isWritable) return { state: 'refused', message: `the lock of ${path} cannot be looked at without writing there` }
  try {
    const directory = openDataDirectory(path)
    try {
      return { state: 'free', shards: directory.journals.length, problems: directory.store.problems }
    } finally {
      directory.close()
    }
  } catch (error) {
    if (!(error instanceof StoreOpenError)) throw error
    return { state: error.code === 'in-use' ? 'held' : 'refused', message: error.message }
  }
}

export function gatherSpace({ path, nearest }: DirectoryFacts): SpaceFacts {
  const { bavail, bsize, blocks, files, ffree } = statfsSync(nearest)
  return {
    freeBytes: bavail * bsize,
    diskBytes: blocks * bsize,
    inodes: files,
    freeInodes: ffree,
    journalBytes: bytesBelow(join(path, 'journal'))
  }
}

/** A broker that runs may remove a file between its name and its size. */
function bytesBelow(folder: string): number {
  if (!existsSync(folder)) return 0
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => statSync(join(entry.parentPath, entry.name), { throwIfNoEntry: false })?.size ?? 0)
    .reduce((sum, bytes) => sum + bytes, 0)
}
