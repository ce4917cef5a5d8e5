/**
 * Whether a shard that has no manifest had one: without it settled slots look as if they were missing, and giving those
 * up would give up all that is settled. Reads only.
 */
import type { Disk } from '../disk/disk.ts'
import { manifestPath } from './manifest-file.ts'
import { packDirectory, type ShardOfEpoch } from './shard-place.ts'

/** What an operator is told. */
export function lostManifestProblem(directory: string): string {
  return `the manifest ${manifestPath(directory)} is missing: it says what is settled, slots before the present ones among it`
}

/**
 * True if the shard has pack files, and no manifest that names them. A first settle job that was killed before its commit
 * leaves the same, but then no slot is missing: only with a gap in the journal it means that the manifest is lost.
 * @param dataDirectory absolute. @param directory of the journal. @throws DiskError
 */
export function hasPacksAlone(disk: Disk, dataDirectory: string, directory: string, shard: ShardOfEpoch): boolean {
  if (disk.exists(manifestPath(directory))) return false
  const packs = `${dataDirectory}/${packDirectory(shard)}`
  return disk.exists(packs) && disk.list(packs).some(name => name.endsWith('.pack'))
}
