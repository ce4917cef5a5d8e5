/** Heartbeat: a member is still there, and learns whether its group rebalances. Main thread. */
import { heartbeat } from '../../../wire/kafka/apis/heartbeat.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'

export const heartbeatHandler: KafkaHandler = handlerOf(heartbeat, call => {
  const { groupId, generationId: generation, memberId, groupInstanceId: instanceId } = call.body
  const { classicGroups } = call.services.broker
  try {
    call.answer({ errorCode: codeOf(classicGroups.heartbeat(call.who, groupId, { memberId, instanceId, generation })) })
  } catch (error) {
    call.answer({ errorCode: codeOf(error) })
  }
})
