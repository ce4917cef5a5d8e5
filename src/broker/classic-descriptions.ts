/** Groups as Kafka's tools show them, whatever their members speak. Main thread. */
import type { ClassicTable } from '../control/groups/classic/classic-table.ts'
import { metadataOf, noBytes } from '../control/groups/classic/member.ts'
import type { Coordinator } from '../control/groups/coordinator.ts'
import type { Group } from '../control/groups/group-table.ts'
import type { ClassicDescription, ClassicListing } from '../model/classic-groups.ts'

interface Members {
  readonly coordinator: Coordinator
  readonly classic: ClassicTable
}

export function listClassic({ coordinator, classic }: Members, group: Group): ClassicListing {
  const isHttp = (coordinator.membershipOf(group)?.memberCount ?? 0) > 0
  if (isHttp) return { group: group.name, state: 'Stable', protocolType: 'http' }
  const known = classic.groupOf(group.number)
  return { group: group.name, state: known?.state ?? 'Empty', protocolType: known?.protocolType ?? '' }
}

export function describeClassic(members: Members, group: Group): ClassicDescription {
  const listing = listClassic(members, group)
  const known = members.classic.groupOf(group.number)
  if (known === undefined || listing.protocolType === 'http') return { ...listing, protocolName: '', members: [] }
  const isStable = known.state === 'Stable'
  return {
    ...listing,
    protocolName: isStable ? (known.protocolName ?? '') : '',
    members: [...known.members()].map(member => {
      const { id: memberId, instanceId, clientId, clientHost, assignment } = member
      const metadata = isStable ? metadataOf(member, known.protocolName) : noBytes
      return { memberId, instanceId, clientId, clientHost, metadata, assignment: isStable ? assignment : noBytes }
    })
  }
}
