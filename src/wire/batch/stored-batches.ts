/**
 * The answer of a read in the format `batches`: whole batches as they are stored. Layout only.
 *
 *   0 u64 start of the partition · 8 u64 high watermark · 16 u64 offset behind the batches · 24 batches, one behind another
 *
 * The first batch is the one with the offset asked for, or the first behind it, and is there whatever its size. None at all:
 * there is nothing at or behind the offset, or the offset is below the start.
 */
import { readU64 } from '../primitives/u64.ts'

export const STORED_BATCHES_AT = 24

/** Where a partition began and ended when its batches were read. */
export interface StoredBatchesHead {
  readonly logStartOffset: number
  readonly highWatermark: number
  /** Behind the last batch; below the high watermark if more is there. Means nothing without batches. */
  readonly nextOffset: number
}

/** The head of an answer that begins at bytes[at]: its first chunk has it whole. */
export function storedBatchesHead(bytes: Uint8Array, at: number): StoredBatchesHead {
  return {
    logStartOffset: readU64(bytes, at),
    highWatermark: readU64(bytes, at + 8),
    nextOffset: readU64(bytes, at + 16)
  }
}
