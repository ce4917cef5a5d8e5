/**
 * Compacts the sealed segments of one partition into files of their own. Pure over Disk; a generator. Background thread,
 * or a test. Nothing counts before the settler has put the result into the manifest; until then all of it lies in a
 * directory `c<number>.new`, which the next pass over the partition takes away (S1, S2).
 */
import type { Disk } from '../../disk/disk.ts'
import { encodeOffsetIndex, encodeTimeIndex } from '../kafka-index.ts'
import type { Extent, ManifestPartition, ManifestSegment } from '../manifest.ts'
import { BlockBuilder, BlockTable } from '../segment-blocks.ts'
import { segmentFileName, segmentFileKinds, SegmentFiles } from '../segment-files.ts'
import { SettledWindow } from '../settled-window.ts'
import { SettleOutput } from '../settle/output.ts'
import type { SettleMemory } from '../settle/settle-memory.ts'
import { removeUnfinished } from '../unfinished-compaction.ts'
import { compactSegments } from './compact.ts'
import type { CompactionOutput, CompactionResult, EndedSegment } from './pass.ts'
import { sourceOf } from './segment-source.ts'

/** Handles open while a partition is read: one segment at a time, with its blocks. */
const OPEN_FILES = 4

export interface PartitionJob {
  readonly shard: number
  readonly placementEpoch: number
  readonly partition: ManifestPartition
  /** Null: never dropped. */
  readonly tombstoneRetentionMs: number | bigint | null
  readonly segmentBytes: number
  readonly mapBytes: number
  /** Unix ms. */
  readonly nowMs: number
}

export interface PartitionResult {
  /** What was read: the settler compares it with what the manifest says now. */
  readonly inputs: readonly ManifestSegment[]
  /** What takes their place; the same if nothing changed. */
  readonly outputs: readonly ManifestSegment[]
  /** Where its files are, relative to the data directory, and where they belong; null: there are none. */
  readonly directory: { readonly from: string; readonly to: string } | null
  readonly result: CompactionResult
}

export interface CompactionPlace {
  readonly disk: Disk
  /** Absolute. */
  readonly dataDirectory: string
  readonly memory: SettleMemory
}

/** @throws DamagedSegment, DiskError: nothing is left of it but perhaps files in the `.new` directory. */
export function* compactPartition(
  place: CompactionPlace,
  job: PartitionJob
): Generator<undefined, PartitionResult, undefined> {
  const { partition } = job
  const inputs = compactableSegments(partition)
  const hasOlder = partition.segments.some(
    ({ cold, nextOffset }) => cold !== undefined && nextOffset > partition.startOffset
  )
  const compaction = partition.generation + 1
  const to = `${partition.directory}/c${compaction}`
  const from = `${to}.new`
  removeUnfinished(place.disk, `${place.dataDirectory}/${partition.directory}`)
  const files = new SegmentFiles(place.disk, place.dataDirectory, OPEN_FILES)
  const window = new SettledWindow(files, job)
  const output = new SettleOutput(place.disk, { dataDirectory: place.dataDirectory, shard: job, pack: 0 }, place.memory)
  const writer = new CompactedWriter(output, from, compaction)
  try {
    const { segmentBytes, mapBytes, nowMs } = job
    // What a tombstone hides in cold storage would come back without it.
    const tombstoneRetentionMs = hasOlder ? null : job.tombstoneRetentionMs
    const segments = inputs.map(segment => sourceOf(window, partition, segment))
    const pass = compactSegments({ segments, tombstoneRetentionMs, segmentBytes, mapBytes, nowMs }, writer)
    let step = pass.next()
    for (; step.done !== true; step = pass.next()) yield
    output.finish()
    const written = [...writer.segments]
    const outputs = step.value.segments.map(segment =>
      segment.isUnchanged ? (inputs[segment.replaces[0]] as ManifestSegment) : (written.shift() as ManifestSegment)
    )
    const directory = output.writtenBytes > 0 ? { from, to } : null
    return { inputs, outputs, directory, result: step.value }
  } catch (error) {
    output.abandon()
    throw error
  } finally {
    files.closeAll()
  }
}

/** Sealed segments behind the newest cold one: neighbours, and what is in cold storage is never written again. */
export function compactableSegments({ segments, startOffset }: ManifestPartition): ManifestSegment[] {
  const from = segments.findLastIndex(({ cold }) => cold !== undefined) + 1
  return segments.slice(from).filter(({ isSealed, nextOffset }) => isSealed && nextOffset > startOffset)
}

class CompactedWriter implements CompactionOutput {
  readonly segments: ManifestSegment[] = []
  readonly #output: SettleOutput
  readonly #directory: string
  readonly #compaction: number
  readonly #builder = new BlockBuilder()
  #baseOffset = 0
  #nextOffset = 0
  #bytes = 0

  constructor(output: SettleOutput, directory: string, compaction: number) {
    this.#output = output
    this.#directory = directory
    this.#compaction = compaction
  }

  beginSegment(baseOffset: number): void {
    this.#baseOffset = baseOffset
    this.#bytes = 0
    this.#builder.reset()
    this.#builder.begin(baseOffset)
  }

  batch(bytes: Buffer, start: number, end: number): void {
    if (this.#bytes === 0) this.#output.beginLog(this.#path('.log'), 0)
    this.#builder.add(bytes, start, end, this.#bytes)
    this.#output.appendLog(bytes, start, end)
    this.#bytes += end - start
  }

  endSegment({ nextOffset, firstReceiveMs, receiveMsMax }: EndedSegment): void {
    this.#nextOffset = nextOffset
    this.segments.push({
      baseOffset: this.#baseOffset,
      nextOffset,
      bytes: this.#bytes,
      firstReceiveMs,
      receiveMsMax,
      isSealed: true,
      compaction: this.#compaction,
      extents: this.#bytes === 0 ? [] : [this.#finishFiles()]
    })
  }

  #finishFiles(): Extent {
    this.#output.endLog(true)
    this.#builder.close()
    const entries = Buffer.from(this.#builder.entries)
    const blocks = new BlockTable(entries, this.#baseOffset)
    this.#output.writeFile(this.#path('.blocks'), entries)
    this.#output.writeFile(this.#path('.index'), encodeOffsetIndex(blocks))
    this.#output.writeFile(this.#path('.timeindex'), encodeTimeIndex(blocks))
    return {
      pack: 0,
      position: 0,
      bytes: this.#bytes,
      baseOffset: this.#baseOffset,
      nextOffset: this.#nextOffset,
      blockCount: blocks.count,
      blocksPack: 0,
      blocksPosition: 0
    }
  }

  #path(kind: (typeof segmentFileKinds)[number]): string {
    return `${this.#directory}/${segmentFileName(this.#baseOffset, kind)}`
  }
}
