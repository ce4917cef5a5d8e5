/** ListOffsets (2): offsets by time, and the ends of a log: −1 latest, −2 earliest, −3 of the largest time. Pure, any thread. */
import { apiOf } from '../message.ts'
import { int8, int16, int32, int64, int64Clamped, string, structsOf } from '../schema.ts'

export const listOffsets = apiOf('ListOffsets', {
  key: 2,
  first: 1,
  last: 9,
  flexibleSince: 6,
  request: {
    replicaId: int32(),
    isolationLevel: int8({ since: 2 }),
    topics: structsOf({
      name: string(),
      partitions: structsOf({
        partitionIndex: int32(),
        currentLeaderEpoch: int32({ since: 4, default: -1, ignorable: true }),
        timestamp: int64Clamped()
      })
    })
  },
  response: {
    throttleTimeMs: int32({ since: 2, ignorable: true }),
    topics: structsOf({
      name: string(),
      partitions: structsOf({
        partitionIndex: int32(),
        errorCode: int16(),
        timestamp: int64({ default: -1 }),
        offset: int64({ default: -1 }),
        leaderEpoch: int32({ since: 4, default: -1 })
      })
    })
  }
})
