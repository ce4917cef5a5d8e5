/**
 * DescribeGroups. A group that is not there is Dead, which is no error. One whose members speak HTTP says so as its type, and
 * shows none of them: they have no protocol that Kafka's tools could read. A group is described once, however often it is
 * named: its members may have megabytes to tell. Main thread.
 */
import { describeGroups } from '../../../wire/kafka/apis/describe-groups.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import type { WriteOf } from '../../../wire/kafka/schema.ts'
import { codeOf } from '../group-codes.ts'
import { longQuestionOf, type KafkaCall, type KafkaHandler } from '../handler.ts'

type Call = KafkaCall<typeof describeGroups.request.fields, typeof describeGroups.response.fields>
type ToldGroup = WriteOf<typeof describeGroups.response.fields>['groups'][number]

export const describeGroupsHandler: KafkaHandler = longQuestionOf(describeGroups, async call => {
  const { pace } = call
  const groups = await pace.inOrder(new Set(call.body.groups), group => describe(call, group))
  await call.answerInTurns({ groups })
})

function describe({ services, who }: Call, groupId: string): ToldGroup {
  const nothing = { groupId, groupState: '', protocolType: '', protocolData: '', members: [] }
  try {
    const described = services.broker.classicGroups.describe(who, groupId)
    if (described === null) return { ...nothing, groupState: 'Dead', errorCode: kafkaErrors.NONE.code }
    const { state: groupState, protocolType, protocolName: protocolData } = described
    const members = described.members.map(({ instanceId, metadata, assignment, ...member }) => {
      return { ...member, groupInstanceId: instanceId, memberMetadata: metadata, memberAssignment: assignment }
    })
    return { errorCode: kafkaErrors.NONE.code, groupId, groupState, protocolType, protocolData, members }
  } catch (error) {
    return { ...nothing, errorCode: codeOf(error) }
  }
}
