/**
 * A stopped broker's data directory, held by a tool: its lock, its store, the journals of its shards. Main thread.
 *
 * Invariants: the lock is taken before any other file is looked into and given up last (V8); unless the tool was started
 * to write, nothing but the lock's own two files (lock.db, lock.pid) is ever written.
 */
import { existsSync, readdirSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Disk } from '../../disk/disk.ts'
import { createRealDisk } from '../../disk/real-disk.ts'
import { takeLock } from '../../store/directory-lock.ts'
import { epochDirectory, journalPath, shardOfName } from '../../log/shard-place.ts'
import { StoreOpenError } from '../../store/store-open-error.ts'
import { PartitionNames } from './partition-names.ts'
import { readOnly } from './read-only-disk.ts'
import { readStore, type StoreReading } from './store-reading.ts'

/** The journal of one shard. */
export interface ShardJournal {
  readonly shard: number
  readonly placementEpoch: number
  /** Absolute. */
  readonly directory: string
  /** Relative to the data directory: `journal/000`. */
  readonly label: string
}

export interface DataDirectory {
  /** Absolute. */
  readonly path: string
  readonly disk: Disk
  readonly store: StoreReading
  readonly names: PartitionNames
  /** By shard. */
  readonly journals: readonly ShardJournal[]
  /** Gives the directory back. Once, last. */
  close(): void
}

/**
 * Takes the directory and reads its store.
 * @param isWritable false: whatever would change something on its disk stops the tool.
 * @throws StoreOpenError in-use, newer-format, or unusable: also if the path is no data directory. Then nothing is held.
 */
export function openDataDirectory(dataDir: string, isWritable = false): DataDirectory {
  const path = resolve(dataDir)
  checkIsDataDirectory(dataDir, path)
  const lock = takeLock(path)
  try {
    const store = readStore(path)
    return {
      path,
      disk: isWritable ? createRealDisk() : readOnly(createRealDisk()),
      store,
      names: new PartitionNames(store.image),
      journals: listJournals(path, store.image?.placementEpoch ?? newestEpoch(path)),
      close: () => lock.release()
    }
  } catch (error) {
    lock.release()
    throw error
  }
}

/** Looked at before the lock, which would leave its file in a directory that is none of ours. */
function checkIsDataDirectory(dataDir: string, path: string): void {
  const problem = problemOf(path)
  if (problem !== null) throw new StoreOpenError('unusable', `data directory ${dataDir} cannot be used: ${problem}`)
}

function problemOf(path: string): string | null {
  if (!existsSync(path)) return 'it does not exist'
  if (!statSync(path).isDirectory()) return 'it is not a directory'
  const isOurs = existsSync(join(path, 'store.db')) || existsSync(join(path, 'journal'))
  return isOurs ? null : 'it has neither a store.db nor a journal, so no broker has used it'
}

/** Journals of other epochs are what a change of the number of shards left, or has not finished: no start reads them. */
function listJournals(path: string, placementEpoch: number): ShardJournal[] {
  const folder = join(path, epochDirectory('journal', placementEpoch))
  if (!existsSync(folder)) return []
  return readdirSync(folder, { withFileTypes: true })
    .flatMap(entry => {
      const shard = entry.isDirectory() ? shardOfName(entry.name) : null
      if (shard === null) return []
      const label = journalPath({ shard, placementEpoch })
      return [{ shard, placementEpoch, directory: join(path, label), label }]
    })
    .sort((a, b) => a.shard - b.shard)
}

/** Without a store nothing says which epoch counts. The newest with slots is the best guess: shards wrote into it. */
function newestEpoch(path: string): number {
  const folder = join(path, 'journal')
  if (!existsSync(folder)) return 1
  const epochs = readdirSync(folder).flatMap(name => (/^e\d+$/.test(name) ? [Number(name.slice(1))] : []))
  const hasSlots = (epoch: number): boolean =>
    listJournals(path, epoch).some(({ directory }) => readdirSync(directory).some(name => name.endsWith('.slot')))
  return epochs.sort((a, b) => b - a).find(hasSlots) ?? 1
}
