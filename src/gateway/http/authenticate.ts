/**
 * Who sends a request, by its headers alone (spec 2.3 to 2.6). Main thread. Secrets are handed on to the key ring and kept
 * nowhere: no error, no log line has one.
 *
 *   | Authorization         | X-Es-Key | the secret is                                  |
 *   | `Bearer ` and a text  | any      | that text                                      |
 *   | `Basic `, base64      | any      | on the routes for Confluent's clients the password; the user is not looked at |
 *   | anything else         | any      | none: 401, a header that is there wins         |
 *   | absent                | present  | that of X-Es-Key                               |
 *   | absent                | absent   | none: 401                                      |
 */
import { BrokerError } from '../../model/errors.ts'
import type { KeyUseCases } from '../../model/keys.ts'
import { anonymous, type Principal } from '../../model/principal.ts'
import { isConfluentPath } from './confluent/face.ts'
import type { RequestHead } from './engines/engine.ts'

/** As it stands, with one space. */
const SCHEME = 'Bearer '
/** As in RFC 7617. */
const BASIC = /^basic +([a-z\d+/]+={0,2})$/i

/** Who sends no key where none is needed: may look at nothing that needs one. */
const nobody: Principal = {
  ...anonymous,
  keyId: 'nobody',
  isAdmin: false,
  mayRead: () => false,
  mayWrite: () => false
}

/** The headers that name a key, and the path, by which it is known how they may. */
export type Credentials = Pick<RequestHead, 'authorization' | 'apiKey' | 'path'>

/** @throws BrokerError UNAUTHENTICATED, KEY_REVOKED */
export function authenticate(head: Credentials, keys: Pick<KeyUseCases, 'principalOf'>): Principal {
  const who = keys.principalOf(secretOf(head))
  if (who === null) throw refused('the secret is that of no key')
  if (who.isRevoked) throw new BrokerError('KEY_REVOKED')
  return who
}

/** The same where no key is needed: without a right one it is nobody. */
export function identify(head: Credentials, keys: Pick<KeyUseCases, 'principalOf'>): Principal {
  try {
    return authenticate(head, keys)
  } catch (error) {
    if (error instanceof BrokerError) return nobody
    throw error
  }
}

/** @throws BrokerError UNAUTHENTICATED */
function secretOf({ authorization, apiKey, path }: Credentials): string {
  if (authorization !== null) {
    if (authorization.startsWith(SCHEME)) return authorization.slice(SCHEME.length)
    if (!isConfluentPath(path)) throw refused("the Authorization header is not 'Bearer <secret>'")
    return passwordOf(authorization)
  }
  if (apiKey !== null) return apiKey
  const basic = isConfluentPath(path) ? ', or by Basic, as the password of any user' : ''
  throw refused(`send 'Authorization: Bearer <secret>' or 'X-Es-Key: <secret>'${basic}`)
}

/** @throws BrokerError UNAUTHENTICATED */
function passwordOf(authorization: string): string {
  const [, token = ''] = BASIC.exec(authorization) ?? []
  const pair = Buffer.from(token, 'base64').toString('utf8')
  const colon = pair.indexOf(':')
  if (colon >= 0) return pair.slice(colon + 1)
  throw refused("the Authorization header is neither 'Bearer <secret>' nor 'Basic <base64 of user:secret>'")
}

function refused(problem: string): BrokerError {
  return new BrokerError('UNAUTHENTICATED', { problem })
}
