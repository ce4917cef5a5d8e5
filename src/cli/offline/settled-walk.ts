/**
 * The blocks of one extent of settled data, one after the other, with what their checksums say. Reads only. Memory: the
 * extent's block entries and one piece of its file.
 */
import { DiskError, type Disk, type DiskFile } from '../../disk/disk.ts'
import type { ReadLog } from '../../log/block-rebuild.ts'
import { rebuildExtent, type RebuiltBlocks } from '../../log/extent-blocks.ts'
import type { Extent, ManifestPartition, ManifestSegment } from '../../log/manifest.ts'
import { BLOCK_ENTRY_BYTES, BlockTable } from '../../log/segment-blocks.ts'
import { packPath, segmentPath } from '../../log/segment-files.ts'
import type { ShardOfEpoch } from '../../log/shard-place.ts'

/** Read at once, unless a single block is larger. */
const PIECE_BYTES = 1024 * 1024

/** Where an extent belongs. */
export interface ExtentPlace {
  readonly shard: ShardOfEpoch
  readonly partition: ManifestPartition
  readonly segment: ManifestSegment
  readonly extent: Extent
}

/** The file that an extent's batches lie in, relative to the data directory. */
export function extentFile({ shard, partition, segment, extent }: ExtentPlace): string {
  return extent.pack === 0 ? segmentPath(partition.directory, segment, '.log') : packPath(shard, extent.pack)
}

/** The file that its block entries lie in, relative to the data directory. */
export function entriesFile({ shard, partition, segment, extent }: ExtentPlace): string {
  if (extent.blocksPack !== 0) return packPath(shard, extent.blocksPack)
  return segmentPath(partition.directory, segment, '.blocks')
}

export interface OpenExtent {
  readonly extent: Extent
  /** Relative to the data directory. */
  readonly file: string
  readonly entriesFile: string
  readonly table: BlockTable
  /** What is wrong with the block entries on disk; null: nothing that they say contradicts the extent. Else they were made again. */
  readonly entriesProblem: string | null
  /** Of the data file. */
  readonly sizeBytes: number
  /** Position in the file behind the last block of the table, and offset behind its last batch. */
  readonly coveredPosition: number
  readonly coveredOffset: number
  read(target: Buffer, length: number, position: number): number
  /** Once, last. */
  close(): void
}

/** One block. `bytes` are valid until the next step. */
export interface WalkedBlock {
  readonly index: number
  /** In the file. */
  readonly position: number
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
  /** Block and entry are as they were written. */
  readonly isWhole: boolean
  readonly firstOffset: number
  /** First offset of the block behind it; behind the extent for the last. */
  readonly nextOffset: number
}

/** Opens an extent with its block entries. @throws DiskError if its own file cannot be read. */
export function openExtent(disk: Disk, dataDir: string, place: ExtentPlace): OpenExtent {
  const { segment, extent } = place
  const file = extentFile(place)
  const data = disk.open('segment.open', `${dataDir}/${file}`)
  try {
    const entries = readEntries(disk, `${dataDir}/${entriesFile(place)}`, extent)
    const known = typeof entries === 'string' ? null : new BlockTable(entries, segment.baseOffset)
    const from = tableStart(extent)
    const isPlausible = known !== null && known.isPlausible(extent.nextOffset, from + extent.bytes, from)
    const sizeBytes = data.sizeBytes()
    const read = (target: Buffer, length: number, position: number): number =>
      data.read('segment.read', target, 0, length, position)
    const base = {
      extent,
      file,
      entriesFile: entriesFile(place),
      sizeBytes,
      read,
      close: () => data.close()
    }
    if (isPlausible) {
      const covered = { coveredPosition: extent.position + extent.bytes, coveredOffset: extent.nextOffset }
      return { ...base, ...covered, table: known, entriesProblem: null }
    }
    const problem = typeof entries === 'string' ? entries : 'its entries contradict each other or the manifest'
    const { table, nextOffset } = rebuiltFrom(data, place)
    const last = table.count - 1
    const shift = extent.position - from
    const coveredPosition = last < 0 ? extent.position : table.position(last) + table.bytes(last) + shift
    // A batch at the very start may be damaged: then nothing says where the offsets begin.
    return { ...base, table, coveredPosition, coveredOffset: nextOffset, entriesProblem: problem }
  } catch (error) {
    data.close()
    throw error
  }
}

/** The entries as they stand on disk, or why they cannot be had. */
function readEntries(disk: Disk, path: string, extent: Extent): Buffer | string {
  if (!disk.exists(path)) return 'the file is missing'
  const file = disk.open('segment.open', path)
  try {
    const wanted = extent.blockCount * BLOCK_ENTRY_BYTES
    if (extent.blocksPosition + wanted > file.sizeBytes()) return 'the file ends before its last entry'
    const entries = Buffer.alloc(wanted)
    file.read('segment.read', entries, 0, wanted, extent.blocksPosition)
    return entries
  } catch (error) {
    if (!(error instanceof DiskError)) throw error
    return `it cannot be read: ${error.code}`
  } finally {
    file.close()
  }
}

/** Positions in a pack count from the extent, those of a `.log` from its start. */
function tableStart({ pack, position }: Extent): number {
  return pack === 0 ? position : 0
}

/** The blocks that the batches themselves give, up to the first that is not whole, or not the one that must stand there. */
export function rebuiltFrom(file: DiskFile, { partition, segment, extent }: ExtentPlace): RebuiltBlocks {
  const read: ReadLog = (target, length, position) => file.read('segment.read', target, 0, length, position)
  // A batch is never larger than what is there of its file.
  const bytes = Math.min(extent.bytes, Math.max(0, file.sizeBytes() - extent.position))
  const rebuilt = rebuildExtent(read, partition, segment, { ...extent, bytes })
  return { ...rebuilt, isComplete: rebuilt.isComplete && bytes === extent.bytes }
}

/** Every block from the one with `offset` on, as far as the file reaches. */
export function* blocksFrom(open: OpenExtent, offset: number): Generator<WalkedBlock> {
  const { table, extent } = open
  const shift = extent.position - tableStart(extent)
  const positionOf = (i: number): number => table.position(i) + shift
  const endOf = (i: number): number => positionOf(i) + table.bytes(i)
  let buffer = Buffer.alloc(0)
  let i = Math.max(0, table.find(offset))
  while (i < table.count && endOf(i) <= open.sizeBytes) {
    const first = positionOf(i)
    let last = i
    while (last + 1 < table.count && endOf(last + 1) - first <= PIECE_BYTES && endOf(last + 1) <= open.sizeBytes) last++
    const wanted = endOf(last) - first
    if (wanted > buffer.length) buffer = Buffer.allocUnsafe(Math.max(wanted, Math.min(PIECE_BYTES, extent.bytes)))
    const bytes = buffer.subarray(0, open.read(buffer, wanted, first))
    for (; i <= last; i++) {
      const start = positionOf(i) - first
      const firstOffset = table.firstOffset(i)
      const nextOffset = i + 1 < table.count ? table.firstOffset(i + 1) : open.coveredOffset
      const isWhole = table.check(i, bytes, start)
      const end = Math.min(start + table.bytes(i), bytes.length)
      yield { index: i, position: first + start, bytes, start, end, isWhole, firstOffset, nextOffset }
    }
  }
}
