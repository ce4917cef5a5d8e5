/** The one table of the memory that the settings allow. Pure. */
import { frameLengthMax, limits } from '../model/limits.ts'
import { lentChunkCount } from './auto-sizes.ts'
import type { Settings } from './settings.ts'

export interface MemoryRow {
  readonly name: string
  readonly eachBytes: number
  readonly count: number
  readonly totalBytes: number
  /** Taken at start (fixed), or only as far as load asks for it (ceiling). */
  readonly held: 'fixed' | 'ceiling'
}

export interface MemoryBudget {
  readonly rows: readonly MemoryRow[]
  readonly totalBytes: number
}

/** What a connection holds while it is idle or between two requests: its receive buffer with the lead-in. An estimate. */
const CONNECTION_BUFFER_BYTES = 64 * 1024

/** What a partition of a fetch session of Kafka takes (measured, limits.ts). */
const SESSION_PARTITION_BYTES = 400

/**
 * The largest group: what it has when it takes no further request, and the largest request as the last. Encoded, records
 * take less than they took as JSON or in a frame. An estimate.
 */
function largestGroupBytes({ bindBinary, bindKafka, maxRecordBytes, maxRequestBodyBytes }: Settings): number {
  const hasFrames = bindBinary !== null || bindKafka.length > 0
  const frameBytes = hasFrames ? frameLengthMax(maxRecordBytes) : 0
  return limits.groupBytesTarget + Math.max(maxRequestBodyBytes, frameBytes)
}

/**
 * A batch that a shard inflates for a read or a search by time: one at once, and what comes out stands there in pieces and
 * as a whole before the pieces are let go.
 */
const INFLATED_BATCH_BYTES = 2 * limits.inflatedBatchBytesMax

function row(name: string, eachBytes: number, count: number, held: MemoryRow['held']): MemoryRow {
  return { name, eachBytes, count, totalBytes: eachBytes * count, held }
}

/** What the listeners keep beside requests and answers; nothing of those that are off. */
function listenerRows({ bindBinary, bindKafka, binaryMaxConnectionsPerIp }: Settings): MemoryRow[] {
  const binary = bindBinary === null ? 0 : 1
  const kafka = bindKafka.length === 0 ? 0 : 1
  const connections = binary * binaryMaxConnectionsPerIp
  const kafkaConnections = kafka * binaryMaxConnectionsPerIp
  const sessionPartitions = kafka * limits.fetchSessionPartitionsTotalMax
  return [
    row('binary connections of one client address (estimate)', CONNECTION_BUFFER_BYTES, connections, 'ceiling'),
    row('buffers kept for binary connections', limits.idleBufferBytesMax, binary, 'ceiling'),
    row('Kafka connections of one client address (estimate)', CONNECTION_BUFFER_BYTES, kafkaConnections, 'ceiling'),
    row('buffers kept for Kafka connections', limits.kafkaIdleBufferBytesMax, kafka, 'ceiling'),
    row('partitions of Kafka fetch sessions (estimate)', SESSION_PARTITION_BYTES, sessionPartitions, 'ceiling'),
    row('a batch that is inflated to look for its keys', limits.inflatedBatchBytesMax, kafka, 'ceiling')
  ]
}

/** @param shardCount shards that will run: settings.shards, else what the directory has or the default. */
export function memoryBudget(settings: Settings, shardCount: number): MemoryBudget {
  const heldBytes = Math.floor(settings.requestMemoryBytes / limits.heldRequestShare)
  const validatedBytes = Math.floor(settings.requestMemoryBytes / limits.validatedRequestShare)
  const keyedBytes =
    settings.bindKafka.length === 0 ? 0 : Math.floor(settings.requestMemoryBytes / limits.keyedBatchShare)
  const movedBytes = Math.floor(settings.requestMemoryBytes / limits.movedFrameShare)
  const largestBytes = largestGroupBytes(settings)
  // A group that does not fit the encode buffer is encoded in memory of its own.
  const encodedApartBytes = largestBytes > settings.encodeBufferBytes ? largestBytes : 0
  const all = [
    row('request rings (per shard)', settings.requestRingBytes, shardCount, 'fixed'),
    row('read rings (per shard)', settings.readRingBytes, shardCount, 'fixed'),
    row('reply rings (per shard)', settings.replyRingBytes, shardCount, 'fixed'),
    row(
      'large answers to Kafka clients (per shard)',
      lentChunkCount(settings, shardCount) * limits.lentChunkBytes,
      shardCount,
      'ceiling'
    ),
    row('encode buffers and newest batches (per shard)', settings.encodeBufferBytes, shardCount, 'fixed'),
    row('group being written (per shard)', limits.groupBytesTarget, shardCount, 'fixed'),
    row('groups larger than their encode buffer (per shard, estimate)', encodedApartBytes, shardCount, 'ceiling'),
    // Also without Kafka: what its clients wrote before is in the log.
    row('a batch that is inflated for a read (per shard, estimate)', INFLATED_BATCH_BYTES, shardCount, 'ceiling'),
    row('requests in flight', settings.requestMemoryBytes, 1, 'ceiling'),
    row('large requests on their way to a shard', movedBytes, 1, 'ceiling'),
    row('requests that wait for their producer id', heldBytes, 1, 'ceiling'),
    row('requests that are matched with a schema', validatedBytes, 1, 'ceiling'),
    row('batches whose keys are looked for', keyedBytes, 1, 'ceiling'),
    row('answers in flight', settings.replyMemoryBytes, 1, 'ceiling'),
    row('keys of a compaction', settings.compactionMemoryBytes, 1, 'ceiling'),
    // Also without Kafka: what its clients noted before is in the store.
    row('what is noted beside committed offsets', limits.groupMetadataBytesTotalMax, 1, 'ceiling'),
    ...listenerRows(settings)
  ]
  const rows = all.filter(({ totalBytes }) => totalBytes > 0)
  return { rows, totalBytes: rows.reduce((sum, { totalBytes }) => sum + totalBytes, 0) }
}
