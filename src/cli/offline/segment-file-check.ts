/**
 * The three files beside a sealed segment's log: `.blocks`, `.index`, `.timeindex`. All of them can be made again from
 * the log, and with `--repair` they are: the only thing that `verify` ever writes.
 */
import type { ShardOfEpoch } from '../../log/shard-place.ts'
import { DiskError, type Disk } from '../../disk/disk.ts'
import { replaceFile, type ReplacePoints } from '../../disk/replace-file.ts'
import { encodeOffsetIndex, encodeTimeIndex } from '../../log/kafka-index.ts'
import type { ManifestPartition, ManifestSegment } from '../../log/manifest.ts'
import { BLOCK_ENTRY_BYTES, BlockTable } from '../../log/segment-blocks.ts'
import { segmentPath } from '../../log/segment-files.ts'
import type { Findings } from './findings.ts'
import { entriesOfLog } from './segment-rebuild.ts'

const segmentPoints: ReplacePoints = {
  remove: 'segment.remove',
  create: 'segment.create',
  write: 'segment.write',
  sync: 'segment.sync',
  rename: 'segment.rename',
  directorySync: 'segment.directory-sync'
}

export interface SegmentFileParts {
  readonly disk: Disk
  /** Absolute. */
  readonly dataDir: string
  /** Bad and missing files are written anew. */
  readonly repairs: boolean
}

export interface SegmentPlace {
  readonly shard: ShardOfEpoch
  readonly partition: ManifestPartition
  readonly segment: ManifestSegment
}

/** What the check of the segment's extents found. */
export interface SegmentState {
  readonly areBatchesWhole: boolean
  readonly areEntriesWhole: boolean
}

type Derived = '.blocks' | '.index' | '.timeindex'

/** Compares the files with what the log says they must be. Segments that have none of their own are passed over. */
export function checkSegmentFiles(
  parts: SegmentFileParts,
  place: SegmentPlace,
  findings: Findings,
  state: SegmentState
): void {
  const [extent, ...others] = place.segment.extents
  if (extent === undefined || others.length > 0 || extent.pack !== 0 || extent.blocksPack !== 0) return
  const entries = state.areEntriesWhole
    ? readFile(parts, pathOf(place, '.blocks'))
    : // What a damaged batch says of itself is not to be believed, and the entries on disk may still say more.
      state.areBatchesWhole
      ? entriesOfLog(parts.disk, parts.dataDir, { ...place, extent })
      : null
  if (!state.areEntriesWhole) {
    judge(parts, place, findings, { kind: '.blocks', found: readFile(parts, pathOf(place, '.blocks')), right: entries })
  }
  const blocks =
    entries === null
      ? null
      : new BlockTable(entries.subarray(0, extent.blockCount * BLOCK_ENTRY_BYTES), place.segment.baseOffset)
  const offsets = blocks === null ? null : encodeOffsetIndex(blocks)
  const times = blocks === null ? null : encodeTimeIndex(blocks)
  for (const [kind, right] of [
    ['.index', offsets],
    ['.timeindex', times]
  ] as const) {
    const found = readFile(parts, pathOf(place, kind))
    if (found !== null && right !== null && right.equals(found)) continue
    judge(parts, place, findings, { kind, found, right })
  }
}

function pathOf({ partition, segment }: SegmentPlace, kind: Derived): string {
  return segmentPath(partition.directory, segment, kind)
}

/** All of a file; null: it is not there, or cannot be read. */
function readFile({ disk, dataDir }: SegmentFileParts, path: string): Buffer | null {
  if (!disk.exists(`${dataDir}/${path}`)) return null
  try {
    const file = disk.open('segment.open', `${dataDir}/${path}`)
    try {
      const bytes = Buffer.alloc(file.sizeBytes())
      return bytes.subarray(0, file.read('segment.read', bytes, 0, bytes.length, 0))
    } finally {
      file.close()
    }
  } catch (error) {
    if (error instanceof DiskError) return null
    throw error
  }
}

interface DerivedFile {
  readonly kind: Derived
  readonly found: Buffer | null
  /** What must stand there; null: nothing can say. */
  readonly right: Buffer | null
}

function judge(parts: SegmentFileParts, place: SegmentPlace, findings: Findings, derived: DerivedFile): void {
  const { kind, found, right } = derived
  const file = pathOf(place, kind)
  const problem =
    found === null
      ? 'the file is missing'
      : kind === '.blocks'
        ? 'block entries in it are damaged'
        : 'it does not say what the log says'
  const who = kind === '.blocks' ? 'the broker makes it anew in memory' : "only Kafka's tools read it"
  if (right === null) {
    const meaning = `costs readers nothing while the batches are whole: ${who}; it cannot be written anew, because the log is damaged`
    findings.addDamage({ file, problem, meaning })
    return
  }
  if (parts.repairs) {
    replaceFile(parts.disk, `${parts.dataDir}/${file}`, right, segmentPoints)
    findings.addRepair({ file, problem, meaning: 'written anew from the log' })
    return
  }
  const meaning = `costs readers nothing: ${who}. It can be rebuilt: 'millrace verify --repair'`
  findings.addDamage({ file, problem, meaning })
}
