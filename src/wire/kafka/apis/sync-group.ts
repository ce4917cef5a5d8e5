/** SyncGroup (14). The assignment of a consumer is in ../consumer-protocol.ts. Pure, any thread. */
import { apiOf } from '../message.ts'
import { bytes, int16, int32, string, structsOf } from '../schema.ts'

export const syncGroup = apiOf('SyncGroup', {
  key: 14,
  first: 0,
  last: 5,
  flexibleSince: 4,
  request: {
    groupId: string(),
    generationId: int32(),
    memberId: string(),
    groupInstanceId: string({ since: 3, nullableSince: 3, default: null }),
    protocolType: string({ since: 5, nullableSince: 5, default: null, ignorable: true }),
    protocolName: string({ since: 5, nullableSince: 5, default: null, ignorable: true }),
    assignments: structsOf({ memberId: string(), assignment: bytes() })
  },
  response: {
    throttleTimeMs: int32({ since: 1, ignorable: true }),
    errorCode: int16(),
    protocolType: string({ since: 5, nullableSince: 5, default: null, ignorable: true }),
    protocolName: string({ since: 5, nullableSince: 5, default: null, ignorable: true }),
    assignment: bytes()
  }
})
