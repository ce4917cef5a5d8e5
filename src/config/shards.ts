/** How many shard workers a new data directory gets. */
import { availableParallelism } from 'node:os'

/** One per core that this process may use (container quotas count), less one for the main thread; at least 1. */
export function defaultShardCount(coreCount: number = availableParallelism()): number {
  return Math.max(1, coreCount - 1)
}
