/** LeaveGroup (13): one member, since version 3 many. Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, string, structsOf } from '../schema.ts'

export const leaveGroup = apiOf('LeaveGroup', {
  key: 13,
  first: 0,
  last: 5,
  flexibleSince: 4,
  request: {
    groupId: string(),
    memberId: string({ until: 2 }),
    members: structsOf(
      {
        memberId: string(),
        groupInstanceId: string({ nullableSince: 3, default: null }),
        reason: string({ since: 5, nullableSince: 5, default: null, ignorable: true })
      },
      { since: 3 }
    )
  },
  response: {
    throttleTimeMs: int32({ since: 1, ignorable: true }),
    errorCode: int16(),
    members: structsOf(
      { memberId: string(), groupInstanceId: string({ nullableSince: 3 }), errorCode: int16() },
      { since: 3 }
    )
  }
})
