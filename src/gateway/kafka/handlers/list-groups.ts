/** ListGroups: those that the caller's key owns, admin all. Main thread. */
import { listGroups } from '../../../wire/kafka/apis/list-groups.ts'
import { kafkaErrors } from '../../../wire/kafka/errors.ts'
import { codeOf } from '../group-codes.ts'
import { handlerOf, type KafkaHandler } from '../handler.ts'

/** What Kafka calls the type of groups that rebalance by JoinGroup. */
const CLASSIC = 'classic'

export const listGroupsHandler: KafkaHandler = handlerOf(listGroups, call => {
  const { statesFilter, typesFilter } = call.body
  try {
    const listed = call.services.broker.classicGroups.list(call.who)
    const groups = listed
      .filter(({ state }) => passes(statesFilter, state) && passes(typesFilter, CLASSIC))
      .map(({ group, state, protocolType }) => {
        return { groupId: group, protocolType, groupState: state, groupType: CLASSIC }
      })
    call.answer({ errorCode: kafkaErrors.NONE.code, groups })
  } catch (error) {
    call.answer({ errorCode: codeOf(error), groups: [] })
  }
})

/** Clients differ in how they write states and types. */
function passes(filter: readonly string[], value: string): boolean {
  return filter.length === 0 || filter.some(wanted => wanted.toLowerCase() === value.toLowerCase())
}
