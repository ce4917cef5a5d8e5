/**
 * Files that a change of the manifest leaves unused. Only files that the manifest itself named before are ever removed:
 * what nobody knows is kept (V4). Settler thread, or a tool that holds the lock.
 */
import { dirname } from 'node:path'
import { DiskError, type Disk } from '../../disk/disk.ts'
import type { FileRemoval, Manifest, ManifestPartition, ManifestSegment } from '../manifest.ts'
import { objectKey, packPath, segmentDirectory, segmentFileKinds, segmentPath } from '../segment-files.ts'
import { removeEmpty, removeOutputs } from '../unfinished-compaction.ts'

/** What becomes removable by a change: paths relative to the data directory, and keys of objects in cold storage. */
export interface Unused {
  readonly paths: readonly string[]
  readonly keys: readonly string[]
}

/** What the manifest names and those partitions do not. */
export function unusedFiles(manifest: Manifest, partitions: ReadonlyMap<number, ManifestPartition>): Unused {
  return { paths: unusedPaths(manifest, partitions), keys: unusedKeys(manifest, partitions) }
}

/** The removals of a manifest after a change. */
export function removalsAfter(manifest: Manifest, { paths, keys }: Unused, dueMs: number): FileRemoval[] {
  const cold = keys.map(path => ({ path, dueMs, isCold: true as const }))
  return [...manifest.removals, ...paths.map(path => ({ path, dueMs })), ...cold]
}

function unusedKeys(manifest: Manifest, partitions: ReadonlyMap<number, ManifestPartition>): string[] {
  const keys: string[] = []
  for (const [handle, old] of manifest.partitions) {
    const now = partitions.get(handle)
    if (now === old) continue
    const kept = new Set(now?.segments.filter(isCold).map(nameOf) ?? [])
    for (const segment of old.segments) {
      if (!isCold(segment) || kept.has(nameOf(segment))) continue
      for (const kind of segmentFileKinds) keys.push(objectKey(old.directory, segment, kind))
    }
  }
  return keys
}

function unusedPaths(manifest: Manifest, partitions: ReadonlyMap<number, ManifestPartition>): string[] {
  const paths: string[] = []
  for (const [handle, old] of manifest.partitions) {
    const now = partitions.get(handle)
    if (now === old) continue
    const kept = new Set(now?.segments.filter(hasOwnFiles).map(nameOf) ?? [])
    for (const segment of old.segments) {
      if (!hasOwnFiles(segment) || kept.has(nameOf(segment))) continue
      for (const kind of segmentFileKinds) paths.push(segmentPath(old.directory, segment, kind))
    }
    const here = old.segments.filter(segment => !isCold(segment))
    const directories = new Set(here.map(segment => segmentDirectory(old.directory, segment)))
    directories.add(old.directory)
    if (now === undefined) directories.add(dirname(old.directory))
    else directories.delete(old.directory)
    for (const segment of now?.segments ?? [])
      if (!isCold(segment)) directories.delete(segmentDirectory(old.directory, segment))
    paths.push(...directories)
  }
  const packs = packsOf(manifest.partitions.values())
  for (const pack of packsOf(partitions.values())) packs.delete(pack)
  for (const pack of packs) paths.push(packPath(manifest, pack))
  return [...new Set(paths)].sort(byOrderOfRemoval)
}

/** Files before directories, inner directories before outer ones. */
function byOrderOfRemoval(a: string, b: string): number {
  if (isFile(a) !== isFile(b)) return isFile(a) ? -1 : 1
  return b.split('/').length - a.split('/').length
}

/** Numbers of the pack files in which something of those partitions lies. */
export function packsOf(partitions: Iterable<ManifestPartition>): Set<number> {
  const packs = new Set<number>()
  for (const { segments } of partitions) {
    for (const { extents } of segments) {
      for (const { pack, blocksPack } of extents) {
        if (pack !== 0) packs.add(pack)
        if (blocksPack !== 0) packs.add(blocksPack)
      }
    }
  }
  return packs
}

/**
 * Removes the files that are due, files before their directories, durably: what the next commit forgets does not come
 * back. Objects are left to others. @returns what is left: not due yet, or refused by the disk, to be tried again.
 */
export function removeDue(
  disk: Disk,
  dataDirectory: string,
  removals: readonly FileRemoval[],
  nowMs: number
): { left: FileRemoval[]; refused: DiskError[] } {
  // Objects are not of the disk: whoever has the store removes them.
  const left: FileRemoval[] = removals.filter(({ isCold }) => isCold)
  /** Directories in which something is left: their turn comes when it is gone. */
  const held = new Set<string>()
  const keep = (removal: FileRemoval): void => {
    left.push(removal)
    for (let path = dirname(removal.path); path !== '.' && !held.has(path); path = dirname(path)) held.add(path)
  }
  for (const removal of removals) if (removal.dueMs > nowMs && !removal.isCold) keep(removal)
  const refused: DiskError[] = []
  const removed = new Map<string, FileRemoval[]>()
  const attempt = (those: readonly FileRemoval[], action: () => void): void => {
    try {
      action()
    } catch (error) {
      if (!(error instanceof DiskError)) throw error
      refused.push(error)
      for (const removal of those) keep(removal)
    }
  }
  for (const removal of removals) {
    if (removal.dueMs > nowMs || removal.isCold) continue
    if (held.has(removal.path)) {
      keep(removal)
      continue
    }
    attempt([removal], () => {
      removeOne(disk, `${dataDirectory}/${removal.path}`, isFile(removal.path))
      const directory = dirname(removal.path)
      const others = removed.get(directory)
      if (others === undefined) removed.set(directory, [removal])
      else others.push(removal)
    })
  }
  for (const [directory, those] of removed) {
    const absolute = `${dataDirectory}/${directory}`
    // A directory that is gone itself takes the names in it along.
    if (disk.exists(absolute)) attempt(those, () => disk.syncDirectory('segment.directory-sync', absolute))
  }
  return { left, refused }
}

/**
 * Gone already is as good. A directory that holds other things is kept; but what compactions left in it that never counted
 * goes: of a partition's directories only those of deleted topics are removed, and nobody else would look there again.
 */
function removeOne(disk: Disk, path: string, isFileName: boolean): void {
  if (!isFileName) {
    if (removeEmpty(disk, path)) return
    removeOutputs(disk, path)
    removeEmpty(disk, path)
    return
  }
  try {
    disk.remove(path.endsWith('.pack') ? 'pack.remove' : 'segment.remove', path)
  } catch (error) {
    if (!(error instanceof DiskError) || error.code !== 'ENOENT') throw error
  }
}

/** Directories have no extension: a partition is a number, a compaction `c7`, a topic ends in its id. */
function isFile(path: string): boolean {
  return path.endsWith('.pack') || segmentFileKinds.some(kind => path.endsWith(kind))
}

function hasOwnFiles({ extents, cold }: ManifestSegment): boolean {
  return cold === undefined && extents.some(({ pack }) => pack === 0)
}

function isCold({ cold }: ManifestSegment): boolean {
  return cold !== undefined
}

function nameOf({ baseOffset, compaction }: ManifestSegment): string {
  return `${baseOffset}/${compaction}`
}
