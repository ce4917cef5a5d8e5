/** What looks for the keys of batches, as the composition root builds it. Main thread. */
import type { BatchJobs } from '../background/jobs.ts'
import { BackgroundPool } from '../background/pool.ts'
import { ByteBudget } from '../base/byte-budget.ts'
import type { Logger } from '../base/logger.ts'
import { KeyedBatches, type KeyedBatchParts } from '../broker/keyed-batches.ts'
import { limits } from '../model/limits.ts'

/** One batch at a time: each may be many times as large when it is inflated. */
const THREADS = 1

/** No thread runs before the first large batch for a compacted topic, nor a while after the last. */
export function buildRecordKeyPool(logger: Logger): BackgroundPool<BatchJobs> {
  // Each partition gives one job at a time.
  return new BackgroundPool<BatchJobs>({ threadsMax: THREADS, jobsMax: limits.partitionsTotalMax, logger })
}

/** @param requestMemoryBytes its copies may hold a part of so much, beside it. */
export function buildKeyedBatches(parts: Omit<KeyedBatchParts, 'held'>, requestMemoryBytes: number): KeyedBatches {
  const held = new ByteBudget(Math.floor(requestMemoryBytes / limits.keyedBatchShare))
  return new KeyedBatches({ ...parts, held })
}
