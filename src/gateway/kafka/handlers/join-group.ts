/**
 * JoinGroup: answered when the next generation of the group begins, or its connection ends. Main thread.
 *
 *   since 1  a timeout of its own for rebalances · since 4  a new member is told its id first · since 5  static members
 *   since 7  the type is answered, and no protocol is null · since 9  a static leader that is back may have nothing to assign
 */
import type { ClassicJoin, ClassicJoinAnswer } from '../../../model/classic-groups.ts'
import { joinGroup } from '../../../wire/kafka/apis/join-group.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'

type Call = KafkaCall<typeof joinGroup.request.fields, typeof joinGroup.response.fields>

const ID_FIRST_SINCE = 4
const NULLS_SINCE = 7
const SKIPPING_SINCE = 9

export const joinGroupHandler: KafkaHandler = handlerOf(joinGroup, async call => {
  const { body, who, services } = call
  const { classicGroups } = services.broker
  try {
    answer(call, await classicGroups.join(who, body.groupId, joinOf(call), end => call.onClosing(end)))
  } catch (error) {
    const { memberId } = body
    const nothing = { generationId: -1, protocolName: nameFor(call, null), leader: '', memberId, members: [] }
    call.answer({ errorCode: codeOf(error), ...nothing })
  }
})

function joinOf({ body, version, clientId, client }: Call): ClassicJoin {
  const { sessionTimeoutMs, rebalanceTimeoutMs } = body
  return {
    memberId: body.memberId,
    instanceId: body.groupInstanceId,
    protocolType: body.protocolType,
    protocols: body.protocols.map(({ name, metadata }) => ({ name, metadata: Buffer.from(metadata) })),
    sessionTimeoutMs,
    rebalanceTimeoutMs: rebalanceTimeoutMs < 0 ? sessionTimeoutMs : rebalanceTimeoutMs,
    clientId: clientId ?? '',
    clientHost: client.remoteAddress,
    isIdRequired: version >= ID_FIRST_SINCE,
    canSkipAssignment: version >= SKIPPING_SINCE
  }
}

function answer(call: Call, answered: ClassicJoinAnswer): void {
  const { fault, memberId, generation, protocolType, protocolName, leader, skipAssignment, members } = answered
  call.answer({
    errorCode: codeOf(fault),
    generationId: generation,
    protocolType,
    protocolName: nameFor(call, protocolName),
    leader,
    skipAssignment,
    memberId,
    members: members.map(({ memberId: id, instanceId, metadata }) => {
      return { memberId: id, groupInstanceId: instanceId, metadata }
    })
  })
}

/** Older versions cannot say that there is none. */
function nameFor({ version }: Call, protocolName: string | null): string | null {
  return protocolName ?? (version >= NULLS_SINCE ? null : '')
}
