/** The members of a group as HTTP and the command line show them, whatever they speak. Main thread. */
import type { ClassicGroup } from '../control/groups/classic/classic-group.ts'
import type { ClassicTable } from '../control/groups/classic/classic-table.ts'
import type { ClassicMember } from '../control/groups/classic/member.ts'
import { metadataOf } from '../control/groups/classic/member.ts'
import type { Coordinator } from '../control/groups/coordinator.ts'
import type { Group } from '../control/groups/group-table.ts'
import type { GroupDescription, GroupMember } from '../model/groups.ts'
import { assignment, decodeEmbedded, subscription } from '../wire/kafka/consumer-protocol.ts'

type Described = Pick<GroupDescription, 'kind' | 'state' | 'generation' | 'members'>

export function describeMembers(
  { coordinator, classic }: { readonly coordinator: Coordinator; readonly classic: ClassicTable },
  group: Group
): Described {
  const membership = coordinator.membershipOf(group)
  const kafka = classic.groupOf(group.number)
  // Generations of both kinds are counted apart: the one of its members is told, or of those that it had last.
  if (kafka !== undefined && (membership?.memberCount ?? 0) === 0) return describeClassic(kafka)
  const { kind = null, generation = 0 } = membership ?? {}
  const members = [...(membership?.members() ?? [])].map(({ id: memberId, topics, assignment: assigned }) => {
    const partitionCount = [...assigned.values()].reduce((sum, partitions) => sum + partitions.length, 0)
    return { memberId, topics, partitionCount }
  })
  return { kind, state: kind === null ? 'Empty' : 'Stable', generation, members }
}

function describeClassic(group: ClassicGroup): Described {
  const { state, generation } = group
  const members = [...group.members()].map(member => describeMember(member, group))
  return { kind: members.length > 0 ? 'kafka' : null, state, generation, members }
}

/** What it has is told once all have theirs. Members that are no consumers have no topics that anybody here could read. */
function describeMember(member: ClassicMember, group: ClassicGroup): GroupMember {
  const { id: memberId } = member
  if (group.protocolType !== CONSUMER) return { memberId, topics: [], partitionCount: 0 }
  const topics = subscribedTopics(metadataOf(member, group.protocolName))
  const assigned = group.state === 'Stable' ? decodeEmbedded(assignment, member.assignment) : ''
  if (typeof assigned === 'string') return { memberId, topics, partitionCount: 0 }
  const partitionCount = assigned.assignedPartitions.reduce((sum, { partitions }) => sum + partitions.length, 0)
  return { memberId, topics, partitionCount }
}

/** The type of groups whose members speak Kafka's consumer protocol. */
export const CONSUMER = 'consumer'

/** Topics that a consumer subscribes to, sorted; none where nobody can tell. */
export function subscribedTopics(metadata: Buffer): string[] {
  const decoded = decodeEmbedded(subscription, metadata)
  return typeof decoded === 'string' ? [] : [...new Set(decoded.topics)].sort()
}
