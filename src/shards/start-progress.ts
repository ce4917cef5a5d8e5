/**
 * How far the start of a shard has come: in words for people, and as a share for those who draw a bar. Pure; main thread.
 *
 *   not asked yet → scanning its journal (bytes counted by the shard) → making safe what it found → opening its topics
 */

import type { ShardState } from './shard-state.ts'
import type { PlacementProgress } from '../wire/shard/placement.ts'

/** A shard that is not ready, and not down for good. */
export interface StartingShard {
  /** Its thread runs. */
  readonly isRunning: boolean
  /** It has recovered its log. */
  readonly isRecovered: boolean
  /** Of its journal: counted by the shard itself, both 0 before it knows. */
  readonly scan: { readonly doneBytes: number; readonly totalBytes: number }
}

const MIB = 1024 * 1024

/** `shard 0: scanning its journal, 45 of 128 MiB` */
export function describeStart(shard: number, { isRunning, isRecovered, scan }: StartingShard): string {
  if (!isRunning) return `shard ${shard}: waiting to start`
  if (isRecovered) return `shard ${shard}: opening its topics`
  const { doneBytes, totalBytes } = scan
  if (doneBytes < totalBytes) {
    return `shard ${shard}: scanning its journal, ${Math.floor(doneBytes / MIB)} of ${Math.ceil(totalBytes / MIB)} MiB`
  }
  return totalBytes === 0 ? `shard ${shard}: opening its journal` : `shard ${shard}: making its last groups safe`
}

/**
 * Share of the start that is done, 0 to 1. Every shard counts alike: they scan at the same time.
 * @param starting those that are not ready. @param count of all that start or are ready.
 */
export function shareStarted(starting: readonly StartingShard[], count: number): number {
  const done = starting.reduce((sum, shard) => sum + shareOf(shard), count - starting.length)
  return count === 0 ? 1 : Math.round((done / count) * 1000) / 1000
}

/** The scan is all but the last tenth. */
function shareOf({ isRecovered, scan }: StartingShard): number {
  if (isRecovered) return 0.95
  return scan.totalBytes === 0 ? 0 : 0.9 * (scan.doneBytes / scan.totalBytes)
}

/** A change of the number of shards. */
export interface ShardCounts {
  readonly from: number
  readonly to: number
}

/** Settling reads and writes what the journal holds; what comes behind it is small. */
const SETTLING_SHARE = 0.8

/** `changing from 2 to 4 shards: settling shard 0, 45 of 128 MiB` */
export function describeChange({ from, to }: ShardCounts, progress: PlacementProgress): string {
  const { phase, shard, doneBytes, totalBytes } = progress
  const what = phase === 'settling' ? `settling shard ${shard}` : `writing new shard ${shard}`
  const bytes = totalBytes === 0 ? '' : `, ${Math.floor(doneBytes / MIB)} of ${Math.ceil(totalBytes / MIB)} MiB`
  return `changing from ${from} to ${to} shards: ${what}${bytes}`
}

/** Share of the change that is done, 0 to 1: one shard after the other. */
export function shareChanged({ from, to }: ShardCounts, progress: PlacementProgress): number {
  const { phase, shard, doneBytes, totalBytes } = progress
  const ofShard = totalBytes === 0 ? 0 : doneBytes / totalBytes
  const share =
    phase === 'settling'
      ? (SETTLING_SHARE * (shard + ofShard)) / from
      : SETTLING_SHARE + ((1 - SETTLING_SHARE) * (shard + ofShard)) / to
  return Math.round(share * 1000) / 1000
}

/** How far a shard is. */
export function startOf({ link, isRecovered }: ShardState): StartingShard {
  const { scannedBytes, scanBytes } = link?.counters ?? { scannedBytes: 0, scanBytes: 0 }
  return { isRunning: link !== null, isRecovered, scan: { doneBytes: scannedBytes, totalBytes: scanBytes } }
}
