/** DescribeCluster (60). Pure, any thread. */
import { apiOf } from '../message.ts'
import { bool, int8, int16, int32, string, structsOf } from '../schema.ts'
import { NO_AUTHORIZED_OPERATIONS } from './authorized-operations.ts'

export const describeCluster = apiOf('DescribeCluster', {
  key: 60,
  first: 0,
  last: 1,
  flexibleSince: 0,
  request: { includeClusterAuthorizedOperations: bool(), endpointType: int8({ since: 1, default: 1 }) },
  response: {
    throttleTimeMs: int32({ default: 0 }),
    errorCode: int16(),
    errorMessage: string({ nullableSince: 0, default: null }),
    endpointType: int8({ since: 1, default: 1 }),
    clusterId: string(),
    controllerId: int32({ default: -1 }),
    brokers: structsOf({
      brokerId: int32(),
      host: string(),
      port: int32(),
      rack: string({ nullableSince: 0, default: null })
    }),
    clusterAuthorizedOperations: int32({ default: NO_AUTHORIZED_OPERATIONS })
  }
})
