/** OffsetCommit (8). Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, int64, int64Clamped, string, structsOf } from '../schema.ts'

export const offsetCommit = apiOf('OffsetCommit', {
  key: 8,
  first: 2,
  last: 9,
  flexibleSince: 8,
  request: {
    groupId: string(),
    generationIdOrMemberEpoch: int32({ default: -1, ignorable: true }),
    memberId: string({ default: '', ignorable: true }),
    groupInstanceId: string({ since: 7, nullableSince: 7, default: null }),
    retentionTimeMs: int64Clamped({ until: 4, default: -1, ignorable: true }),
    topics: structsOf({
      name: string(),
      partitions: structsOf({
        partitionIndex: int32(),
        committedOffset: int64(),
        committedLeaderEpoch: int32({ since: 6, default: -1, ignorable: true }),
        committedMetadata: string({ nullableSince: 0 })
      })
    })
  },
  response: {
    throttleTimeMs: int32({ since: 3, ignorable: true }),
    topics: structsOf({
      name: string(),
      partitions: structsOf({ partitionIndex: int32(), errorCode: int16() })
    })
  }
})
