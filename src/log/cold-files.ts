/**
 * A sealed segment made ready for cold storage: whole files, each with its checksum, after every byte was read and checked.
 * Pure over Disk; a generator. Background thread, or a test. What it writes lies in a directory of its own that is emptied
 * at each start; the manifest never names it.
 */
import { assert } from '../base/assert.ts'
import { crc32c } from '../base/crc32c.ts'
import { COLD_OUTGOING_DIRECTORY } from '../wire/shard/cold.ts'
import type { CompactionPlace } from './compaction/partition-job.ts'
import { sourceOf } from './compaction/segment-source.ts'
import { encodeOffsetIndex, encodeTimeIndex } from './kafka-index.ts'
import type { Extent, ManifestPartition, ManifestSegment } from './manifest.ts'
import { BlockBuilder, BlockTable } from './segment-blocks.ts'
import { cachedName, objectKey, segmentPath, SegmentFiles, type SegmentFileKind } from './segment-files.ts'
import type { ShardOfEpoch } from './shard-place.ts'
import { SettledWindow } from './settled-window.ts'
import { SettleOutput } from './settle/output.ts'

/** Handles open while a segment is read: itself, its blocks, a pack or two. */
const OPEN_FILES = 4

export interface OutgoingFile {
  readonly key: string
  /** Absolute. */
  readonly path: string
  readonly bytes: number
  readonly checksum: number
}

export interface OutgoingSegment {
  /** What the manifest says once its objects are stored. */
  readonly segment: ManifestSegment
  readonly files: readonly OutgoingFile[]
}

/**
 * Reads and checks the segment; writes what it lacks: a `.log` if it has none of its own or one in parts, and always
 * `.blocks`, `.index` and `.timeindex`, made from what was read.
 * @throws DamagedSegment, DiskError: what was written is taken away, as far as the disk lets it.
 */
export function* prepareColdSegment(
  place: CompactionPlace,
  shard: ShardOfEpoch,
  partition: ManifestPartition,
  segment: ManifestSegment
): Generator<undefined, OutgoingSegment, undefined> {
  const { disk, dataDirectory, memory } = place
  const name = cachedName(partition.handle, segment)
  const files = new SegmentFiles(disk, dataDirectory, OPEN_FILES)
  const output = new SettleOutput(disk, { dataDirectory, shard, pack: 0 }, memory)
  const outgoing = (kind: SegmentFileKind): string => `${COLD_OUTGOING_DIRECTORY}/${name}${kind}`
  try {
    const copies = !hasWholeLog(segment)
    if (copies) output.beginLog(outgoing('.log'), 0)
    const builder = new BlockBuilder()
    builder.begin(segment.baseOffset)
    let bytes = 0
    let checksum = 0
    for (const batch of sourceOf(new SettledWindow(files, shard), partition, segment).batches()) {
      builder.add(batch.bytes, batch.start, batch.end, bytes)
      checksum = crc32c(batch.bytes, batch.start, batch.end, checksum)
      if (copies) output.appendLog(batch.bytes, batch.start, batch.end)
      bytes += batch.end - batch.start
      yield
    }
    builder.close()
    if (copies) output.endLog(true)
    const entries = Buffer.from(builder.entries)
    const table = new BlockTable(entries, segment.baseOffset)
    const log = copies ? outgoing('.log') : segmentPath(partition.directory, segment, '.log')
    const made: OutgoingFile[] = [
      { key: objectKey(partition.directory, segment, '.log'), path: `${dataDirectory}/${log}`, bytes, checksum }
    ]
    const small: [SegmentFileKind, Buffer][] = [
      ['.blocks', entries],
      ['.index', encodeOffsetIndex(table)],
      ['.timeindex', encodeTimeIndex(table)]
    ]
    for (const [kind, content] of small) {
      output.writeFile(outgoing(kind), content)
      const key = objectKey(partition.directory, segment, kind)
      const path = `${dataDirectory}/${outgoing(kind)}`
      made.push({ key, path, bytes: content.length, checksum: crc32c(content, 0, content.length) })
    }
    output.finish()
    const cold = {
      checksum,
      blocksChecksum: crc32c(entries, 0, entries.length),
      timestampMax: table.greatestTimestamp()
    }
    return { segment: { ...segment, extents: [wholeExtent(segment, bytes, table.count)], cold }, files: made }
  } catch (error) {
    output.abandon()
    throw error
  } finally {
    files.closeAll()
  }
}

/** Takes away what prepareColdSegment wrote. @throws DiskError */
export function removeOutgoing({ disk, dataDirectory }: CompactionPlace, { files }: OutgoingSegment): void {
  for (const { path } of files) {
    if (path.startsWith(`${dataDirectory}/${COLD_OUTGOING_DIRECTORY}/`)) disk.remove('segment.remove', path)
  }
}

/** True if its `.log` is one piece from the first byte on. */
function hasWholeLog({ extents }: ManifestSegment): boolean {
  const [extent] = extents
  return extents.length === 1 && extent?.pack === 0 && extent.position === 0
}

function wholeExtent({ extents }: ManifestSegment, bytes: number, blockCount: number): Extent {
  const first = extents[0]
  const last = extents.at(-1)
  assert(first !== undefined && last !== undefined, 'a segment without records is not moved')
  const { baseOffset } = first
  const { nextOffset } = last
  return { pack: 0, position: 0, bytes, baseOffset, nextOffset, blockCount, blocksPack: 0, blocksPosition: 0 }
}
