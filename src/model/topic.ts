/** Topics as the catalog knows them. Owned by control/catalog on the main thread; shards get what they need by message. */
import type { PartitionHandles } from './handles.ts'
import type { TopicId } from './ids.ts'

export const cleanupPolicies = ['delete', 'compact', 'compact,delete'] as const
export type CleanupPolicy = (typeof cleanupPolicies)[number]

/** Whose times records of Kafka's clients have: those that their producer gave them, or that of their append. In Kafka's words. */
export const timestampTypes = ['CreateTime', 'LogAppendTime'] as const
export type TimestampType = (typeof timestampTypes)[number]

/** The hash that routes keys: FNV-1a where nothing is said, murmur2 for topics made over Kafka. */
export const partitioners = ['fnv1a', 'murmur2'] as const
export type Partitioner = (typeof partitioners)[number]

/** Share of a partition's sealed bytes that must be new for a compaction that nobody asked for: as in Kafka (min.cleanable.dirty.ratio). */
export const DIRTY_SHARE_MIN = 0.5
/** A block of a segment is closed once it has so many bytes: the distance of Kafka's index entries (index.interval.bytes). */
export const BLOCK_BYTES_MIN = 4096

/**
 * Resolved configuration of a topic, in the field names of the HTTP API.
 * null means never. Milliseconds and bytes up to 2^64−1 arrive; above 2^53−1 they are exact as bigint (D25).
 */
export interface TopicConfig {
  readonly retention_ms: number | bigint | null
  readonly retention_bytes: number | bigint | null
  readonly cleanup_policy: CleanupPolicy
  readonly segment_bytes: number
  readonly tombstone_retention_ms: number | bigint
  /** Records must match the latest schema of valueSubjectOf(topic). Shown only where it is true: the seed has no such field. */
  readonly validate_schema: boolean
  /** Shown only where it is LogAppendTime, likewise. Records of HTTP and ES01 have the time of their append in any case; this says what their batches call it. */
  readonly message_timestamp_type: TimestampType
  /** Bytes of a batch of Kafka's clients, and of key, value and headers of one record of others. null: what the broker takes. */
  readonly max_message_bytes: number | null
  /** Age at which a segment ends; null: that of the broker (--segment-ms). This one and the one before: shown where they are set. */
  readonly segment_ms: number | bigint | null
  /** Changes only while the topic is empty: keys would move. Shown only where it is not fnv1a. */
  readonly partitioner: Partitioner
}

/** The subject of the registry whose latest schema the values of a topic's records match, if its configuration asks for it. */
export function valueSubjectOf(topic: string): string {
  return `${topic}-value`
}

/** A change: absent or null keeps the value; −1 clears a retention back to never, max_message_bytes and segment_ms to the broker's. */
export type TopicConfigPatch = { readonly [Field in keyof TopicConfig]?: TopicConfig[Field] | null }

export interface Topic extends PartitionHandles {
  readonly id: TopicId
  readonly name: string
  readonly config: TopicConfig
}

export interface PartitionDescription {
  readonly id: number
  readonly start_offset: number
  readonly end_offset: number
  readonly segment_count: number
  readonly size_bytes: number
}

/** Where a partition begins and ends, and a record by its time. */
export interface PartitionOffsets {
  readonly partition: number
  /** First offset that can be read. */
  readonly earliest: number
  /** The high watermark: behind the last record. */
  readonly latest: number
  /** The first record at or after the time asked for; null: none is so late, or no time was asked for. */
  readonly found: { readonly offset: number; readonly timestampMs: number } | null
}

export interface TopicDescription {
  readonly name: string
  readonly partitions: readonly PartitionDescription[]
  readonly config: TopicConfig
}
