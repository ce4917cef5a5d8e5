/** Fetch (1): records of many partitions, with sessions (KIP-227) since version 7 and topic ids since 13. Pure, any thread. */
import { apiOf } from '../message.ts'
import {
  arrayOf,
  int8,
  int16,
  int32,
  int64,
  int64Clamped,
  int64Exact,
  records,
  string,
  struct,
  structsOf,
  uuid
} from '../schema.ts'
import { leaderIdAndEpoch, nodeEndpoint } from './leader-hints.ts'

export const fetch = apiOf('Fetch', {
  key: 1,
  first: 4,
  last: 17,
  flexibleSince: 12,
  request: {
    clusterId: string({ since: 12, nullableSince: 12, tag: 0, default: null, ignorable: true }),
    replicaId: int32({ until: 14, default: -1 }),
    replicaState: struct(
      { replicaId: int32({ default: -1 }), replicaEpoch: int64({ default: -1 }) },
      { since: 15, tag: 1 }
    ),
    maxWaitMs: int32(),
    minBytes: int32(),
    maxBytes: int32({ default: 0x7fff_ffff, ignorable: true }),
    isolationLevel: int8({ default: 0, ignorable: true }),
    sessionId: int32({ since: 7, default: 0, ignorable: true }),
    sessionEpoch: int32({ since: 7, default: -1, ignorable: true }),
    topics: structsOf({
      topic: string({ until: 12, ignorable: true }),
      topicId: uuid({ since: 13, ignorable: true }),
      partitions: structsOf({
        partition: int32(),
        currentLeaderEpoch: int32({ since: 9, default: -1, ignorable: true }),
        fetchOffset: int64Clamped(),
        lastFetchedEpoch: int32({ since: 12, default: -1 }),
        logStartOffset: int64({ since: 5, default: -1, ignorable: true }),
        partitionMaxBytes: int32(),
        replicaDirectoryId: uuid({ since: 17, tag: 0, ignorable: true })
      })
    }),
    forgottenTopicsData: structsOf(
      {
        topic: string({ until: 12, ignorable: true }),
        topicId: uuid({ since: 13, ignorable: true }),
        partitions: arrayOf(int32())
      },
      { since: 7 }
    ),
    rackId: string({ since: 11, default: '', ignorable: true })
  },
  response: {
    throttleTimeMs: int32({ default: 0, ignorable: true }),
    errorCode: int16({ since: 7, ignorable: true }),
    sessionId: int32({ since: 7, default: 0 }),
    responses: structsOf({
      topic: string({ until: 12, ignorable: true }),
      topicId: uuid({ since: 13, ignorable: true }),
      partitions: structsOf({
        partitionIndex: int32(),
        errorCode: int16(),
        highWatermark: int64(),
        lastStableOffset: int64({ default: -1, ignorable: true }),
        logStartOffset: int64({ since: 5, default: -1, ignorable: true }),
        divergingEpoch: struct(
          { epoch: int32({ default: -1 }), endOffset: int64({ default: -1 }) },
          { since: 12, tag: 0 }
        ),
        currentLeader: struct(leaderIdAndEpoch, { since: 12, tag: 1 }),
        snapshotId: struct({ endOffset: int64({ default: -1 }), epoch: int32({ default: -1 }) }, { since: 12, tag: 2 }),
        abortedTransactions: structsOf(
          { producerId: int64Exact(), firstOffset: int64() },
          { nullableSince: 4, default: [], ignorable: true }
        ),
        preferredReadReplica: int32({ since: 11, default: -1 }),
        records: records({ nullableSince: 0 })
      })
    }),
    nodeEndpoints: structsOf(nodeEndpoint, { since: 16, tag: 0 })
  }
})
