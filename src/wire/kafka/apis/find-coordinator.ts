/** FindCoordinator (10): of one key, since version 4 of many. Key types: 0 a group, 1 a transaction. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, int8, int16, int32, string, structsOf } from '../schema.ts'

export const findCoordinator = apiOf('FindCoordinator', {
  key: 10,
  first: 0,
  last: 6,
  flexibleSince: 3,
  request: {
    key: string({ until: 3 }),
    keyType: int8({ since: 1, default: 0 }),
    coordinatorKeys: arrayOf(string(), { since: 4 })
  },
  response: {
    throttleTimeMs: int32({ since: 1, ignorable: true }),
    errorCode: int16({ until: 3 }),
    errorMessage: string({ since: 1, until: 3, nullableSince: 1, ignorable: true }),
    nodeId: int32({ until: 3 }),
    host: string({ until: 3 }),
    port: int32({ until: 3 }),
    coordinators: structsOf(
      {
        key: string(),
        nodeId: int32(),
        host: string(),
        port: int32(),
        errorCode: int16(),
        errorMessage: string({ nullableSince: 4, ignorable: true })
      },
      { since: 4 }
    )
  }
})
