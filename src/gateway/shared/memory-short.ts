/** When a memory budget is scarce. Pure; any thread. */
import type { ByteBudget } from '../../base/byte-budget.ts'

/**
 * @param largestBytes what the largest single need takes.
 * @returns true if somebody may have to wait for memory: then nobody may hold it without getting on.
 */
export function isMemoryShort(budget: ByteBudget, largestBytes: number): boolean {
  return budget.usedBytes > 0 && budget.limitBytes - budget.usedBytes < largestBytes
}
