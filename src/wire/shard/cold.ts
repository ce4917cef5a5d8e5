/**
 * What main, shards, the settler and background threads say to each other of segments in cold storage, and where the
 * copies lie that are made of them to be read. Pure.
 */

/** Copies of objects, while they are read. Below the data directory; emptied at each start. */
export const COLD_CACHE_DIRECTORY = 'cold-cache'

/** Files on their way to cold storage. Below the data directory; emptied at each start. */
export const COLD_OUTGOING_DIRECTORY = 'cold-outgoing'

/** Path of the copy of an object, relative to the data directory. @param name of the segment's copy. */
export function cachedPath(name: string, kind: '.log' | '.blocks'): string {
  return `${COLD_CACHE_DIRECTORY}/${name}${kind}`
}

/** Paths of all files of a copy, relative to the data directory. */
export function cachedPaths(name: string): string[] {
  return [cachedPath(name, '.log'), cachedPath(name, '.blocks')]
}

/** A cold segment that somebody wants to read: all that is needed to fetch it and to check what came. */
export interface ColdSegment {
  /** Of its copy here. */
  readonly name: string
  /** Keys of its objects. */
  readonly logKey: string
  readonly blocksKey: string
  readonly logBytes: number
  readonly blocksBytes: number
  /** CRC32C of all bytes. */
  readonly logChecksum: number
  readonly blocksChecksum: number
}

/** Partitions of a topic whose old segments go to cold storage. */
export interface TieredRange {
  readonly firstHandle: number
  readonly partitionCount: number
  /** What may stay on the local disk; null: no limit. */
  readonly retentionMs: number | bigint | null
  readonly retentionBytes: number | bigint | null
}

/** A partition with segments that are due. */
export interface TierablePartition {
  readonly handle: number
  /** Base offsets of the segments that are due, ascending. */
  readonly baseOffsets: readonly number[]
  /** The partition of the manifest, packed. */
  readonly partition: Uint8Array
}
