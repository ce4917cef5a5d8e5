/**
 * Puts segments in the place of those that they were made of: compacted ones, or the same ones in cold storage. One commit
 * of the manifest. Settler thread.
 */
import { dirname } from 'node:path'
import { DiskError, type Disk } from '../../disk/disk.ts'
import { commitManifest } from '../manifest-file.ts'
import type { Manifest, ManifestPartition, ManifestSegment } from '../manifest.ts'
import { removeEmpty, removeOutput, removeUncommitted } from '../unfinished-compaction.ts'
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
  const from = old === undefined ? -1 : placeOf(old.segments, inputs)
  if (old === undefined || from < 0) {
    if (directory !== null) takeAway(place, directory.from, old === undefined)
    return null
  }
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
  const partitions = new Map(manifest.partitions).set(handle, partition)
  const unused = unusedFiles(manifest, partitions)
  const removals = removalsAfter(manifest, unused, nowMs + graceMs)
  const after = { ...manifest, commit: manifest.commit + 1, partitions, removals }
  if (directory !== null) moveIn(place, manifest, old, directory)
  try {
    commitManifest(place.disk, place.journalDirectory, after)
  } catch (error) {
    if (directory !== null) takeBack(place, directory, error)
    throw error
  }
  return { manifest: after, unused: unused.paths }
}

/** Index of the first of `inputs`, if they stand there one behind the other; else −1. */
function placeOf(segments: readonly ManifestSegment[], inputs: readonly ManifestSegment[]): number {
  const first = inputs[0]
  const from = first === undefined ? -1 : segments.findIndex(segment => isSame(segment, first))
  return inputs.every((input, i) => isSameOrNone(segments[from + i], input)) ? from : -1
}

/** What was made is of no use: nobody else will take it away if the topic is deleted. */
function takeAway({ disk, dataDirectory }: ReplacePlace, from: string, isDeleted: boolean): void {
  const output = `${dataDirectory}/${from}`
  if (disk.exists(output)) removeOutput(disk, output)
  const partition = dirname(output)
  // Files of a deletion that still wait keep them; these take them along.
  if (isDeleted && removeEmpty(disk, partition)) removeEmpty(disk, dirname(partition))
}

type OutputDirectory = NonNullable<Replacement['directory']>

/** The files get the name under which the manifest will know them, durably; those of passes that were not committed go. */
function moveIn(
  { disk, dataDirectory }: ReplacePlace,
  { removals }: Manifest,
  { directory, generation, segments }: ManifestPartition,
  { from, to }: OutputDirectory
): void {
  const absolute = `${dataDirectory}/${directory}`
  const isNamed = (name: string): boolean =>
    segments.some(({ compaction }) => name === `c${compaction}`) ||
    removals.some(({ path }) => path === `${directory}/${name}` || path.startsWith(`${directory}/${name}/`))
  // Generations only grow, and a settling that comes between makes the next pass take another number.
  removeUncommitted(disk, absolute, generation + 1, isNamed)
  disk.rename('segment.rename', `${dataDirectory}/${from}`, `${dataDirectory}/${to}`)
  disk.syncDirectory('segment.directory-sync', absolute)
}

/** A disk that is too full for the manifest needs the room; unless the commit is in doubt, and may name the files. */
function takeBack({ disk, dataDirectory }: ReplacePlace, { to }: OutputDirectory, error: unknown): void {
  if (!(error instanceof DiskError) || error.point === 'manifest.directory-sync') return
  try {
    removeOutput(disk, `${dataDirectory}/${to}`)
  } catch (refusal) {
    // The next pass takes it away: what the caller hears is why this one failed.
    if (!(refusal instanceof DiskError)) throw refusal
  }
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
