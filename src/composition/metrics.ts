/**
 * Ties the page of metrics to those who count. Main thread. Each series of src/observe/series.ts has its reader here or in
 * the files beside; whoever counts knows nothing of metrics.
 */
import { systemClock } from '../base/clock.ts'
import { readPartitionFigures } from '../broker/partition-figures.ts'
import type { WatchHub } from '../broker/watches.ts'
import { descriptorLimit } from '../config/machine.ts'
import type { Settings } from '../config/settings.ts'
import type { Catalog } from '../control/catalog.ts'
import type { FreeSpace } from '../disk/free-space.ts'
import type { CertificateState, TrafficSource } from '../model/metrics.ts'
import type { Topic } from '../model/topic.ts'
import { LoopDelay } from '../observe/loop-delay.ts'
import { Metrics } from '../observe/metrics.ts'
import { processReaders } from '../observe/process-figures.ts'
import { one } from '../observe/process-page.ts'
import { WritePace } from '../observe/write-pace.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { certificateReaders, gatewayReaders, newGateways, type Gateways } from './metrics-gateways.ts'
import type { Undo } from './listeners.ts'
import { consumerReaders, type ConsumerParts } from './metrics-consumers.ts'
import { shardReaders } from './metrics-shards.ts'
import { upkeepReaders } from './metrics-upkeep.ts'
import type { Upkeep } from './upkeep.ts'

export interface MetricsParts {
  readonly settings: Settings
  readonly catalog: Catalog
  readonly shards: ShardSet
  readonly space: FreeSpace
  readonly upkeep: Upkeep
  readonly traffic: TrafficSource
  readonly watches: Pick<WatchHub, 'count'>
  readonly groups: ConsumerParts
  /** null: TLS is off. */
  readonly certificate: CertificateState | null
}

/** The page, where listeners are told of, and what ends its timers. */
export interface BuiltMetrics {
  readonly metrics: Metrics
  /** To be filled by whoever makes them listen. */
  readonly gateways: Gateways
  stop(): void
}

export function buildMetrics(parts: MetricsParts, undo: Undo[]): BuiltMetrics {
  const { settings, catalog, shards, space, upkeep, traffic, watches, groups, certificate } = parts
  const gateways = newGateways(settings)
  const delay = new LoopDelay()
  const { monotonicMs } = systemClock
  const journalBytes = (): Map<number, number> =>
    new Map(shards.counters().map(({ shard, counters }) => [shard, counters.journalBytes]))
  const isLive = (topic: Topic): boolean => catalog.topicOfId(topic.id) !== undefined
  const pace = new WritePace(journalBytes, monotonicMs)
  const metrics = new Metrics({
    clock: systemClock,
    partitions: () => readPartitionFigures(shards, [...catalog.topics]),
    isLive,
    // Asking for one that was deleted meanwhile would begin its counts anew.
    trafficOf: topic => (isLive(topic) ? traffic.of(topic.id) : null),
    committed: owner => groups.groupTable.committedEntries(owner),
    compactedOf: (topic, partition) => upkeep.compaction.droppedOf(topic, partition),
    process: {
      ...processReaders(delay, descriptorLimit()),
      ...gatewayReaders(gateways),
      ...certificateReaders(certificate),
      ...shardReaders(shards, pace),
      ...upkeepReaders(shards, upkeep),
      ...consumerReaders(groups),
      millrace_durability_synced: () => one(settings.flushEveryRecords === 1 ? 1 : 0),
      millrace_disk_free_bytes: () => (Number.isFinite(space.freeBytes) ? one(space.freeBytes) : []),
      millrace_disk_reserve_bytes: () => one(space.reserveBytes),
      millrace_disk_low: () => one(space.isLow ? 1 : 0),
      millrace_watches: () => one(watches.count),
      millrace_topics: () => one(catalog.topicCount),
      millrace_partitions: () => one(catalog.topics.reduce((sum, { partitionCount }) => sum + partitionCount, 0))
    }
  })
  const stop = (): void => {
    delay.stop()
    pace.stop()
  }
  undo.push(() => Promise.resolve(stop()))
  return { metrics, gateways, stop }
}
