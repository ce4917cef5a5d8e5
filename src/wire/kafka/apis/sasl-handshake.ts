/** SaslHandshake (17). After version 0 the tokens follow without headers, each behind its size. Pure, any thread. */
import { apiOf } from '../message.ts'
import { arrayOf, int16, string } from '../schema.ts'

export const saslHandshake = apiOf('SaslHandshake', {
  key: 17,
  first: 0,
  last: 1,
  request: { mechanism: string() },
  response: { errorCode: int16(), mechanisms: arrayOf(string()) }
})
