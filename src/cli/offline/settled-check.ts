/**
 * `verify` of what a shard has settled: every extent that its manifest names, block by block and batch by batch, and that
 * no offset is missing without the manifest saying so. Memory: the entries of one extent, one piece, the findings.
 */
import { DiskError } from '../../disk/disk.ts'
import type { Extent, Manifest, ManifestPartition, ManifestSegment } from '../../log/manifest.ts'
import { BLOCK_ENTRY_BYTES } from '../../log/segment-blocks.ts'
import { epochAt } from '../../model/leader-epochs.ts'
import { batchStatus } from '../../wire/batch/view.ts'
import type { Findings } from './findings.ts'
import { UNKNOWN, batchFault, epochFault, isDecodable, storedView } from './partition-check.ts'
import type { PartitionName } from './partition-names.ts'
import { batchesIn, showStatus } from './run-batches.ts'
import { checkSegmentFiles, type SegmentFileParts } from './segment-file-check.ts'
import { blocksFrom, entriesFile, extentFile, openExtent, type OpenExtent, type WalkedBlock } from './settled-walk.ts'
import type { ShardCheckParts } from './shard-check.ts'

const refused = 'reads of these offsets are refused, never wrong; the offsets behind them are served'
const UNPROVEN = 'the block fails its checksum, and nothing proves the offsets of its batches'
const passedOver = 'nothing says why; reads pass over them'

export class SettledCheck {
  readonly #parts: ShardCheckParts
  readonly #manifest: Manifest
  readonly #files: SegmentFileParts
  #doneBytes = 0

  constructor(parts: ShardCheckParts, manifest: Manifest, files: SegmentFileParts) {
    this.#parts = parts
    this.#manifest = manifest
    this.#files = files
  }

  /** Checks all partitions. Once. */
  check(): void {
    for (const partition of this.#manifest.partitions.values()) {
      const { names } = this.#parts.directory
      new PartitionWalk(this.#parts, this.#files, partition, names.nameOf(partition.handle)).check(bytes => {
        this.#doneBytes += bytes
        this.#parts.onProgress(this.#doneBytes)
      })
    }
    this.#parts.count.bytes += this.#doneBytes
  }
}

/** The check of one partition. */
class PartitionWalk {
  readonly #parts: ShardCheckParts
  readonly #findings: Findings
  readonly #files: SegmentFileParts
  readonly #partition: ManifestPartition
  readonly #name: PartitionName
  /** Offset that the next batch of an uncompacted segment has. */
  #expected = 0
  /** What is wrong with the segment at hand: batches, and block entries that can be made again. */
  #batchFaults = 0
  #entryFaults = 0

  constructor(parts: ShardCheckParts, files: SegmentFileParts, partition: ManifestPartition, name: PartitionName) {
    this.#parts = parts
    this.#findings = parts.findings
    this.#files = files
    this.#partition = partition
    this.#name = name
  }

