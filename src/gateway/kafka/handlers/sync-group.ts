/** SyncGroup: a leader brings who reads what, the others are answered when it has. Main thread. */
import { syncGroup } from '../../../wire/kafka/apis/sync-group.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'

const nothing = Buffer.alloc(0)

export const syncGroupHandler: KafkaHandler = handlerOf(syncGroup, async call => {
  const { body, who, services } = call
  const { groupId, generationId: generation, memberId, groupInstanceId: instanceId, ...rest } = body
  const { classicGroups } = services.broker
  try {
    const sync = { generation, memberId, instanceId, ...rest }
    const answered = await classicGroups.sync(who, groupId, sync, end => call.onClosing(end))
    const { fault, protocolType, protocolName, assignment } = answered
    call.answer({ errorCode: codeOf(fault), protocolType, protocolName, assignment })
  } catch (error) {
    call.answer({ errorCode: codeOf(error), assignment: nothing })
  }
})
