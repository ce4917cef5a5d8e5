/** How much memory the answer to a fetch may take, and how much of it is done at once. Pure, any thread. */
import type { KafkaSettings } from '../settings.ts'

/** Partitions that are read, or told of, in one round of the event loop: one that is refused takes some 10 µs (measured). */
export const PARTITIONS_A_TURN = 500
/** What the answer of a fetch may take beside its records: for a few hundred partitions. */
const FETCH_OVERHEAD_BYTES = 64 * 1024

/** Bytes of records that a fetch is given at most, but for one batch that is larger. @param maxBytes that it asked for. */
export function fetchBytesOf(settings: KafkaSettings, maxBytes: number): number {
  return Math.max(1, Math.min(maxBytes, settings.maxFetchBytes))
}

/** What is reserved for the answer to a fetch of so many bytes. */
export function reservedBytesOf(fetchBytes: number): number {
  return fetchBytes + FETCH_OVERHEAD_BYTES
}

/** The most that is reserved for a fetch. */
export function largestAnswerBytes(settings: KafkaSettings): number {
  return reservedBytesOf(Math.max(1, settings.maxFetchBytes))
}
