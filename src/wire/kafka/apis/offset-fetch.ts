/** OffsetFetch (9): of one group, since version 8 of many. Null topics are all that have an offset. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, bool, int16, int32, int64, string, structsOf } from '../schema.ts'

export const offsetFetch = apiOf('OffsetFetch', {
  key: 9,
  first: 1,
  last: 9,
  flexibleSince: 6,
  request: {
    groupId: string({ until: 7 }),
    topics: structsOf({ name: string(), partitionIndexes: arrayOf(int32()) }, { until: 7, nullableSince: 2 }),
    groups: structsOf(
      {
        groupId: string(),
        memberId: string({ since: 9, nullableSince: 9, default: null, ignorable: true }),
        memberEpoch: int32({ since: 9, default: -1, ignorable: true }),
        topics: structsOf({ name: string(), partitionIndexes: arrayOf(int32()) }, { nullableSince: 8 })
      },
      { since: 8 }
    ),
    requireStable: bool({ since: 7, default: false })
  },
  response: {
    throttleTimeMs: int32({ since: 3, ignorable: true }),
    topics: structsOf(
      {
        name: string(),
        partitions: structsOf({
          partitionIndex: int32(),
          committedOffset: int64(),
          committedLeaderEpoch: int32({ since: 5, default: -1, ignorable: true }),
          metadata: string({ nullableSince: 0 }),
          errorCode: int16()
        })
      },
      { until: 7 }
    ),
    errorCode: int16({ since: 2, until: 7, default: 0, ignorable: true }),
    groups: structsOf(
      {
        groupId: string(),
        topics: structsOf({
          name: string(),
          partitions: structsOf({
            partitionIndex: int32(),
            committedOffset: int64(),
            committedLeaderEpoch: int32({ default: -1, ignorable: true }),
            metadata: string({ nullableSince: 8 }),
            errorCode: int16()
          })
        }),
        errorCode: int16({ default: 0 })
      },
      { since: 8 }
    )
  }
})
