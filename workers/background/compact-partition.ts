/** The job `compactPartition`: one pass over the sealed segments of one partition. Background thread. */
import type { CompactPartitionResult, CompactPartitionValue } from '../../src/background/compaction.ts'
import { DiskError } from '../../src/disk/disk.ts'
import { createRealDisk } from '../../src/disk/real-disk.ts'
import { compactPartition, type PartitionResult } from '../../src/log/compaction/partition-job.ts'
import { DamagedSegment } from '../../src/log/compaction/segment-source.ts'
import type { ManifestPartition } from '../../src/log/manifest.ts'
import { SettleMemory } from '../../src/log/settle/settle-memory.ts'
import { packMessage, unpackMessage } from '../../src/wire/msgpack.ts'

/** Of this thread, used for job after job. */
let memory: SettleMemory | null = null

export function runCompactPartition(value: CompactPartitionValue): CompactPartitionResult {
  memory ??= new SettleMemory()
  const place = { disk: createRealDisk(), dataDirectory: value.dataDirectory, memory }
  const bytes = Buffer.from(value.partition)
  const partition = unpackMessage(bytes, 0, bytes.length) as ManifestPartition
  try {
    const steps = compactPartition(place, { ...value, partition })
    let step = steps.next()
    while (step.done !== true) step = steps.next()
    return resultOf(partition.handle, step.value)
  } catch (error) {
    if (!(error instanceof DiskError) && !(error instanceof DamagedSegment)) throw error
    return {
      replacement: null,
      recordsRead: 0,
      recordsDropped: 0,
      opaqueBatches: 0,
      bytesRead: 0,
      bytesWritten: 0,
      problem: error.message,
      isDamaged: error instanceof DamagedSegment
    }
  }
}

function resultOf(handle: number, { inputs, outputs, directory, result }: PartitionResult): CompactPartitionResult {
  const { recordsRead, recordsDropped, opaqueBatches, bytesRead, bytesWritten } = result
  const replacement = result.changed ? packMessage({ handle, inputs, outputs, directory }) : null
  const counts = { recordsRead, recordsDropped, opaqueBatches, bytesRead, bytesWritten }
  return { replacement, ...counts, problem: null, isDamaged: false }
}
