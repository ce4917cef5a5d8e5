/** What a compaction job is given and what it answers: manifest shapes travel packed, only log/ looks into them. */

export interface CompactPartitionValue {
  /** Absolute. */
  readonly dataDirectory: string
  readonly shard: number
  readonly placementEpoch: number
  /** A partition of the manifest, packed. */
  readonly partition: Uint8Array
  /** Null: tombstones are never dropped. */
  readonly tombstoneRetentionMs: number | bigint | null
  readonly segmentBytes: number
  readonly mapBytes: number
  /** Unix ms. */
  readonly nowMs: number
}

export interface CompactPartitionResult {
  /** Packed (log/settle/replace); null: nothing changed, or there is a problem. */
  readonly replacement: Uint8Array | null
  readonly recordsRead: number
  readonly recordsDropped: number
  /** Batches that were kept as they are because their records cannot be decoded. */
  readonly opaqueBatches: number
  readonly bytesRead: number
  readonly bytesWritten: number
  /** Why it could not be done, in words for the log; null: it was. */
  readonly problem: string | null
  /** The problem is damaged bytes, and names no file: anybody may hear it. */
  readonly isDamaged: boolean
}
