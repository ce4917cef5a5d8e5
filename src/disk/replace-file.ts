/** Replaces a small file whole, so that a kill or a power cut leaves the old one or the new one. Any thread. */
import { dirname } from 'node:path'
import type { Disk } from './disk.ts'
import type { FaultPoint } from './faults.ts'

/** Where each step stands. */
export interface ReplacePoints {
  /** Of a file that an earlier attempt left. */
  readonly remove: FaultPoint
  readonly create: FaultPoint
  readonly write: FaultPoint
  readonly sync: FaultPoint
  readonly rename: FaultPoint
  readonly directorySync: FaultPoint
}

/** Name under which a file is written before it takes its place. */
export function unfinishedPath(path: string): string {
  return `${path}.new`
}

/** Takes away what an attempt left that did not get to its rename. */
export function removeUnfinished(disk: Disk, path: string, points: Pick<ReplacePoints, 'remove'>): void {
  const unfinished = unfinishedPath(path)
  if (disk.exists(unfinished)) disk.remove(points.remove, unfinished)
}

/**
 * Puts `bytes` in the place of the file at `path`, or makes it; durable on return.
 * @throws DiskError. At any point but directorySync the old file stands; at that one it is not known which a power cut leaves.
 */
export function replaceFile(disk: Disk, path: string, bytes: Buffer, points: ReplacePoints): void {
  removeUnfinished(disk, path, points)
  const unfinished = unfinishedPath(path)
  const file = disk.create(points.create, unfinished)
  try {
    file.write(points.write, bytes, 0, bytes.length, 0)
    file.sync(points.sync)
  } finally {
    file.close()
  }
  disk.rename(points.rename, unfinished, path)
  disk.syncDirectory(points.directorySync, dirname(path))
}
