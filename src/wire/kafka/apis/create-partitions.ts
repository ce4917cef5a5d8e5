/** CreatePartitions (37): how many a topic has then. Null assignments: the broker chooses. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, bool, int16, int32, string, structsOf } from '../schema.ts'

export const createPartitions = apiOf('CreatePartitions', {
  key: 37,
  first: 0,
  last: 3,
  flexibleSince: 2,
  request: {
    topics: structsOf({
      name: string(),
      count: int32(),
      assignments: structsOf({ brokerIds: arrayOf(int32()) }, { nullableSince: 0 })
    }),
    timeoutMs: int32(),
    validateOnly: bool()
  },
  response: {
    throttleTimeMs: int32({ default: 0 }),
    results: structsOf({
      name: string(),
      errorCode: int16(),
      errorMessage: string({ nullableSince: 0, default: null })
    })
  }
})
