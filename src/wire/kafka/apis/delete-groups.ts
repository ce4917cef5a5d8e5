/** DeleteGroups (42). Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, int16, int32, string, structsOf } from '../schema.ts'

export const deleteGroups = apiOf('DeleteGroups', {
  key: 42,
  first: 0,
  last: 2,
  flexibleSince: 2,
  request: { groupsNames: arrayOf(string()) },
  response: {
    throttleTimeMs: int32({ default: 0 }),
    results: structsOf({ groupId: string(), errorCode: int16() })
  }
})
