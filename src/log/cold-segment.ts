/**
 * A segment in cold storage, as a reader meets it: its copy is in the cache, or it says what it is that must be fetched.
 * Any thread; pure.
 */
import type { ColdSegment } from '../wire/shard/cold.ts'
import type { ColdCopy, Extent, ManifestPartition, ManifestSegment } from './manifest.ts'
import { BLOCK_ENTRY_BYTES } from './segment-blocks.ts'
import { cachedName, objectKey } from './segment-files.ts'

/**
 * The copy of a cold segment is not here. Thrown by whatever reads it, which keeps its place and may be asked again: then
 * it goes on where it stood.
 */
export class ColdSegmentAbsent extends Error {
  override readonly name = 'ColdSegmentAbsent'
  readonly segment: ColdSegment
  /** The copy is here, and not what it should be: it is to be fetched anew. */
  readonly isBad: boolean

  constructor(segment: ColdSegment, isBad: boolean) {
    super(`the segment ${segment.logKey} is in cold storage`)
    this.segment = segment
    this.isBad = isBad
  }
}

/** What has to be known to fetch a cold segment. */
export function coldSegmentOf(
  { handle, directory }: Pick<ManifestPartition, 'handle' | 'directory'>,
  segment: ManifestSegment,
  extent: Extent,
  cold: ColdCopy
): ColdSegment {
  return {
    name: cachedName(handle, segment),
    logKey: objectKey(directory, segment, '.log'),
    blocksKey: objectKey(directory, segment, '.blocks'),
    logBytes: extent.bytes,
    blocksBytes: extent.blockCount * BLOCK_ENTRY_BYTES,
    logChecksum: cold.checksum,
    blocksChecksum: cold.blocksChecksum
  }
}
