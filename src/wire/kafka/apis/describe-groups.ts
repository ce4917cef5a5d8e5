/** DescribeGroups (15). Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, bool, bytes, int16, int32, string, structsOf } from '../schema.ts'
import { NO_AUTHORIZED_OPERATIONS } from './authorized-operations.ts'

export const describeGroups = apiOf('DescribeGroups', {
  key: 15,
  first: 0,
  last: 5,
  flexibleSince: 5,
  request: { groups: arrayOf(string()), includeAuthorizedOperations: bool({ since: 3 }) },
  response: {
    throttleTimeMs: int32({ since: 1, ignorable: true }),
    groups: structsOf({
      errorCode: int16(),
      groupId: string(),
      groupState: string(),
      protocolType: string(),
      protocolData: string(),
      members: structsOf({
        memberId: string(),
        groupInstanceId: string({ since: 4, nullableSince: 4, default: null, ignorable: true }),
        clientId: string(),
        clientHost: string(),
        memberMetadata: bytes(),
        memberAssignment: bytes()
      }),
      authorizedOperations: int32({ since: 3, default: NO_AUTHORIZED_OPERATIONS })
    })
  }
})
