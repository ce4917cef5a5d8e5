/** ListGroups: those that the caller's key owns, admin all. Main thread. */
import type { ClassicListing } from '../../../model/classic-groups.ts'
import { listGroups } from '../../../wire/kafka/apis/list-groups.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { codeOf } from '../group-codes.ts'
import { longQuestionOf, type KafkaHandler } from '../handler.ts'

/** What Kafka calls the type of groups that rebalance by JoinGroup. */
const CLASSIC = 'classic'

export const listGroupsHandler: KafkaHandler = longQuestionOf(listGroups, async call => {
  // There may be a hundred thousand.
  await call.pace.next()
  const isWantedState = filterOf(call.body.statesFilter)
  const isWantedType = filterOf(call.body.typesFilter)
  let listed: readonly ClassicListing[]
  try {
    listed = call.services.broker.classicGroups.list(call.who)
  } catch (error) {
    return call.answer({ errorCode: codeOf(error), groups: [] })
  }
  const groups = listed
    .filter(({ state }) => isWantedState(state) && isWantedType(CLASSIC))
    .map(({ group, state, protocolType }) => {
      return { groupId: group, protocolType, groupState: state, groupType: CLASSIC }
    })
  return call.answerInTurns({ errorCode: kafkaErrors.NONE.code, groups })
})

/** Clients differ in how they write states and types. @param wanted none: all of them. */
function filterOf(wanted: readonly string[]): (value: string) => boolean {
  const known = new Set(wanted.map(value => value.toLowerCase()))
  return value => known.size === 0 || known.has(value.toLowerCase())
}
