/**
 * What compactions left that never counted: directories `c<number>.new` of a partition, and `c<number>` that got its name
 * and was not committed. No manifest names them, and only a compaction makes them, so they may go (V4). Whoever calls knows
 * that no compaction of the partition runs, or that its topic is deleted.
 */
import { DiskError, type Disk } from '../disk/disk.ts'
import { segmentFileKinds } from './segment-files.ts'

const unfinishedName = /^c\d+\.new$/
const outputName = /^c(\d+)(\.new)?$/

/** Takes away those of a partition. @param directory of the partition, absolute; it may be missing. @throws DiskError */
export function removeUnfinished(disk: Disk, directory: string): void {
  if (!disk.exists(directory)) return
  for (const name of disk.list(directory)) {
    if (unfinishedName.test(name)) removeOutput(disk, `${directory}/${name}`)
  }
}

/** Takes away every one of a partition whose topic is deleted: what a manifest named of it is gone. @throws DiskError */
export function removeOutputs(disk: Disk, directory: string): void {
  for (const name of disk.list(directory)) if (outputName.test(name)) removeOutput(disk, `${directory}/${name}`)
}

/**
 * Takes away those of a partition that got their name and were not committed: a kill, or a disk that refused the manifest.
 * @param newest the greatest number that a compaction of this manifest may have had: of others nothing is known here.
 * @param isNamed tells of a name whether the manifest has it, in segments or among what is still to be removed.
 * @throws DiskError
 */
export function removeUncommitted(
  disk: Disk,
  directory: string,
  newest: number,
  isNamed: (name: string) => boolean
): void {
  for (const name of disk.list(directory)) {
    const [, number, unfinished] = outputName.exec(name) ?? []
    if (number === undefined || unfinished !== undefined || Number(number) > newest || isNamed(name)) continue
    removeOutput(disk, `${directory}/${name}`)
  }
}

/** Takes one away. What else lies in it is kept. @throws DiskError */
export function removeOutput(disk: Disk, directory: string): void {
  for (const file of disk.list(directory)) {
    if (segmentFileKinds.some(kind => file.endsWith(kind))) disk.remove('segment.remove', `${directory}/${file}`)
  }
  removeEmpty(disk, directory)
}

/** Removes a directory unless something is in it. @returns whether it is gone. @throws DiskError */
export function removeEmpty(disk: Disk, directory: string): boolean {
  try {
    disk.removeDirectory('segment.remove', directory)
    return true
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
    if (error.code === 'ENOENT') return true
    if (error.code === 'ENOTEMPTY') return false
    throw error
  }
}
