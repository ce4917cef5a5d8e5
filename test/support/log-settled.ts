/** Segments put into place as if they had been settled: for logs whose content no encoder of this version writes. */
import type { Disk } from '../../src/disk/disk.ts'
import type { ManifestPartition, ManifestSegment } from '../../src/log/manifest.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { segmentPath, type SegmentFileKind } from '../../src/log/segment-files.ts'
import type { ShardLog } from '../../src/log/shard-log.ts'
import { blocksBytes, type SampleSegment } from './log-segments.ts'

const dataDirectory = '/data'

function makeDirectories(disk: Disk, path: string): void {
  let made = dataDirectory
  for (const name of path.split('/')) {
    made += `/${name}`
    if (!disk.exists(made)) disk.makeDirectory('segment.create', made)
  }
}

function writeFile(disk: Disk, path: string, bytes: Buffer): void {
  const file = disk.create('segment.create', `${dataDirectory}/${path}`)
  file.write('segment.write', bytes, 0, bytes.length, 0)
  file.close()
}

export interface SettledSample {
  readonly handle: number
  readonly segments: readonly SampleSegment[]
  /** Behind the last settled offset; beyond the last segment: compaction left nothing there. Default: its end. */
  readonly nextOffset?: number
  readonly startOffset?: number
}

/**
 * Gives a partition that has nothing yet these segments, each in files of its own; one without batches has no extents.
 * Its topic must not be open: opening it finds the log.
 */
export function putSettled(disk: Disk, log: ShardLog, sample: SettledSample): PartitionLog {
  const { handle, segments } = sample
  const directory = `topics/sample~${handle}/0`
  makeDirectories(disk, directory)
  const ends = segments.map((segment, i) => segments[i + 1]?.segmentBase ?? sample.nextOffset ?? segment.nextOffset)
  const partition: ManifestPartition = {
    handle,
    directory,
    generation: 1,
    startOffset: sample.startOffset ?? segments[0]?.segmentBase ?? 0,
    nextOffset: ends.at(-1) ?? 0,
    epochs: [],
    producers: [],
    segments: segments.map((segment, i) => settledSegment(disk, directory, segment, ends[i] ?? segment.nextOffset)),
    damaged: []
  }
  const partitionLog = log.table.recoveredLog(handle)
  partitionLog.recoverSettled(partition)
  return partitionLog
}

function settledSegment(disk: Disk, directory: string, segment: SampleSegment, nextOffset: number): ManifestSegment {
  const name = { baseOffset: segment.segmentBase, compaction: 0 }
  const write = (kind: SegmentFileKind, bytes: Buffer): void =>
    writeFile(disk, segmentPath(directory, name, kind), bytes)
  const blocks = Buffer.from(blocksBytes(segment))
  if (segment.batches.length > 0) {
    write('.log', segment.log)
    write('.blocks', blocks)
  }
  const extent = {
    pack: 0,
    position: 0,
    bytes: segment.log.length,
    baseOffset: segment.segmentBase,
    nextOffset,
    blockCount: blocks.length / 32,
    blocksPack: 0,
    blocksPosition: 0
  }
  return {
    ...name,
    nextOffset,
    bytes: segment.log.length,
    // Of no use for finding times: client times may be any.
    receiveMsMax: 1,
    firstReceiveMs: 1,
    isSealed: true,
    extents: segment.batches.length > 0 ? [extent] : []
  }
}
