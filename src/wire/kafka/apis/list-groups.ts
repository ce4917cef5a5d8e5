/** ListGroups (16). Empty filters let all pass. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, int16, int32, string, structsOf } from '../schema.ts'

export const listGroups = apiOf('ListGroups', {
  key: 16,
  first: 0,
  last: 5,
  flexibleSince: 3,
  request: { statesFilter: arrayOf(string(), { since: 4 }), typesFilter: arrayOf(string(), { since: 5 }) },
  response: {
    throttleTimeMs: int32({ since: 1, ignorable: true }),
    errorCode: int16(),
    groups: structsOf({
      groupId: string(),
      protocolType: string(),
      groupState: string({ since: 4, ignorable: true }),
      groupType: string({ since: 5, ignorable: true })
    })
  }
})
