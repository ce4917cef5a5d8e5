/** OffsetForLeaderEpoch (23): where an epoch of leadership ends (KIP-320). Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, int64, string, structsOf } from '../schema.ts'

export const offsetForLeaderEpoch = apiOf('OffsetForLeaderEpoch', {
  key: 23,
  first: 2,
  last: 4,
  flexibleSince: 4,
  request: {
    replicaId: int32({ since: 3, default: -2, ignorable: true }),
    topics: structsOf({
      topic: string(),
      partitions: structsOf({
        partition: int32(),
        currentLeaderEpoch: int32({ default: -1, ignorable: true }),
        leaderEpoch: int32()
      })
    })
  },
  response: {
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    topics: structsOf({
      topic: string(),
      partitions: structsOf({
        errorCode: int16(),
        partition: int32(),
        leaderEpoch: int32({ default: -1, ignorable: true }),
        endOffset: int64({ default: -1 })
      })
    })
  }
})
