/**
 * Plain counters of a shard in shared memory: the shard thread writes; main reads at scrape time, the settler to see whether it works.
 * A Float64Array over a SharedArrayBuffer; a value may be a moment old, never torn on the 64-bit machines we run on.
 * Behind the counters lie the histograms (histograms.ts).
 */
import { HISTOGRAM_SLOTS } from './histograms.ts'

export const shardCounters = [
  'groups',
  'syncs',
  'journalBytes',
  'records',
  'recordBytes',
  'batches',
  'syncNs',
  'writeNs',
  'encodeNs',
  'reads',
  'readRecords',
  'readBytesMemory',
  'readBytesDisk',
  'copiedBytes',
  'slotsRolled',
  'slotsUnfilled',
  'loopTurns',
  'waits',
  'scannedBytes',
  'scanBytes',
  'diskFull',
  'quarantinedRuns',
  'unsettledBytes',
  'budgetBytes',
  'settleJobs',
  'settleFailures',
  'settleReadBytes',
  'settleWrittenBytes',
  'settleMs',
  'settleBuffered',
  'settleDirect',
  'settleRate',
  'heldMs',
  'retentionSegments',
  'retentionBytes',
  'retentionFailing',
  'retentionPasses',
  'retentionDoneMs',
  'settlingFailing',
  'coldWaits',
  'damagedRuns'
] as const
export type ShardCounter = (typeof shardCounters)[number]

export type ShardCounters = { [Name in ShardCounter]: number }

/** Index of each counter in the shared array. */
export const counterIndex = Object.fromEntries(shardCounters.map((name, index) => [name, index])) as Record<
  ShardCounter,
  number
>

export function createCounters(): SharedArrayBuffer {
  return new SharedArrayBuffer((shardCounters.length + HISTOGRAM_SLOTS) * 8)
}

/** A snapshot of all counters. */
export function readCounters(shared: SharedArrayBuffer): ShardCounters {
  const values = new Float64Array(shared)
  return Object.fromEntries(shardCounters.map((name, index) => [name, values[index] ?? 0])) as ShardCounters
}

/** The sum over shards, name by name. */
export function sumCounters(all: readonly ShardCounters[]): ShardCounters {
  const sum = (name: ShardCounter): number => all.reduce((total, counters) => total + counters[name], 0)
  return Object.fromEntries(shardCounters.map(name => [name, sum(name)])) as ShardCounters
}
