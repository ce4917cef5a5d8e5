/**
 * How many stored bytes of a partition lie at or above an offset: what somebody who waits for so much is measured by.
 * Pure; shard thread only. An estimate: of the run, or segment, that the offset is within, its share by offsets counts, and
 * what is damaged or was compacted away counts as if it were there.
 */
import type { PartitionLog } from './partition-log.ts'

/** Runs and segments that are looked at one by one, the newest first: some microseconds. What lies before is taken to be as dense. */
const LOOKED_MAX = 4096

/**
 * Durable stored bytes from `offset` on, from the start of the log if that is later.
 * @param enoughBytes counting may end there. @returns 0 only if the log ends at or before the offset.
 */
export function storedBytesFrom(log: PartitionLog, offset: number, enoughBytes: number): number {
  const from = Math.max(offset, log.startOffset)
  const end = log.highWatermark
  if (from >= end) return 0
  const { runs } = log
  const segments = log.settled?.segments ?? []
  let bytes = 0
  /** What lies at or above it is counted. */
  let counted = end
  let looked = 0
  for (let i = runs.count - 1; i >= 0 && counted > from && bytes < enoughBytes; i--) {
    if (looked++ === LOOKED_MAX) return asDense(bytes, from, counted, end)
    const base = runs.baseOffset(i)
    bytes += shareOf(runs.bytes(i), base, counted, from)
    counted = base
  }
  for (let i = segments.length - 1; i >= 0 && counted > from && bytes < enoughBytes; i--) {
    const segment = segments[i]
    if (segment === undefined) break
    if (looked++ === LOOKED_MAX) return asDense(bytes, from, counted, end)
    bytes += shareOf(segment.bytes, segment.baseOffset, segment.nextOffset, from)
    counted = Math.min(counted, segment.baseOffset)
  }
  return Math.max(1, Math.ceil(bytes))
}

/** The part of [base, next) that is at or above `from`. */
function shareOf(bytes: number, base: number, next: number, from: number): number {
  if (from <= base) return bytes
  return from >= next ? 0 : (bytes * (next - from)) / (next - base)
}

/** [from, counted) is as full as [counted, end), which has these bytes. */
function asDense(bytes: number, from: number, counted: number, end: number): number {
  return Math.ceil((bytes * (end - from)) / (end - counted))
}
