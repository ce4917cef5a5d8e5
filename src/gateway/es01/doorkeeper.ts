/**
 * Who a hello says it is (spec 11.2, 11.3). Main thread. Tokens are secrets of keys: they are handed to the key ring and kept
 * nowhere.
 *
 *   | auth     | token                       | status         |
 *   | disabled | any                         | ok, anonymous  |
 *   | required | empty, or not UTF-8         | 3 authRequired |
 *   | required | of no key, or a revoked one | 2 authFailed   |
 *   | required | of a key                    | ok, that key   |
 */
import { isUtf8 } from 'node:buffer'
import type { KeyUseCases } from '../../model/keys.ts'
import { anonymous, type Principal } from '../../model/principal.ts'
import { helloStatuses } from '../../wire/es01/handshake.ts'

/** Either who it is, or what the reply to the hello says. */
export type Admission =
  | { readonly who: Principal }
  | {
      readonly who: null
      readonly status: typeof helloStatuses.authFailed | typeof helloStatuses.authRequired
      readonly message: string
    }

export class Doorkeeper {
  readonly #keys: Pick<KeyUseCases, 'principalOf'>
  readonly #isOpen: boolean

  constructor(auth: 'disabled' | 'required', keys: Pick<KeyUseCases, 'principalOf'>) {
    this.#keys = keys
    this.#isOpen = auth === 'disabled'
  }

  /** @param token borrowed until return. */
  admit(token: Buffer): Admission {
    if (this.#isOpen) return { who: anonymous }
    if (token.length === 0) return refusal(helloStatuses.authRequired, 'the token is empty: send the secret of a key')
    if (!isUtf8(token)) return refusal(helloStatuses.authRequired, 'the token is not UTF-8: send the secret of a key')
    const who = this.#keys.principalOf(token.toString('utf8'))
    if (who === null) return refusal(helloStatuses.authFailed, 'the token is the secret of no key')
    return who.isRevoked ? refusal(helloStatuses.authFailed, 'key revoked') : { who }
  }
}

function refusal(status: (Admission & { who: null })['status'], message: string): Admission {
  return { who: null, status, message }
}
