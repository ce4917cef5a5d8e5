/** What members of a classic group are answered, as values. Pure. */
import type {
  ClassicFault,
  ClassicJoinAnswer,
  ClassicJoinMember,
  ClassicSyncAnswer
} from '../../../model/classic-groups.ts'
import { metadataOf, noBytes, type ClassicMember } from './member.ts'

/** @param memberId that the client is to know by. */
export function refusedJoin(fault: ClassicFault, memberId: string): ClassicJoinAnswer {
  return {
    fault,
    memberId,
    generation: -1,
    protocolType: null,
    protocolName: null,
    leader: '',
    skipAssignment: false,
    members: []
  }
}

export function refusedSync(fault: ClassicFault): ClassicSyncAnswer {
  return { fault, protocolType: null, protocolName: null, assignment: noBytes }
}

/** What a leader is told of everybody. */
export function saidBy(members: Iterable<ClassicMember>, protocolName: string | null): ClassicJoinMember[] {
  return [...members].map(member => {
    const { id: memberId, instanceId } = member
    return { memberId, instanceId, metadata: metadataOf(member, protocolName) }
  })
}
