/** What /metrics asks for and gives, between the layers. Main thread. */
import type { TopicId } from './ids.ts'
import type { Principal } from './principal.ts'
import type { Topic } from './topic.ts'

/** The page of metrics, as a gateway sees it. */
export interface MetricsPage {
  readonly contentType: string
  /** The page for that caller: what it may not read is left out. In pieces, ASCII or UTF-8, whole lines each. */
  scrape(who: Principal): Promise<readonly Buffer[]>
}

/**
 * The numbers of all partitions at about one moment, in columns: partition p of topics[i] stands at places[i] + p.
 * Offsets, sizes and counts are exact up to 2^53.
 */
export interface PartitionFigures {
  readonly topics: readonly Topic[]
  readonly places: Float64Array
  /** 0: its shard was down, nothing is known of it. */
  readonly isKnown: Uint8Array
  readonly startOffset: Float64Array
  readonly endOffset: Float64Array
  readonly sizeBytes: Float64Array
  readonly segmentCount: Float64Array
  /** What retention dropped since the shard started. */
  readonly retiredSegments: Float64Array
  readonly retiredBytes: Float64Array
}

/** What was produced to a topic, and read from it, since the process started. Duplicates are not produced. */
export interface TopicTraffic {
  readonly producedRecords: number
  /** Keys and values. */
  readonly producedBytes: number
  readonly consumedRecords: number
  readonly consumedBytes: number
}

/** Counts traffic by topic. */
export interface TrafficSource {
  of(topic: TopicId): TopicTraffic
}

/** What compactions of a partition dropped since the process started: those that dropped something. */
export interface CompactedFigures {
  readonly runs: number
  readonly recordsDropped: number
}

/** The certificate that listeners use. */
export interface CertificateState {
  /** When it expires, Unix ms. */
  readonly notAfterMs: number
  /** Certificates that could not be loaded since the start. */
  readonly reloadFailures: number
  /** What is wrong with it for the moment; null: nothing. */
  readonly problem: string | null
}

/** An offset that a group committed. */
export interface CommittedEntry {
  readonly group: string
  /** The key that owns the group. */
  readonly ownerKeyId: string
  readonly topicId: number
  readonly partition: number
  readonly offset: bigint
}
