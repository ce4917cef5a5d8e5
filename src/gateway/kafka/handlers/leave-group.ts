/** LeaveGroup: one member leaves, since version 3 many, each with an outcome of its own. Main thread. */
import type { ClassicLeaver } from '../../../model/classic-groups.ts'
import { leaveGroup } from '../../../wire/kafka/apis/leave-group.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { codeOf } from '../group-codes.ts'
import { longHandlerOf, type KafkaHandler } from '../handler.ts'

const MANY_SINCE = 3

export const leaveGroupHandler: KafkaHandler = longHandlerOf(leaveGroup, call => {
  const { body, version, who, services } = call
  const leavers = version < MANY_SINCE ? [{ memberId: body.memberId, instanceId: null }] : body.members.map(leaverOf)
  let codes: number[]
  try {
    codes = services.broker.classicGroups.leave(who, body.groupId, leavers).map(codeOf)
  } catch (error) {
    return call.answer({ errorCode: codeOf(error), members: [] })
  }
  if (version < MANY_SINCE) return call.answer({ errorCode: codes[0] ?? kafkaErrors.NONE.code, members: [] })
  const members = leavers.map(({ memberId, instanceId }, index) => {
    return { memberId, groupInstanceId: instanceId, errorCode: codes[index] ?? kafkaErrors.NONE.code }
  })
  call.answer({ errorCode: kafkaErrors.NONE.code, members })
})

function leaverOf(member: { readonly memberId: string; readonly groupInstanceId: string | null }): ClassicLeaver {
  return { memberId: member.memberId, instanceId: member.groupInstanceId }
}
