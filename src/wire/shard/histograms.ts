/**
 * Histograms of a shard in shared memory, at the end of its block of counters (counters.ts): the shard thread writes, main
 * reads at scrape time. What is counted, and in which buckets, is the same for every shard, so that they can be summed.
 */
import { Histogram, histogramSlots, type HistogramFigures } from '../../base/histogram.ts'

const MiB = 1024 * 1024
const KiB = 1024

export const shardHistograms = {
  /** One fdatasync of the journal, seconds: 0.1 ms is a fast disk, 100 ms a sick one. */
  syncSeconds: [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1],
  /** One turn of the shard without its sleep, seconds: how long anything that comes meanwhile waits at most. */
  turnSeconds: [0.0001, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1],
  /** Records of a group. */
  groupRecords: [1, 10, 100, 1000, 10_000, 100_000],
  /** Bytes of a group in the journal, padding included. */
  groupBytes: [4 * KiB, 16 * KiB, 64 * KiB, 256 * KiB, MiB, 4 * MiB]
} as const satisfies Record<string, readonly number[]>
export type ShardHistogram = keyof typeof shardHistograms

export type ShardHistograms = { readonly [Name in ShardHistogram]: HistogramFigures }

const names: readonly ShardHistogram[] = ['syncSeconds', 'turnSeconds', 'groupRecords', 'groupBytes']

/** Slots of all of them. */
export const HISTOGRAM_SLOTS = names.reduce((sum, name) => sum + histogramSlots(shardHistograms[name].length), 0)

/** One of them. @param counters the whole block of a shard. */
export function shardHistogram(counters: Float64Array, name: ShardHistogram): Histogram {
  let start = counters.length - HISTOGRAM_SLOTS
  for (const other of names) {
    if (other === name) break
    start += histogramSlots(shardHistograms[other].length)
  }
  const bounds = shardHistograms[name]
  return new Histogram(bounds, counters.subarray(start, start + histogramSlots(bounds.length)))
}

/** A snapshot of all of them. */
export function readHistograms(shared: SharedArrayBuffer): ShardHistograms {
  const counters = new Float64Array(shared)
  return {
    syncSeconds: shardHistogram(counters, 'syncSeconds').read(),
    turnSeconds: shardHistogram(counters, 'turnSeconds').read(),
    groupRecords: shardHistogram(counters, 'groupRecords').read(),
    groupBytes: shardHistogram(counters, 'groupBytes').read()
  }
}
