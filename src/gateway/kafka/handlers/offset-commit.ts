/**
 * OffsetCommit: answered when the offsets are on disk, with what the client notes beside them. How long it wants them kept is
 * not stored: offsets stay until their group or topic is deleted. Main thread.
 */
import { PLACES_AT_ONCE } from '../../../model/classic-groups.ts'
import { offsetCommit } from '../../../wire/kafka/apis/offset-commit.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'

type Call = KafkaCall<typeof offsetCommit.request.fields, typeof offsetCommit.response.fields>

export const offsetCommitHandler: KafkaHandler = handlerOf(offsetCommit, async call => {
  const { body, who, services } = call
  const { groupId, memberId, generationIdOrMemberEpoch: generation, groupInstanceId: instanceId } = body
  const places = body.topics.flatMap(({ name, partitions }) => {
    return partitions.map(({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata }) => {
      const note = { leaderEpoch: committedLeaderEpoch, metadata: committedMetadata ?? '' }
      return { topic: name, partition: partitionIndex, offset: committedOffset, note }
    })
  })
  const member = { memberId, instanceId, generation }
  const release = places.length > PLACES_AT_ONCE ? call.hold() : null
  try {
    const outcomes = await services.broker.classicGroups.commit(who, groupId, member, places)
    await answer(call, outcomes.map(codeOf))
  } catch (error) {
    const code = codeOf(error)
    await answer(
      call,
      places.map(() => code)
    )
  } finally {
    release?.()
  }
})

/** @param codes of all partitions, in their order. */
function answer(call: Call, codes: readonly number[]): Promise<void> {
  let at = 0
  return call.answerInTurns({
    topics: call.body.topics.map(({ name, partitions }) => {
      const told = partitions.map(({ partitionIndex }) => ({ partitionIndex, errorCode: codes[at++] as number }))
      return { name, partitions: told }
    })
  })
}
