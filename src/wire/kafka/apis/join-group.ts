/** JoinGroup (11). The metadata of a protocol of consumers is in ../consumer-protocol.ts. Pure, any thread. */
import { apiOf } from '../message.ts'
import { bool, bytes, int16, int32, string, structsOf } from '../schema.ts'

export const joinGroup = apiOf('JoinGroup', {
  key: 11,
  first: 0,
  last: 9,
  flexibleSince: 6,
  request: {
    groupId: string(),
    sessionTimeoutMs: int32(),
    rebalanceTimeoutMs: int32({ since: 1, default: -1, ignorable: true }),
    memberId: string(),
    groupInstanceId: string({ since: 5, nullableSince: 5, default: null }),
    protocolType: string(),
    protocols: structsOf({ name: string(), metadata: bytes() }),
    reason: string({ since: 8, nullableSince: 8, default: null, ignorable: true })
  },
  response: {
    throttleTimeMs: int32({ since: 2, ignorable: true }),
    errorCode: int16(),
    generationId: int32({ default: -1 }),
    protocolType: string({ since: 7, nullableSince: 7, default: null, ignorable: true }),
    protocolName: string({ nullableSince: 7 }),
    leader: string(),
    skipAssignment: bool({ since: 9, default: false }),
    memberId: string(),
    members: structsOf({
      memberId: string(),
      groupInstanceId: string({ since: 5, nullableSince: 5, default: null, ignorable: true }),
      metadata: bytes()
    })
  }
})
