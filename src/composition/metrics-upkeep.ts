/** Readers of what retention, compaction and tiering tell of themselves. Main thread. */
import { systemClock } from '../base/clock.ts'
import { one, type ProcessReaders, type Sample } from '../observe/process-page.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import type { Upkeep } from './upkeep.ts'

type Owned =
  | Extract<
      keyof ProcessReaders,
      `millrace_cleaner_${string}` | `millrace_compaction_${string}` | `millrace_tiering_${string}`
    >
  | Exclude<Extract<keyof ProcessReaders, `millrace_cold_${string}`>, 'millrace_cold_waits_total'>

/** How a cleaner is. */
interface Cleaner {
  readonly isFailing: boolean
  readonly passes: number
  /** Unix ms; null: no pass has left nothing out. */
  readonly lastDoneMs: number | null
}

export function upkeepReaders(
  shards: ShardSet,
  { compaction, tiering, coldReads }: Upkeep
): Pick<ProcessReaders, Owned> {
  const cleaners = (): Record<string, Cleaner> => {
    const all = {
      retention: retentionOf(shards),
      compaction: cleanerOf(compaction, compaction.counts.passes)
    }
    return tiering.isOn ? { ...all, tiering: cleanerOf(tiering, tiering.counts.passes) } : all
  }
  const ofCleaners = (read: (cleaner: Cleaner) => number | null) => (): Sample[] =>
    Object.entries(cleaners()).flatMap(([cleaner, state]) => {
      const value = read(state)
      return value === null ? [] : [{ labels: { cleaner }, value }]
    })
  return {
    millrace_cleaner_failing: ofCleaners(({ isFailing }) => (isFailing ? 1 : 0)),
    millrace_cleaner_passes_total: ofCleaners(({ passes }) => passes),
    millrace_cleaner_last_success_age_seconds: ofCleaners(({ lastDoneMs }) =>
      lastDoneMs === null ? null : Math.max(0, systemClock.nowMs() - lastDoneMs) / 1000
    ),
    millrace_compaction_partitions_total: () => one(compaction.counts.partitions),
    millrace_compaction_records_dropped_total: () => one(compaction.counts.recordsDropped),
    millrace_compaction_opaque_batches_total: () => one(compaction.counts.opaqueBatches),
    millrace_compaction_read_bytes_total: () => one(compaction.counts.bytesRead),
    millrace_compaction_written_bytes_total: () => one(compaction.counts.bytesWritten),
    millrace_compaction_failures_total: () => one(compaction.counts.failures),
    millrace_tiering_segments_total: () => one(tiering.counts.segments),
    millrace_tiering_bytes_total: () => one(tiering.counts.bytes),
    millrace_tiering_removed_objects_total: () => one(tiering.counts.removedObjects),
    millrace_tiering_failures_total: () => one(tiering.counts.failures),
    millrace_cold_fetches_total: () => [
      { labels: { result: 'done' }, value: coldReads.counts.fetches },
      { labels: { result: 'failed' }, value: coldReads.counts.failures }
    ],
    millrace_cold_fetched_bytes_total: () => one(coldReads.counts.fetchedBytes),
    millrace_cold_evictions_total: () => one(coldReads.counts.evictions),
    millrace_cold_cache_bytes: () => one(coldReads.cachedBytes)
  }
}

/** Each shard has its own retention: it fails if one fails, and was last done when the last of them was. */
function retentionOf(shards: ShardSet): Cleaner {
  const all = shards.counters().map(({ counters }) => counters)
  const doneMs = Math.min(...all.map(({ retentionDoneMs }) => retentionDoneMs))
  return {
    isFailing: all.some(({ retentionFailing }) => retentionFailing > 0),
    passes: all.reduce((sum, { retentionPasses }) => sum + retentionPasses, 0),
    lastDoneMs: Number.isFinite(doneMs) && doneMs > 0 ? doneMs : null
  }
}

function cleanerOf(
  { problem, lastDoneMs }: { problem: string | null; lastDoneMs: number | null },
  passes: number
): Cleaner {
  return { isFailing: problem !== null, passes, lastDoneMs }
}
