/** SaslAuthenticate (36). Pure, any thread. */
import { apiOf } from '../message.ts'
import { bytes, int16, int64, string } from '../schema.ts'

export const saslAuthenticate = apiOf('SaslAuthenticate', {
  key: 36,
  first: 0,
  last: 2,
  flexibleSince: 2,
  request: { authBytes: bytes() },
  response: {
    errorCode: int16(),
    errorMessage: string({ nullableSince: 0 }),
    authBytes: bytes(),
    sessionLifetimeMs: int64({ since: 1, default: 0, ignorable: true })
  }
})
