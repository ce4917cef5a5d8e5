/**
 * Metadata (3): brokers, topics and leaders. Null topics are all of them since version 1; in version 0 no topics are.
 * Pure, any thread.
 */
import { apiOf } from '../message.ts'
import { arrayOf, bool, int16, int32, string, structsOf, uuid } from '../schema.ts'
import { NO_AUTHORIZED_OPERATIONS } from './authorized-operations.ts'

export const metadata = apiOf('Metadata', {
  key: 3,
  first: 0,
  last: 12,
  flexibleSince: 9,
  request: {
    topics: structsOf(
      { topicId: uuid({ since: 10, ignorable: true }), name: string({ nullableSince: 10 }) },
      { nullableSince: 1 }
    ),
    allowAutoTopicCreation: bool({ since: 4, default: true }),
    includeClusterAuthorizedOperations: bool({ since: 8, until: 10 }),
    includeTopicAuthorizedOperations: bool({ since: 8 })
  },
  response: {
    throttleTimeMs: int32({ since: 3, ignorable: true }),
    brokers: structsOf({
      nodeId: int32(),
      host: string(),
      port: int32(),
      rack: string({ since: 1, nullableSince: 1, default: null, ignorable: true })
    }),
    clusterId: string({ since: 2, nullableSince: 2, default: null, ignorable: true }),
    controllerId: int32({ since: 1, default: -1, ignorable: true }),
    topics: structsOf({
      errorCode: int16(),
      name: string({ nullableSince: 12 }),
      topicId: uuid({ since: 10, ignorable: true }),
      isInternal: bool({ since: 1, default: false, ignorable: true }),
      partitions: structsOf({
        errorCode: int16(),
        partitionIndex: int32(),
        leaderId: int32(),
        leaderEpoch: int32({ since: 7, default: -1, ignorable: true }),
        replicaNodes: arrayOf(int32()),
        isrNodes: arrayOf(int32()),
        offlineReplicas: arrayOf(int32(), { since: 5, ignorable: true })
      }),
      topicAuthorizedOperations: int32({ since: 8, default: NO_AUTHORIZED_OPERATIONS })
    }),
    clusterAuthorizedOperations: int32({ since: 8, until: 10, default: NO_AUTHORIZED_OPERATIONS })
  }
})
