/** When the reply memory is scarce. Pure; any thread. */
import type { ByteBudget } from '../../base/byte-budget.ts'

/**
 * @param largestBytes what the largest answer to a read reserves.
 * @returns true if a read may have to wait for memory: then nobody may hold it without taking what it holds.
 */
export function isReplyMemoryShort(budget: ByteBudget, largestBytes: number): boolean {
  return budget.usedBytes > 0 && budget.limitBytes - budget.usedBytes < largestBytes
}
