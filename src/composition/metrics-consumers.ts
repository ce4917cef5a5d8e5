/** Readers of what consumer groups come to, all together. Main thread; by group the page of topics tells. */
import { one, type ProcessReaders } from '../observe/process-page.ts'
import type { GroupComposition } from './groups.ts'

type Owned = Extract<keyof ProcessReaders, `millrace_consumer_${string}`>

export function consumerReaders({
  groupTable,
  groupFlush,
  coordinator
}: Pick<GroupComposition, 'groupTable' | 'groupFlush' | 'coordinator'>): Pick<ProcessReaders, Owned> {
  return {
    millrace_consumer_groups: () => one(groupTable.groupCount),
    millrace_consumer_group_offsets: () => one(groupTable.offsetCount),
    millrace_consumer_group_flush_failing: () => one(groupFlush.problem === null ? 0 : 1),
    millrace_consumer_group_members: () => one(coordinator.counts.members),
    millrace_consumer_group_rebalances_total: () => one(coordinator.counts.rebalances),
    millrace_consumer_group_evictions_total: () => one(coordinator.counts.evictions)
  }
}
