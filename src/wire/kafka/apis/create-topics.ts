/** CreateTopics (19). Null configs of an answer: the client may not see them. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, bool, int8, int16, int32, string, structsOf, uuid } from '../schema.ts'

export const createTopics = apiOf('CreateTopics', {
  key: 19,
  first: 2,
  last: 7,
  flexibleSince: 5,
  request: {
    topics: structsOf({
      name: string(),
      numPartitions: int32(),
      replicationFactor: int16(),
      assignments: structsOf({ partitionIndex: int32(), brokerIds: arrayOf(int32()) }),
      configs: structsOf({ name: string(), value: string({ nullableSince: 0 }) })
    }),
    timeoutMs: int32({ default: 60_000 }),
    validateOnly: bool({ default: false })
  },
  response: {
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    topics: structsOf({
      name: string(),
      topicId: uuid({ since: 7, ignorable: true }),
      errorCode: int16(),
      errorMessage: string({ nullableSince: 0, ignorable: true }),
      topicConfigErrorCode: int16({ since: 5, tag: 0, ignorable: true }),
      numPartitions: int32({ since: 5, default: -1, ignorable: true }),
      replicationFactor: int16({ since: 5, default: -1, ignorable: true }),
      configs: structsOf(
        {
          name: string(),
          value: string({ nullableSince: 5 }),
          readOnly: bool(),
          configSource: int8({ default: -1, ignorable: true }),
          isSensitive: bool()
        },
        { since: 5, nullableSince: 5, ignorable: true }
      )
    })
  }
})
