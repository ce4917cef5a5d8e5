/**
 * Puts segments in the place of those that they were made of: compacted ones, or the same ones in cold storage. One commit
 * of the manifest. Settler thread.
 */
import type { Disk } from '../../disk/disk.ts'
import { commitManifest } from '../manifest-file.ts'
import type { Manifest, ManifestPartition, ManifestSegment } from '../manifest.ts'
import { segmentFileKinds } from '../segment-files.ts'
import { removalsAfter, unusedFiles } from './removals.ts'

export interface Replacement {
  readonly handle: number
  readonly inputs: readonly ManifestSegment[]
  readonly outputs: readonly ManifestSegment[]
  /** Files of the outputs, and where they belong; relative to the data directory. */
  readonly directory: { readonly from: string; readonly to: string } | null
}

export interface ReplacePlace {
  readonly disk: Disk
  readonly dataDirectory: string
  readonly journalDirectory: string
}

/**
 * @returns the manifest after the commit, or null: the partition has other segments by now, and what was made of the old
 * ones is of no use (S2). @throws DiskError: nothing counts, unless it is of the point manifest.directory-sync.
 */
export function replaceSegments(
  place: ReplacePlace,
  manifest: Manifest,
  replacement: Replacement,
  { nowMs, graceMs }: { readonly nowMs: number; readonly graceMs: number }
): { readonly manifest: Manifest; readonly unused: readonly string[] } | null {
  const { handle, inputs, outputs, directory } = replacement
  const old = manifest.partitions.get(handle)
  const first = inputs[0]
  if (old === undefined || first === undefined) return null
  const from = old.segments.findIndex(segment => isSame(segment, first))
  const isThere = from >= 0 && inputs.every((input, i) => isSameOrNone(old.segments[from + i], input))
  if (!isThere) return null
  const kept = outputs.map(output => inputs.findIndex(input => isSame(input, output)))
  const middle = outputs.map((output, i) => {
    const at = kept[i] ?? -1
    return at < 0 ? output : (old.segments[from + at] as ManifestSegment)
  })
  const partition: ManifestPartition = {
    ...old,
    generation: old.generation + 1,
    segments: [...old.segments.slice(0, from), ...middle, ...old.segments.slice(from + inputs.length)]
  }
  if (directory !== null) moveIn(place, directory)
  const partitions = new Map(manifest.partitions).set(handle, partition)
  const unused = unusedFiles(manifest, partitions)
  const removals = removalsAfter(manifest, unused, nowMs + graceMs)
  const after = { ...manifest, commit: manifest.commit + 1, partitions, removals }
  commitManifest(place.disk, place.journalDirectory, after)
  return { manifest: after, unused: unused.paths }
}

/** The files get the name under which the manifest will know them, durably. */
function moveIn(place: ReplacePlace, { from, to }: { readonly from: string; readonly to: string }): void {
  const { disk, dataDirectory } = place
  const target = `${dataDirectory}/${to}`
  // A pass that was renamed and not committed: generations only grow, so no manifest ever named it.
  if (disk.exists(target)) removeFiles(disk, target)
  disk.rename('segment.rename', `${dataDirectory}/${from}`, target)
  disk.syncDirectory('segment.directory-sync', target.slice(0, target.lastIndexOf('/')))
}

/** Removes a directory of segment files. @throws DiskError ENOTEMPTY if it holds anything else */
function removeFiles(disk: Disk, directory: string): void {
  for (const name of disk.list(directory)) {
    if (segmentFileKinds.some(kind => name.endsWith(kind))) disk.remove('segment.remove', `${directory}/${name}`)
  }
  disk.removeDirectory('segment.remove', directory)
}

function isSameOrNone(segment: ManifestSegment | undefined, other: ManifestSegment): boolean {
  return segment !== undefined && isSame(segment, other)
}

function isSame(a: ManifestSegment, b: ManifestSegment): boolean {
  return (
    a.baseOffset === b.baseOffset &&
    a.nextOffset === b.nextOffset &&
    a.compaction === b.compaction &&
    a.bytes === b.bytes &&
    (a.cold === undefined) === (b.cold === undefined)
  )
}
