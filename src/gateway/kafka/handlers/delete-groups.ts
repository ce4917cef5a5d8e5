/** DeleteGroups: each with its offsets, if it has no members. Main thread. */
import { deleteGroups } from '../../../wire/kafka/apis/delete-groups.ts'
import { codeOf } from '../group-codes.ts'
import { longChangeOf, type KafkaHandler } from '../handler.ts'

export const deleteGroupsHandler: KafkaHandler = longChangeOf(deleteGroups, async call => {
  const { groups } = call.services.broker
  // One after the other: each is a write to the store.
  const results = await call.pace.inOrder(call.body.groupsNames, async groupId => {
    const outcome = await groups.remove(call.who, groupId).then(
      () => null,
      (error: unknown) => error
    )
    return { groupId, errorCode: codeOf(outcome) }
  })
  await call.answerInTurns({ results })
})
