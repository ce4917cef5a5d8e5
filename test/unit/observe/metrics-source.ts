/** Numbers for a page of metrics, made by a test, and callers who may read some of them. */
import type { Clock } from '../../../src/base/clock.ts'
import { toTopicId } from '../../../src/model/ids.ts'
import type { CommittedEntry, CompactedFigures, PartitionFigures, TopicTraffic } from '../../../src/model/metrics.ts'
import type { Principal } from '../../../src/model/principal.ts'
import type { Topic, TopicConfig } from '../../../src/model/topic.ts'
import type { MetricsSources } from '../../../src/observe/metrics.ts'
import type { ProcessReaders } from '../../../src/observe/process-page.ts'
import { processSeries } from '../../../src/observe/series.ts'

const config: TopicConfig = {
  retention_ms: null,
  retention_bytes: null,
  cleanup_policy: 'delete',
  segment_bytes: 1000,
  tombstone_retention_ms: 1,
  validate_schema: false,
  message_timestamp_type: 'CreateTime',
  max_message_bytes: null,
  segment_ms: null,
  partitioner: 'fnv1a'
}

export function topicOf(id: number, name: string, partitionCount: number, changed: Partial<TopicConfig> = {}): Topic {
  const place = { id: toTopicId(id), firstHandle: id * 100_000, partitionCount }
  return { ...place, name, config: { ...config, ...changed } }
}

export function callerOf(keyId: string, mayRead: (topic: string) => boolean, isAdmin = false): Principal {
  return { keyId, isRevoked: false, isAdmin, mayRead, mayWrite: () => false }
}

export const admin = callerOf('key_admin', () => true, true)

/** Partition p ends at p + 1, and takes ten bytes for each record. */
export function figuresOf(topics: readonly Topic[]): PartitionFigures {
  const counts = topics.map(({ partitionCount }) => partitionCount)
  const count = counts.reduce((sum, more) => sum + more, 0)
  const places = Float64Array.from(counts, (_, i) => counts.slice(0, i).reduce((sum, more) => sum + more, 0))
  const partitions = counts.flatMap(more => Array.from({ length: more }, (_, partition) => partition))
  return {
    topics,
    places,
    isKnown: new Uint8Array(count).fill(1),
    startOffset: new Float64Array(count),
    endOffset: Float64Array.from(partitions, partition => partition + 1),
    sizeBytes: Float64Array.from(partitions, partition => 10 * (partition + 1)),
    segmentCount: new Float64Array(count).fill(1),
    retiredSegments: new Float64Array(count),
    retiredBytes: new Float64Array(count)
  }
}

export class FakeSources implements MetricsSources {
  nowMs = 0
  gatherings = 0
  committedEntries: CommittedEntry[] = []
  figures: PartitionFigures
  traffic: TopicTraffic | null = null
  readonly live: Set<Topic>
  /** Gatherings wait for it. */
  gate: Promise<unknown> = Promise.resolve()
  readonly clock: Clock = { nowMs: () => this.nowMs, monotonicMs: () => this.nowMs }
  readonly process: MetricsSources['process']
  readonly compacted = new Map<string, CompactedFigures>()

  constructor(topics: readonly Topic[]) {
    this.figures = figuresOf(topics)
    this.live = new Set(topics)
    const names = Object.keys(processSeries)
    const none = names.map(name => [
      name,
      () => (name === 'millrace_topics' ? [{ labels: {}, value: topics.length }] : [])
    ])
    this.process = Object.fromEntries(none) as ProcessReaders
  }

  readonly partitions = async (): Promise<PartitionFigures> => {
    this.gatherings++
    const { figures } = this
    await this.gate
    return figures
  }

  readonly isLive = (topic: Topic): boolean => this.live.has(topic)
  readonly trafficOf = (): TopicTraffic | null => this.traffic
  readonly compactedOf = (topic: Topic, partition: number): CompactedFigures | null =>
    this.compacted.get(`${topic.name}/${partition}`) ?? null
  readonly committed = (owner: string | null): Iterable<CommittedEntry> =>
    this.committedEntries.filter(({ ownerKeyId }) => owner === null || owner === ownerKeyId)
}
