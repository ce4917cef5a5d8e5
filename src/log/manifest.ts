/**
 * What a manifest says: everything of a shard that does not lie in its slots (durability, S1). Shapes only;
 * what holds between their fields is in manifest-rules.ts, their bytes are in manifest-format.ts.
 *
 * The settler thread is the only writer; a shard reads it once, when it opens its log, and is told of each change.
 * A commit replaces the whole file at once (manifest-file.ts), so what it names is durable before it is.
 *
 *   manifest ─▶ partition incarnation ─▶ segment ─▶ extent ─▶ blocks
 */

export interface Manifest {
  readonly shard: number
  readonly placementEpoch: number
  /** One more with each commit. 0: nothing was ever committed. */
  commit: number
  /** Slots up to this sequence hold nothing any more: their files are free. */
  settledSequence: number
  /** Number of the last group in those slots. */
  settledGroup: number
  /** Greatest receive time of those groups; what is written later never has a lower one (W8). */
  receiveMsMax: number
  /** Number of the next pack file: numbers are never used again. */
  nextPack: number
  /** By handle. */
  readonly partitions: Map<number, ManifestPartition>
  /** Files that nothing names any more, and when they may be removed. Kept here so that a crash does not leave them. */
  removals: readonly FileRemoval[]
}

export interface FileRemoval {
  /** Relative to the data directory, or a key. */
  readonly path: string
  /** Unix time, ms. */
  readonly dueMs: number
  /** True: it is an object in cold storage, and `path` its key. */
  readonly isCold?: true
}

/**
 * One partition incarnation. Never changed in place: a change makes a new object with a greater generation. Its bytes are
 * encoded once; a change in place would never reach the disk.
 */
export interface ManifestPartition {
  readonly handle: number
  /** Where its own files are, relative to the data directory: `topics/orders~17/3`. */
  readonly directory: string
  /** Grows with every change of the segments: what a job was made for is compared with it (S2). */
  readonly generation: number
  /** Of the first record that is served. Beyond nextOffset if records were deleted that are not settled yet (W7). */
  readonly startOffset: number
  /** Behind the last settled offset; what follows lies in slots. */
  readonly nextOffset: number
  /** Epochs above 0, oldest first. */
  readonly epochs: readonly { readonly epoch: number; readonly startOffset: number }[]
  readonly producers: readonly ManifestProducer[]
  /** By base offset. Never overlapping. */
  readonly segments: readonly ManifestSegment[]
  /** Ranges whose bytes are damaged: never served, kept in a file of their own (V2). By first offset. */
  readonly damaged: readonly DamagedRange[]
}

export interface DamagedRange {
  readonly firstOffset: number
  readonly nextOffset: number
  /** Holds the bytes as they were found, relative to the data directory; null: they could not be read at all. */
  readonly path: string | null
}

/** Idempotent producer, as far as the settled slots know it (W5). */
export interface ManifestProducer {
  /** Numeric producer id, from 1; once in a partition. */
  readonly number: number
  /** First sequence ever: signed high and unsigned low half. */
  readonly originHigh: number
  readonly originLow: number
  /** Sequences accepted since. */
  readonly next: number
  /** Runs of the window: relative sequence and offset of the first of each, oldest first. */
  readonly firsts: readonly number[]
  readonly bases: readonly number[]
  /** Receive time of the newest. */
  readonly usedMs: number
}

/** A range of offsets that is dropped, compacted and tiered as one. */
export interface ManifestSegment {
  readonly baseOffset: number
  /** Behind its last offset. */
  readonly nextOffset: number
  /** Stored bytes of its batches. */
  readonly bytes: number
  /** Greatest receive time of its records, Unix ms: what age retention looks at. */
  readonly receiveMsMax: number
  /** Receive time of its first records: when it began. */
  readonly firstReceiveMs: number
  /** False for the newest one while records may still join it. */
  readonly isSealed: boolean
  /** 0: as it was settled. Else the compaction that made it: its files lie in `c<number>` below the partition's directory. */
  readonly compaction: number
  /** In order of offsets, those in the segment's own `.log` also in order of positions. None: compaction left no record. */
  readonly extents: readonly Extent[]
  /** Its files are objects in cold storage, and none are here. Absent: they are here. Only sealed segments, one extent each. */
  readonly cold?: ColdCopy
}

/** What is known of the objects of a segment without asking cold storage. */
export interface ColdCopy {
  /** CRC32C of all bytes of its `.log` and of its `.blocks`. */
  readonly checksum: number
  readonly blocksChecksum: number
  /** Greatest timestamp of its records, ms; TIMESTAMP_NONE if it has none: so that a search by time need not fetch it. */
  readonly timestampMax: number
}

/** Batches of a segment that lie together in one file, with the blocks that tell where in it. */
export interface Extent {
  /** 0: the segment's own `.log`; else the number of a pack file. */
  readonly pack: number
  /** Of its first byte, in that file. */
  readonly position: number
  readonly bytes: number
  readonly baseOffset: number
  readonly nextOffset: number
  readonly blockCount: number
  /** The pack file that holds its block entries, 0: the segment's own `.blocks`; and where in it. */
  readonly blocksPack: number
  readonly blocksPosition: number
}

/** A manifest that nothing was committed to. */
export function emptyManifest(shard: number, placementEpoch: number): Manifest {
  return {
    shard,
    placementEpoch,
    commit: 0,
    settledSequence: 0,
    settledGroup: 0,
    receiveMsMax: 0,
    nextPack: 1,
    partitions: new Map(),
    removals: []
  }
}
