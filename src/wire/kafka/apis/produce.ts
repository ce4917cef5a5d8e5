/**
 * Produce (0): records in, places out. Versions 0–2 carry message sets of older formats as records: they are read as far as
 * an answer needs. Pure, any thread.
 */
import { apiOf } from '../message.ts'
import { int16, int32, int64, records, string, struct, structsOf } from '../schema.ts'
import { leaderIdAndEpoch, nodeEndpoint } from './leader-hints.ts'

export const produce = apiOf('Produce', {
  key: 0,
  first: 0,
  last: 11,
  flexibleSince: 9,
  request: {
    transactionalId: string({ since: 3, nullableSince: 3, default: null }),
    acks: int16(),
    timeoutMs: int32(),
    topicData: structsOf({
      name: string(),
      partitionData: structsOf({ index: int32(), records: records({ nullableSince: 0 }) })
    })
  },
  response: {
    responses: structsOf({
      name: string(),
      partitionResponses: structsOf({
        index: int32(),
        errorCode: int16(),
        baseOffset: int64(),
        logAppendTimeMs: int64({ since: 2, default: -1, ignorable: true }),
        logStartOffset: int64({ since: 5, default: -1, ignorable: true }),
        recordErrors: structsOf(
          { batchIndex: int32(), batchIndexErrorMessage: string({ nullableSince: 8, default: null }) },
          { since: 8, ignorable: true }
        ),
        errorMessage: string({ since: 8, nullableSince: 8, default: null, ignorable: true }),
        currentLeader: struct(leaderIdAndEpoch, { since: 10, tag: 0 })
      })
    }),
    throttleTimeMs: int32({ since: 1, default: 0, ignorable: true }),
    nodeEndpoints: structsOf(nodeEndpoint, { since: 10, tag: 0 })
  }
})
