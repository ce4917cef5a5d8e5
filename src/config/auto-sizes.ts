/**
 * What `auto` comes to for the settings that depend on the machine: journal budget, disk reserve, open files. Pure
 * functions of any thread; the caller measures the machine. A value that was set is kept, within what can work.
 */
import { limits } from '../model/limits.ts'
import { GIB } from './setting-spec.ts'
import type { Settings } from './settings.ts'

/** What the caller measured. */
export interface MachineSizes {
  /** Memory that this process may use: a container's limit counts. */
  readonly memoryBytes: number
  /** Whole size of the file system of the data directory, free or not: free space would change from start to start. */
  readonly diskBytes: number
}

/** Beyond it more journal makes nothing faster, and a start slower (measured). */
const BUDGET_BYTES_MAX = 3 * GIB
/** One slot being written, one being settled, one sealed in between and one free. */
const BUDGET_SLOTS_PER_SHARD = 4
const OPEN_FILES_MIN = 64
const OPEN_FILES_MAX = 4096
/** For what is neither a data file nor a connection: slots, the store, the threads' own. */
const OTHER_DESCRIPTORS = 64
const HTTP_CONNECTIONS_MIN = 16
const HTTP_CONNECTIONS_MAX = 16_384

/**
 * @returns bytes of journal over all shards before produce is slowed. Never below four slots a shard, also where less
 * was set: with fewer a shard would wait for the settler at every change of slot.
 */
export function budgetBytes(settings: Settings, machine: MachineSizes, shardCount: number): number {
  const { memoryBytes, diskBytes } = machine
  const chosenBytes =
    settings.journalBudgetBytes ?? Math.min(BUDGET_BYTES_MAX, Math.floor(memoryBytes / 8), Math.floor(diskBytes / 20))
  return Math.max(chosenBytes, BUDGET_SLOTS_PER_SHARD * settings.journalSlotBytes * shardCount)
}

/**
 * @param journalBudgetBytes what budgetBytes gave.
 * @returns free bytes below which produce is refused: room to settle the whole journal and to write one segment anew.
 */
export function reserveBytes(settings: Settings, journalBudgetBytes: number): number {
  const largestSegmentBytes = Math.min(settings.segmentBytes, limits.segmentBytesHard)
  return settings.diskReserveBytes ?? journalBudgetBytes + largestSegmentBytes
}

/**
 * @param descriptors soft limit of file descriptors of the process; Infinity for none.
 * @returns data files that may be open at once, over all shards.
 */
export function openFilesMax(settings: Settings, descriptors: number): number {
  // Half is the binary connections'; the rest is for HTTP, slots and the store.
  const quarter = Math.floor(descriptors / 4)
  return settings.maxOpenFiles ?? Math.min(OPEN_FILES_MAX, Math.max(OPEN_FILES_MIN, quarter))
}

/**
 * @param descriptors soft limit of file descriptors of the process; Infinity for none.
 * @returns HTTP connections at once: a process without a free descriptor could not even turn one away.
 */
export function httpConnectionsMax(settings: Settings, descriptors: number): number {
  const quarter = Math.floor(descriptors / 4) - OTHER_DESCRIPTORS
  return settings.httpMaxConnections ?? Math.min(HTTP_CONNECTIONS_MAX, Math.max(HTTP_CONNECTIONS_MIN, quarter))
}

/** Shared chunks of one shard for large answers to Kafka's clients: together no more than the memory for answers. */
export function lentChunkCount({ bindKafka, replyMemoryBytes }: Settings, shardCount: number): number {
  if (bindKafka.length === 0) return 0
  return Math.floor(Math.min(limits.lentAnswerBytes, replyMemoryBytes / shardCount) / limits.lentChunkBytes)
}
