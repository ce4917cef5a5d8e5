/** Readers of what consumer groups come to, all together. Main thread; by group the page of topics tells. */
import type { ClassicCounts } from '../control/groups/classic/classic-table.ts'
import type { CoordinatorCounts } from '../control/groups/coordinator.ts'
import { one, type ProcessReaders, type Sample } from '../observe/process-page.ts'
import type { GroupComposition } from './groups.ts'

export type ConsumerParts = Pick<GroupComposition, 'groupTable' | 'groupFlush' | 'coordinator' | 'classic'>
type Owned = Extract<keyof ProcessReaders, `millrace_consumer_${string}`>

export function consumerReaders({
  groupTable,
  groupFlush,
  coordinator,
  classic
}: ConsumerParts): Pick<ProcessReaders, Owned> {
  const byKind = (value: keyof CoordinatorCounts & keyof ClassicCounts): Sample[] => [
    { labels: { kind: 'http' }, value: coordinator.counts[value] },
    { labels: { kind: 'kafka' }, value: classic.counts[value] }
  ]
  return {
    millrace_consumer_groups: () => one(groupTable.groupCount),
    millrace_consumer_group_offsets: () => one(groupTable.offsetCount),
    millrace_consumer_group_flush_failing: () => one(groupFlush.problem === null ? 0 : 1),
    millrace_consumer_group_members: () => byKind('members'),
    millrace_consumer_group_rebalances_total: () => byKind('rebalances'),
    millrace_consumer_group_evictions_total: () => byKind('evictions')
  }
}
