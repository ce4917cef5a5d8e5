/** Heartbeat (12). Pure, any thread. */
import { apiOf } from '../message.ts'
import { int16, int32, string } from '../schema.ts'

export const heartbeat = apiOf('Heartbeat', {
  key: 12,
  first: 0,
  last: 4,
  flexibleSince: 4,
  request: {
    groupId: string(),
    generationId: int32(),
    memberId: string(),
    groupInstanceId: string({ since: 3, nullableSince: 3, default: null })
  },
  response: { throttleTimeMs: int32({ since: 1, ignorable: true }), errorCode: int16() }
})
