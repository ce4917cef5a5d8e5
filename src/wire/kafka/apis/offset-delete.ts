/** OffsetDelete (47). Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, string, structsOf } from '../schema.ts'

export const offsetDelete = apiOf('OffsetDelete', {
  key: 47,
  first: 0,
  last: 0,
  request: {
    groupId: string(),
    topics: structsOf({ name: string(), partitions: structsOf({ partitionIndex: int32() }) })
  },
  response: {
    errorCode: int16(),
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    topics: structsOf({ name: string(), partitions: structsOf({ partitionIndex: int32(), errorCode: int16() }) })
  }
})
