/** DeleteGroups: each with its offsets, if it has no members. Main thread. */
import { deleteGroups } from '../../../wire/kafka/apis/delete-groups.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'
import { inTurns } from '../turns.ts'

export const deleteGroupsHandler: KafkaHandler = handlerOf(deleteGroups, async call => {
  const { groups } = call.services.broker
  const results: { groupId: string; errorCode: number }[] = []
  // One after the other: each is a write to the store.
  for await (const groupId of inTurns(call.body.groupsNames)) {
    const outcome = await groups.remove(call.who, groupId).then(
      () => null,
      (error: unknown) => error
    )
    results.push({ groupId, errorCode: codeOf(outcome) })
  }
  call.answer({ results })
})
