/** How much memory an answer with records may take. Pure, any thread. */
import type { KafkaSettings } from '../settings.ts'

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
