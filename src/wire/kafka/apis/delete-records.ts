/** DeleteRecords (21): below an offset; −1 is the high watermark. Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, int64Clamped, int64, string, structsOf } from '../schema.ts'

export const deleteRecords = apiOf('DeleteRecords', {
  key: 21,
  first: 0,
  last: 2,
  flexibleSince: 2,
  request: {
    topics: structsOf({ name: string(), partitions: structsOf({ partitionIndex: int32(), offset: int64Clamped() }) }),
    timeoutMs: int32()
  },
  response: {
    throttleTimeMs: int32({ default: 0 }),
    topics: structsOf({
      name: string(),
      partitions: structsOf({ partitionIndex: int32(), lowWatermark: int64(), errorCode: int16() })
    })
  }
})
