/** DeleteTopics (20): by name, since version 6 by name or id. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, int16, int32, string, structsOf, uuid } from '../schema.ts'

export const deleteTopics = apiOf('DeleteTopics', {
  key: 20,
  first: 1,
  last: 6,
  flexibleSince: 4,
  request: {
    topics: structsOf({ name: string({ nullableSince: 6, default: null }), topicId: uuid() }, { since: 6 }),
    topicNames: arrayOf(string(), { until: 5, ignorable: true }),
    timeoutMs: int32()
  },
  response: {
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    responses: structsOf({
      name: string({ nullableSince: 6 }),
      topicId: uuid({ since: 6, ignorable: true }),
      errorCode: int16(),
      errorMessage: string({ since: 5, nullableSince: 5, default: null, ignorable: true })
    })
  }
})
