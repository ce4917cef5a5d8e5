/**
 * The `.blocks` of a sealed segment, made again from its log so that they fit the manifest. Reads only.
 *
 * The manifest says how many entries there are. A log that several settle jobs wrote has more blocks than its batches
 * alone would give, for each job ended one; where, nothing says any more. Any way to cut the log into as many blocks is
 * as good: so some are cut once more, between batches.
 */
import type { Disk, DiskFile } from '../../disk/disk.ts'
import { BlockBuilder, BlockTable } from '../../log/segment-blocks.ts'
import { batchesIn } from './run-batches.ts'
import { extentFile, rebuiltFrom, type ExtentPlace } from './settled-walk.ts'

/**
 * @param dataDir absolute. @param place all of the segment; its batches were found whole.
 * @returns null: the log does not give so many blocks. @throws DiskError
 */
export function entriesOfLog(disk: Disk, dataDir: string, place: ExtentPlace): Buffer | null {
  const file = disk.open('segment.open', `${dataDir}/${extentFile(place)}`)
  try {
    const { table, isComplete } = rebuiltFrom(file, place)
    const missing = place.extent.blockCount - table.count
    return isComplete && missing >= 0 ? cutFurther(file, table, missing) : null
  } finally {
    file.close()
  }
}

/** The entries of the same blocks, `missing` of them more: each of the first batches of a block becomes one of its own. */
function cutFurther(file: DiskFile, blocks: BlockTable, missing: number): Buffer | null {
  const builder = new BlockBuilder()
  builder.begin(blocks.segmentBase)
  let left = missing
  for (let i = 0; i < blocks.count; i++) {
    const bytes = Buffer.alloc(blocks.bytes(i))
    const position = blocks.position(i)
    if (file.read('segment.read', bytes, 0, bytes.length, position) !== bytes.length) return null
    for (const { start, end } of batchesIn(bytes, 0, bytes.length)) {
      builder.add(bytes, start, end, position + start)
      if (left === 0 || end === bytes.length) continue
      builder.close()
      left--
    }
    builder.close()
  }
  return left === 0 ? Buffer.from(builder.entries) : null
}