  /** @param onBytes hears of every extent that is done. */
  check(onBytes: (bytes: number) => void): void {
    const { startOffset, nextOffset, segments, damaged, directory } = this.#partition
    for (const { firstOffset, nextOffset: next, path } of damaged) {
      this.#findings.addDamage({
        file: path ?? directory,
        offsets: { partition: this.#name, firstOffset, lastOffset: next - 1 },
        problem:
          path === null
            ? 'nothing readable holds these offsets'
            : 'found damaged when it was settled; its bytes are kept here',
        meaning: refused
      })
    }
    let offset = startOffset
    let coldCount = 0
    for (const segment of segments) {
      const shard = this.#parts.journal
      this.#checkGap(offset, segment.baseOffset, directory)
      if (segment.cold !== undefined) {
        coldCount++
        offset = Math.max(offset, segment.nextOffset)
        continue
      }
      this.#batchFaults = 0
      this.#entryFaults = 0
      this.#checkSegment(segment, onBytes)
      const place = { shard, partition: this.#partition, segment }
      checkSegmentFiles(this.#files, place, this.#findings, {
        areBatchesWhole: this.#batchFaults === 0,
        areEntriesWhole: this.#entryFaults === 0
      })
      this.#parts.count.segments++
      offset = Math.max(offset, segment.nextOffset)
    }
    this.#checkGap(offset, nextOffset, directory)
    if (coldCount === 0) return
    const meaning = 'not looked at: each is checked whenever it is fetched'
    this.#findings.addNote({ file: directory, problem: `${coldCount} segment(s) of it are in cold storage`, meaning })
  }

  #checkSegment(segment: ManifestSegment, onBytes: (bytes: number) => void): void {
    const isCompacted = segment.compaction !== 0
    let offset = segment.baseOffset
    for (const extent of segment.extents) {
      const place = { shard: this.#parts.journal, partition: this.#partition, segment, extent }
      const file = extentFile(place)
      if (!isCompacted) this.#checkGap(offset, extent.baseOffset, file)
      try {
        const open = openExtent(this.#parts.directory.disk, this.#parts.directory.path, place)
        try {
          this.#checkExtent(open, isCompacted)
        } finally {
          open.close()
        }
      } catch (error) {
        if (!(error instanceof DiskError)) throw error
        const problem = error.code === 'ENOENT' ? 'the file is missing' : `it cannot be read: ${error.code}`
        this.#addBatchFault(file, undefined, extent, { problem, meaning: 'reads of these offsets fail' })
      }
      offset = extent.nextOffset
      onBytes(extent.bytes)
    }
    if (!isCompacted) this.#checkGap(offset, segment.nextOffset, this.#partition.directory)
  }

  #checkExtent(open: OpenExtent, isCompacted: boolean): void {
    const { extent } = open
    if (open.entriesProblem !== null) this.#addEntriesFault(open)
    this.#expected = extent.baseOffset
    let reached = extent.position
    for (const block of blocksFrom(open, extent.baseOffset)) {
      this.#checkBlock(open, block, isCompacted)
      reached = block.position + block.end - block.start
    }
    const extentEnd = extent.position + extent.bytes
    if (reached < extentEnd) return this.#addRest(open, reached)
    if (!isCompacted) this.#checkGap(this.#expected, extent.nextOffset, open.file)
  }

  /** Behind the last block that is there: the file is too short, or a batch is damaged and its block entry is too. */
  #addRest({ extent, file, sizeBytes, coveredPosition }: OpenExtent, reached: number): void {
    const endByte = extent.position + extent.bytes
    const isShort = sizeBytes < endByte && reached >= Math.min(coveredPosition, sizeBytes - 1)
    const problem =
      sizeBytes < endByte
        ? `the file ends at byte ${sizeBytes}, before its committed length`
        : 'a batch is damaged, and no block entry says where the next one is'
    const range = isShort ? undefined : { startByte: reached, endByte }
    const offsets = { baseOffset: this.#expected, nextOffset: extent.nextOffset }
    this.#addBatchFault(file, range, offsets, { problem, meaning: refused })
  }

  #checkBlock(open: OpenExtent, block: WalkedBlock, isCompacted: boolean): void {
    const { count } = this.#parts
    const faults: { start: number; end: number; problem: string }[] = []
    let batches = 0
    let records = 0
    let undecodable = 0
    let expected = this.#expected
    for (const batch of batchesIn(block.bytes, block.start, block.end)) {
      const problem =
        batch.status === batchStatus.ok
          ? this.#batchProblem(block.bytes, batch, expected)
          : `a batch ${showStatus(batch.status)}`
      if (problem !== null) {
        faults.push({ start: batch.start, end: batch.end, problem })
        expected = UNKNOWN
        continue
      }
      if (!block.isWhole && batches > 0 && storedView.baseOffset !== expected) {
        faults.push({ start: batch.start, end: batch.end, problem: UNPROVEN })
      } else if (block.isWhole && !isCompacted && expected !== UNKNOWN)
        this.#checkGap(expected, storedView.baseOffset, open.file)
      expected = storedView.lastOffset + 1
      batches++
      records += storedView.recordCount
      if (!isDecodable(block.bytes)) undecodable++
    }
    // As for readers: only the blocks around it prove the offsets of a block whose own checksum fails. Compaction leaves
    // gaps, and then nothing does.
    if (!block.isWhole && faults.length === 0 && (isCompacted || expected !== block.nextOffset)) {
      faults.push({ start: block.start, end: block.end, problem: UNPROVEN })
    }
    const shift = block.position - block.start
    if (faults.length === 0) {
      this.#expected = expected
      count.batches += batches
      count.records += records
      count.undecodable += undecodable
      if (!block.isWhole) this.#addEntryFault(open, block)
      return
    }
    this.#expected = block.nextOffset
    const offsets = { baseOffset: block.firstOffset, nextOffset: block.nextOffset }
    for (const { start, end, problem } of faults) {
      const range = { startByte: start + shift, endByte: end + shift }
      this.#addBatchFault(open.file, range, offsets, { problem, meaning: refused })
    }
  }

  #batchProblem(bytes: Buffer, { start, end }: { start: number; end: number }, expected: number): string | null {
    const problem = batchFault(bytes, start, end, UNKNOWN)
    if (problem !== null) return problem
    if (expected !== UNKNOWN && storedView.baseOffset < expected) {
      return `a batch has base offset ${storedView.baseOffset} where ${expected} is next`
    }
    return epochFault(epochAt(this.#partition.epochs, storedView.baseOffset))
  }

  /** An entry that fails its checksum over whole batches. */
  #addEntryFault(open: OpenExtent, { index }: WalkedBlock): void {
    // Entries that were made again have right checksums.
    const startByte = open.extent.blocksPosition + index * BLOCK_ENTRY_BYTES
    this.#entryFaults++
    if (open.extent.blocksPack === 0) return
    this.#findings.addDamage({
      file: open.entriesFile,
      bytes: { startByte, endByte: startByte + BLOCK_ENTRY_BYTES },
      problem: 'a block entry fails its checksum; the batches of its block are whole',
      meaning: 'costs readers nothing: the batches have checksums of their own'
    })
  }

  #addEntriesFault({ extent, entriesFile: file, entriesProblem }: OpenExtent): void {
    this.#entryFaults++
    if (extent.blocksPack === 0) return
    const startByte = extent.blocksPosition
    this.#findings.addDamage({
      file,
      bytes: { startByte, endByte: startByte + extent.blockCount * BLOCK_ENTRY_BYTES },
      problem: `the block entries of ${this.#show(extent)} are unusable: ${entriesProblem}`,
      meaning: 'costs readers time only: they are made again from the batches at every start'
    })
  }

  #show({ baseOffset, nextOffset }: Extent): string {
    return `offsets ${baseOffset} to ${nextOffset - 1}`
  }

  #addBatchFault(
    file: string,
    bytes: { startByte: number; endByte: number } | undefined,
    range: { readonly baseOffset: number; readonly nextOffset: number },
    words: { problem: string; meaning: string }
  ): void {
    this.#batchFaults++
    const firstOffset = Math.max(range.baseOffset, 0)
    const lastOffset = Math.max(range.nextOffset, range.baseOffset + 1) - 1
    this.#findings.addDamage({ file, bytes, offsets: { partition: this.#name, firstOffset, lastOffset }, ...words })
  }

  /** Offsets [from, to) are nowhere: damage, unless they are below the start, or the manifest says that they are damaged. */
  #checkGap(from: number, to: number, file: string): void {
    let offset = Math.max(from, this.#partition.startOffset)
    for (const range of this.#partition.damaged) {
      if (range.nextOffset <= offset) continue
      if (range.firstOffset >= to) break
      if (range.firstOffset > offset) this.#addGap(offset, range.firstOffset, file)
      offset = range.nextOffset
    }
    if (offset < to) this.#addGap(offset, to, file)
  }

  #addGap(firstOffset: number, nextOffset: number, file: string): void {
    this.#findings.addDamage({
      file,
      offsets: { partition: this.#name, firstOffset, lastOffset: nextOffset - 1 },
      problem: 'no batch holds these offsets',
      meaning: passedOver
    })
  }
}

/** Bytes that the check of a manifest's extents reads: what progress is counted against. */
export function settledBytes(manifest: Manifest | null): number {
  let bytes = 0
  for (const { segments } of manifest?.partitions.values() ?? []) {
    for (const { extents, cold } of segments) {
      if (cold === undefined) for (const extent of extents) bytes += extent.bytes
    }
  }
  return bytes
}

/** Files that the manifest names, relative to the data directory. */
export function filesOf(manifest: Manifest): string[] {
  const files = new Set<string>()
  for (const partition of manifest.partitions.values()) {
    for (const { path } of partition.damaged) if (path !== null) files.add(path)
    for (const segment of partition.segments) {
      if (segment.cold !== undefined) continue
      for (const extent of segment.extents) {
        files.add(extentFile({ shard: manifest, partition, segment, extent }))
        files.add(entriesFile({ shard: manifest, partition, segment, extent }))
      }
    }
  }
  return [...files]
}
