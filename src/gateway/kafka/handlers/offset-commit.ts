/**
 * OffsetCommit: answered when the offsets are on disk, with what the client notes beside them. How long it wants them kept is
 * not stored: offsets stay until their group or topic is deleted. Main thread.
 */
import { PLACES_AT_ONCE, type ClassicCommit, type ClassicMemberIdentity } from '../../../model/classic-groups.ts'
import { offsetCommit } from '../../../wire/kafka/apis/offset-commit.ts'
import { codeOf } from '../group-codes.ts'
import { longHandlerOf, type KafkaCall, type KafkaHandler } from '../handler.ts'
import { codesOfPlaces } from './codes-of-places.ts'

type Call = KafkaCall<typeof offsetCommit.request.fields, typeof offsetCommit.response.fields>

export const offsetCommitHandler: KafkaHandler = longHandlerOf(offsetCommit, async call => {
  const { body } = call
  const { memberId, generationIdOrMemberEpoch: generation, groupInstanceId: instanceId } = body
  const places = body.topics.flatMap(({ name, partitions }) => {
    return partitions.map(({ partitionIndex, committedOffset, committedLeaderEpoch, committedMetadata }) => {
      const note = { leaderEpoch: committedLeaderEpoch, metadata: committedMetadata ?? '' }
      return { topic: name, partition: partitionIndex, offset: committedOffset, note }
    })
  })
  const member = { memberId, instanceId, generation }
  const release = places.length > PLACES_AT_ONCE ? call.hold() : null
  try {
    const codes = await codesOf(call, member, places)
    await call.answerInTurns({ topics: codesOfPlaces(body.topics, codes) })
  } finally {
    release?.()
  }
})

/** @returns one code for each place, in their order. */
async function codesOf({ services, who, body }: Call, member: ClassicMemberIdentity, places: readonly ClassicCommit[]) {
  try {
    return (await services.broker.classicGroups.commit(who, body.groupId, member, places)).map(codeOf)
  } catch (error) {
    const code = codeOf(error)
    return places.map(() => code)
  }
}
