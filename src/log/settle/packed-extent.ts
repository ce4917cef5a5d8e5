/**
 * An extent that is to leave its pack file, checked before it does: its blocks get new checksums where they go, and what
 * was damaged must not get right ones. Settler thread, or a tool that holds the lock.
 */
import { rebuildExtent, type BatchWitness } from '../extent-blocks.ts'
import type { Extent } from '../manifest.ts'
import { BLOCK_ENTRY_BYTES, BlockTable } from '../segment-blocks.ts'
import type { SettleOutput } from './output.ts'
import type { SegmentDraft } from './partition-draft.ts'

/** Whole batches that lie together, or bytes of which nothing is known but their offsets. */
export interface PackedPiece {
  readonly isWhole: boolean
  /** Bytes [start, end) of the extent. */
  readonly start: number
  readonly end: number
  readonly firstOffset: number
  readonly nextOffset: number
}

/** @returns all bytes of the extent, in pieces, in order. @throws DiskError */
export function readPackedExtent(
  output: SettleOutput,
  witness: BatchWitness,
  segment: SegmentDraft,
  extent: Extent
): { bytes: Buffer; pieces: PackedPiece[] } {
  const bytes = Buffer.allocUnsafe(extent.bytes)
  output.readPack(extent.pack, bytes, extent.position)
  const entries = Buffer.allocUnsafe(extent.blockCount * BLOCK_ENTRY_BYTES)
  output.readPack(extent.blocksPack, entries, extent.blocksPosition)
  const table = new BlockTable(entries, segment.baseOffset)
  const isPlausible = table.isPlausible(extent.nextOffset, extent.bytes)
  const pieces = isPlausible ? piecesOf(table, bytes, extent) : []
  if (isPlausible && pieces.every(({ isWhole }) => isWhole)) return { bytes, pieces }
  // Perhaps it is an entry that is bad, not the bytes.
  const read = (target: Buffer, length: number, position: number): number =>
    bytes.copy(target, 0, position - extent.position, position - extent.position + length)
  const rebuilt = rebuildExtent(read, witness, segment, extent)
  if (isPlausible && !rebuilt.isComplete) return { bytes, pieces }
  const { table: again, nextOffset } = rebuilt
  const last = again.count - 1
  const end = last < 0 ? 0 : again.position(last) + again.bytes(last)
  const whole: PackedPiece = { isWhole: true, start: 0, end, firstOffset: extent.baseOffset, nextOffset }
  const rest: PackedPiece = {
    isWhole: false,
    start: end,
    end: extent.bytes,
    firstOffset: nextOffset,
    nextOffset: extent.nextOffset
  }
  return { bytes, pieces: [whole, rest].filter(piece => piece.end > piece.start) }
}

/** Its blocks, each checked. */
function piecesOf(table: BlockTable, bytes: Buffer, extent: Extent): PackedPiece[] {
  return Array.from({ length: table.count }, (_, i) => {
    const start = table.position(i)
    return {
      isWhole: table.check(i, bytes, start),
      start,
      end: start + table.bytes(i),
      firstOffset: table.firstOffset(i),
      nextOffset: i + 1 < table.count ? table.firstOffset(i + 1) : extent.nextOffset
    }
  })
}
