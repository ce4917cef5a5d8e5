/** The directory of a shard's journal: made durably. Shard thread, before anything is read. */
import { dirname } from 'node:path'
import { DiskError, type Disk } from '../disk/disk.ts'

/**
 * Makes the directory of a shard's journal and its parent. On return their names and those of the files in them are
 * durable (W9), also if a process was killed between making one and syncing it.
 */
export function makeJournalDirectory(disk: Disk, directory: string): void {
  const parent = dirname(directory)
  makeDirectoryIfMissing(disk, parent)
  disk.syncDirectory('journal.directory-sync', dirname(parent))
  makeDirectoryIfMissing(disk, directory)
  disk.syncDirectory('journal.directory-sync', parent)
  disk.syncDirectory('journal.directory-sync', directory)
}

/** Shards start together and share the parent: another may have made it a moment ago. */
function makeDirectoryIfMissing(disk: Disk, path: string): void {
  try {
    disk.makeDirectory('journal.directory', path)
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== 'EEXIST') throw error
  }
}
