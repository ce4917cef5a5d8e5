/** Readers of what the shards count in their shared blocks. Main thread. */
import { one, type ProcessReaders, type Sample } from '../observe/process-page.ts'
import type { WritePace } from '../observe/write-pace.ts'
import type { ShardLink } from '../shards/shard-link.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import type { ShardCounters } from '../wire/shard/counters.ts'
import type { ShardHistograms } from '../wire/shard/histograms.ts'

type Owned =
  | Extract<
      keyof ProcessReaders,
      | `millrace_shard${string}`
      | `millrace_ring_${string}`
      | `millrace_group_${string}`
      | `millrace_journal_${string}`
      | `millrace_read${string}`
      | `millrace_settle_${string}`
      | `millrace_retention_${string}`
    >
  | 'millrace_direct_io'
  | 'millrace_disk_refused_requests_total'
  | 'millrace_damaged_runs_total'
  | 'millrace_quarantined_runs'
  | 'millrace_cold_waits_total'

export function shardReaders(shards: ShardSet, pace: WritePace): Pick<ProcessReaders, Owned> {
  return {
    ...stateReaders(shards),
    ...ringReaders(shards),
    ...journalReaders(shards, pace),
    ...settleReaders(shards),
    ...readReaders(shards)
  }
}

/** One sample for each shard that runs. @param read null: it has none. */
function ofCounters(shards: ShardSet, read: (counters: ShardCounters, shard: number) => number | null) {
  return (): Sample[] =>
    shards.counters().flatMap(({ shard, counters }) => {
      const value = read(counters, shard)
      return value === null ? [] : [{ labels: { shard }, value }]
    })
}

/** The same twice, told apart by a label. */
function ofPairs(shards: ShardSet, label: string, read: (counters: ShardCounters) => Readonly<Record<string, number>>) {
  return (): Sample[] =>
    shards
      .counters()
      .flatMap(({ shard, counters }) =>
        Object.entries(read(counters)).map(([kind, value]) => ({ labels: { shard, [label]: kind }, value }))
      )
}

function ofHistograms(shards: ShardSet, name: keyof ShardHistograms) {
  return (): Sample[] => shards.links().map(link => ({ labels: { shard: link.shard }, value: link.histograms[name] }))
}

function stateReaders(shards: ShardSet) {
  return {
    millrace_shards: () => one(shards.shardCount),
    millrace_shard_state: (): Sample[] =>
      shards.states.flatMap(({ red, isReady }, shard) => {
        const now = red !== null ? 'down' : isReady ? 'ready' : 'starting'
        return ['ready', 'starting', 'down'].map(state => ({ labels: { shard, state }, value: state === now ? 1 : 0 }))
      }),
    millrace_shard_restarts_total: (): Sample[] =>
      shards.states.map(({ startCount }, shard) => ({ labels: { shard }, value: Math.max(0, startCount - 1) })),
    millrace_shard_turn_seconds: ofHistograms(shards, 'turnSeconds'),
    millrace_shard_requests_in_progress: (): Sample[] =>
      shards.links().map(link => ({ labels: { shard: link.shard }, value: link.pending.count }))
  }
}

function ringReaders(shards: ShardSet) {
  const ofRings = (read: (ring: ShardLink['requests']) => number) => (): Sample[] =>
    shards.links().flatMap(({ shard, requests, reads }) => [
      { labels: { shard, ring: 'requests' }, value: read(requests) },
      { labels: { shard, ring: 'reads' }, value: read(reads) }
    ])
  return {
    millrace_ring_used_bytes: ofRings(ring => ring.capacityBytes - ring.freeBytes()),
    millrace_ring_bytes: ofRings(ring => ring.capacityBytes)
  }
}

function journalReaders(shards: ShardSet, pace: WritePace) {
  return {
    millrace_group_records: ofHistograms(shards, 'groupRecords'),
    millrace_group_bytes: ofHistograms(shards, 'groupBytes'),
    millrace_journal_sync_seconds: ofHistograms(shards, 'syncSeconds'),
    millrace_journal_records_total: ofCounters(shards, counters => counters.records),
    millrace_journal_written_bytes_total: ofCounters(shards, counters => counters.journalBytes),
    millrace_journal_write_seconds_total: ofCounters(shards, counters => counters.writeNs / 1e9),
    millrace_journal_unsettled_bytes: ofCounters(shards, counters => counters.unsettledBytes),
    millrace_journal_budget_bytes: ofCounters(shards, counters => counters.budgetBytes),
    millrace_journal_budget_left_seconds: ofCounters(shards, ({ budgetBytes, unsettledBytes, journalBytes }, shard) => {
      const left = Math.max(0, budgetBytes - unsettledBytes)
      return left / pace.bytesPerSecond(shard, journalBytes) || 0
    }),
    millrace_journal_held_seconds_total: ofCounters(shards, counters => counters.heldMs / 1000),
    millrace_journal_slots_rolled_total: ofCounters(shards, counters => counters.slotsRolled),
    millrace_journal_slots_unfilled_total: ofCounters(shards, counters => counters.slotsUnfilled),
    millrace_disk_refused_requests_total: ofCounters(shards, counters => counters.diskFull)
  }
}

function settleReaders(shards: ShardSet) {
  return {
    millrace_settle_jobs_total: ofPairs(shards, 'result', ({ settleJobs: done, settleFailures: failed }) => {
      return { done, failed }
    }),
    millrace_settle_read_bytes_total: ofCounters(shards, counters => counters.settleReadBytes),
    millrace_settle_written_bytes_total: ofCounters(shards, counters => counters.settleWrittenBytes),
    millrace_settle_seconds_total: ofCounters(shards, counters => counters.settleMs / 1000),
    millrace_settle_rate_bytes_per_second: ofCounters(shards, ({ settleJobs, settleRate }) =>
      settleJobs === 0 ? null : settleRate
    ),
    millrace_settle_buffered_jobs_total: ofCounters(shards, counters => counters.settleBuffered),
    millrace_direct_io: ofCounters(shards, ({ settleBuffered, settleDirect }) => {
      if (settleBuffered + settleDirect === 0) return null
      return settleBuffered === 0 ? 1 : 0
    }),
    millrace_retention_segments_total: ofCounters(shards, counters => counters.retentionSegments),
    millrace_retention_bytes_total: ofCounters(shards, counters => counters.retentionBytes)
  }
}

function readReaders(shards: ShardSet) {
  return {
    millrace_reads_total: ofCounters(shards, counters => counters.reads),
    millrace_read_records_total: ofCounters(shards, counters => counters.readRecords),
    millrace_read_bytes_total: ofPairs(shards, 'source', ({ readBytesMemory: memory, readBytesDisk: disk }) => {
      return { memory, disk }
    }),
    millrace_read_lent_bytes: (): Sample[] =>
      shards.links().map(({ shard, lent }) => ({ labels: { shard }, value: lent.takenBytes })),
    millrace_damaged_runs_total: ofCounters(shards, counters => counters.damagedRuns),
    millrace_quarantined_runs: ofCounters(shards, counters => counters.quarantinedRuns),
    millrace_cold_waits_total: ofCounters(shards, counters => counters.coldWaits)
  }
}
