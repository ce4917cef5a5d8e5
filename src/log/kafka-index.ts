/**
 * Kafka's own index files of a sealed segment, derived from its block entries, so that Kafka's tools read the directory.
 * Pure, any thread. This broker never looks anything up in them: the block entries say more, and have checksums.
 *
 *   `.index`      8 bytes an entry: 0 i32 last offset of a batch − segment base · 4 i32 the batch's position
 *   `.timeindex` 12 bytes an entry: 0 i64 timestamp, ms · 8 i32 last offset of the batch that has it − segment base
 *
 * As Kafka does it: an entry of the `.index` once more than 4096 bytes lie between two, none for the first batch (a
 * search below the first entry begins at 0). With each, an entry of the `.timeindex` if the greatest timestamp so far has
 * grown, and one at the end: whatever is later than an entry's timestamp lies behind it. Both columns grow strictly.
 */
import { assert } from '../base/assert.ts'
import { limits } from '../model/limits.ts'
import { BLOCK_BYTES_MIN } from '../model/topic.ts'
import { write64, writeU32 } from '../wire/primitives/u64.ts'
import type { BlockTable } from './segment-blocks.ts'

const OFFSET_ENTRY_BYTES = 8
const TIME_ENTRY_BYTES = 12
/** Kafka's mark of a record without a timestamp: neither it nor anything below gets an entry. */
const NO_TIMESTAMP = -1

/**
 * The `.index` of a segment whose blocks these are, from position 0 of its `.log` on. They must be plausible.
 *
 * @returns a buffer of its own; empty for a segment of one index interval.
 */
export function encodeOffsetIndex(blocks: BlockTable): Buffer {
  const index = Buffer.alloc(blocks.count * OFFSET_ENTRY_BYTES)
  let end = 0
  let indexed = 0
  for (let i = 0; i < blocks.count; i++) {
    if (!isDue(blocks, i, indexed)) continue
    writeU32(index, end, relativeOf(blocks, blocks.firstBatchLastOffset(i)))
    writeU32(index, end + 4, blocks.position(i))
    end += OFFSET_ENTRY_BYTES
    indexed = blocks.position(i)
  }
  return index.subarray(0, end)
}

/**
 * The `.timeindex` of the same segment. Its last entry has the segment's greatest timestamp.
 *
 * @returns a buffer of its own; empty if no record has a timestamp from 0 on.
 */
export function encodeTimeIndex(blocks: BlockTable): Buffer {
  const index = Buffer.alloc(blocks.count * TIME_ENTRY_BYTES)
  let end = 0
  let indexed = 0
  let timestampMax = NO_TIMESTAMP
  let timestampWritten = NO_TIMESTAMP
  let offset = 0
  for (let i = 0; i < blocks.count; i++) {
    if (blocks.timestampMax(i) > timestampMax) {
      timestampMax = blocks.timestampMax(i)
      offset = blocks.timestampMaxOffset(i)
    }
    const isWritten = isDue(blocks, i, indexed)
    if (isWritten) indexed = blocks.position(i)
    if (timestampMax === timestampWritten || !(isWritten || i === blocks.count - 1)) continue
    write64(index, end, timestampMax)
    writeU32(index, end + 8, relativeOf(blocks, offset))
    end += TIME_ENTRY_BYTES
    timestampWritten = timestampMax
  }
  return index.subarray(0, end)
}

/** True if these bytes are the `.index` that the blocks make; otherwise it is to be written again. */
export function checkOffsetIndex(bytes: Uint8Array, blocks: BlockTable): boolean {
  return encodeOffsetIndex(blocks).equals(bytes)
}

/** True if these bytes are the `.timeindex` that the blocks make. */
export function checkTimeIndex(bytes: Uint8Array, blocks: BlockTable): boolean {
  return encodeTimeIndex(blocks).equals(bytes)
}

/** @param indexed position of the block that got the entry before, 0 if none did. */
function isDue(blocks: BlockTable, i: number, indexed: number): boolean {
  return blocks.position(i) - indexed > BLOCK_BYTES_MIN
}

function relativeOf(blocks: BlockTable, offset: number): number {
  const relative = offset - blocks.segmentBase
  assert(relative >= 0 && relative <= limits.segmentBytesHard, 'an index has 31-bit offsets')
  return relative
}
