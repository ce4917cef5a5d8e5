/**
 * What a compaction pass is given and what it gives. Shapes only.
 */

/** One whole batch: bytes[start, end), checked, borrowed until the next step of the iteration that gave it. */
export interface SourceBatch {
  readonly bytes: Buffer
  readonly start: number
  readonly end: number
}

/** A sealed, settled segment. The fields are those of the manifest. */
export interface SourceSegment {
  readonly baseOffset: number
  readonly nextOffset: number
  /** Stored bytes of its batches. */
  readonly bytes: number
  readonly firstReceiveMs: number
  readonly receiveMsMax: number
  /**
   * Its batches in the order of offsets, from the first one again at each call: a pass reads a segment up to three times,
   * and once more for each further round, always to the same bytes. What it throws ends the pass.
   */
  batches(): Iterable<SourceBatch>
}

export interface CompactionRequest {
  /** Neighbours by offset, oldest first; between two of them there may be a hole (a damaged range), never an overlap. */
  readonly segments: readonly SourceSegment[]
  /**
   * A tombstone older than this is dropped too. null: no tombstone is; for segments that are not the oldest ones of the
   * partition, because an older record that its tombstone hides would come back.
   */
  readonly tombstoneRetentionMs: number | bigint | null
  /** Unix time, ms. */
  readonly nowMs: number
  /** Memory for the newest record of each key; too little costs rounds, never correctness. @default COMPACTION_MAP_BYTES */
  readonly mapBytes?: number
  /** Most bytes of a segment that is made by merging. */
  readonly segmentBytes: number
}

/** Where a pass writes. Called in the order of offsets: begin, batches, end, begin … */
export interface CompactionOutput {
  beginSegment(baseOffset: number): void
  /** A whole batch, borrowed until return. */
  batch(bytes: Buffer, start: number, end: number): void
  endSegment(segment: EndedSegment): void
}

export interface EndedSegment {
  readonly nextOffset: number
  readonly firstReceiveMs: number
  readonly receiveMsMax: number
}

/** A segment as it is after the pass. */
export interface CompactedSegment {
  /** First and last index, both included, of the given segments that it stands for. */
  readonly replaces: readonly [number, number]
  /** True: it is the given segment as it was; nothing was written. */
  readonly isUnchanged: boolean
  readonly baseOffset: number
  readonly nextOffset: number
  /** Stored bytes of its batches. 0: every record of the range is gone. */
  readonly bytes: number
}

export interface CompactionResult {
  /** False: nothing was to drop, nothing was written. */
  readonly changed: boolean
  /** They cover the given segments, in order, without overlap. */
  readonly segments: readonly CompactedSegment[]
  /** Records that could be read, each counted once. */
  readonly recordsRead: number
  /** Of them, those that are gone. */
  readonly recordsDropped: number
  /** Of those, tombstones that went for their age. */
  readonly tombstonesDropped: number
  /** All reading together, so up to several times the bytes of the segments. */
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Batches kept as they were because their records cannot be told apart. */
  readonly opaqueBatches: number
}

/** A pass at work: it yields between pieces of about COMPACTION_PIECE_BYTES and returns what it did. */
export type CompactionRun = Generator<void, CompactionResult, void>

/** Default of mapBytes: room for 2 million keys. */
export const COMPACTION_MAP_BYTES = 64 * 1024 * 1024
