/**
 * The settled layer of what `inspect` shows: manifests, segments, and the batches of one partition that lie in segment
 * files. Streams: one block is in memory. Reads only. What it hands out is valid until the next step.
 */
import { DiskError } from '../../disk/disk.ts'
import type { Manifest, ManifestPartition, ManifestSegment } from '../../log/manifest.ts'
import { BatchView, batchStatus } from '../../wire/batch/view.ts'
import type { DataDirectory, ShardJournal } from './data-directory.ts'
import type { PlacedBatch, Wanted, WalkFaults } from './inspect-walk.ts'
import { readShardManifest } from './manifest-reading.ts'
import { batchesIn } from './run-batches.ts'
import { blocksFrom, openExtent, type ExtentPlace, type OpenExtent } from './settled-walk.ts'

const view = new BatchView()

/** A manifest with what was found wrong with it. */
export interface PlacedManifest {
  readonly journal: ShardJournal
  readonly manifest: Manifest | null
  readonly problem: string | null
}

/** The manifests of these shards. @throws DiskError, StoreOpenError newer-format */
export function* manifestsOf(directory: DataDirectory, journals: readonly ShardJournal[]): Generator<PlacedManifest> {
  for (const journal of journals) {
    const { manifest, problem } = readShardManifest(directory.disk, journal)
    yield { journal, manifest, problem }
  }
}

export interface PlacedSegment {
  readonly journal: ShardJournal
  readonly partition: ManifestPartition
  readonly segment: ManifestSegment
}

/** Segments of these shards. @param wanted null: all; else those of a partition that reach to the offset. */
export function* segmentsOf(
  directory: DataDirectory,
  journals: readonly ShardJournal[],
  wanted: Wanted | null,
  faults: WalkFaults
): Generator<PlacedSegment> {
  for (const { journal, manifest, problem } of manifestsOf(directory, journals)) {
    if (problem !== null) faults.damageCount++
    for (const partition of manifest?.partitions.values() ?? []) {
      if (wanted !== null && wanted.handle !== partition.handle) continue
      for (const segment of partition.segments) {
        if (wanted === null || segment.nextOffset > wanted.offset) yield { journal, partition, segment }
      }
    }
  }
}

/** The settled batches of a partition that reach to the wanted offset, and its bytes that are no batch any more. */
export function* settledBatchesOf(
  directory: DataDirectory,
  journals: readonly ShardJournal[],
  wanted: Wanted,
  faults: WalkFaults
): Generator<PlacedBatch> {
  for (const { journal, partition, segment } of segmentsOf(directory, journals, wanted, faults)) {
    // Its batches are not here.
    if (segment.cold !== undefined) continue
    for (const extent of segment.extents) {
      if (extent.nextOffset <= wanted.offset) continue
      yield* extentBatches(directory, { shard: journal, partition, segment, extent }, wanted, faults)
    }
  }
}

function* extentBatches(
  directory: DataDirectory,
  place: ExtentPlace,
  wanted: Wanted,
  faults: WalkFaults
): Generator<PlacedBatch> {
  let open: OpenExtent
  try {
    open = openExtent(directory.disk, directory.path, place)
  } catch (error) {
    // A file that is missing does not hide what the others have.
    if (!(error instanceof DiskError) || error.code !== 'ENOENT') throw error
    faults.damageCount++
    return
  }
  try {
    let reached = open.extent.position
    for (const block of blocksFrom(open, wanted.offset)) {
      const range = { baseOffset: block.firstOffset, nextOffset: block.nextOffset }
      reached = block.position + block.end - block.start
      for (const batch of batchesIn(block.bytes, block.start, block.end)) {
        const status = batch.status === batchStatus.ok ? view.open(block.bytes, batch.start, batch.end) : batch.status
        const isReadable = status === batchStatus.ok || status === batchStatus.compressed
        if (isReadable && view.lastOffset < wanted.offset) continue
        yield {
          where: { kind: 'file', file: open.file },
          position: block.position + batch.start - block.start,
          byteCount: batch.end - batch.start,
          status: isReadable ? batchStatus.ok : status,
          range,
          view,
          bytes: block.bytes
        }
      }
    }
    if (reached < open.extent.position + open.extent.bytes) faults.damageCount++
  } finally {
    open.close()
  }
}
