/** Keys in memory for tests of the gateways: a secret is its own key, and a test says what it may do. */
import { BrokerError } from '../../../src/model/errors.ts'
import type { CreateKeyRequest, KeyDescription, KeyUseCases } from '../../../src/model/keys.ts'
import type { Principal } from '../../../src/model/principal.ts'

export interface FakePrincipal extends Principal {
  isRevoked: boolean
}

export class FakeKeys implements KeyUseCases {
  readonly created: CreateKeyRequest[] = []
  readonly #bySecret = new Map<string, FakePrincipal>()

  /** A key with that secret that may read and write the topic alone. */
  add(secret: string, topic: string): FakePrincipal {
    const may = (name: string): boolean => name === topic
    const key = { keyId: `key_${secret}`, isRevoked: false, isAdmin: false, mayRead: may, mayWrite: may }
    this.#bySecret.set(secret, key)
    return key
  }

  principalOf(secret: string): Principal | null {
    return this.#bySecret.get(secret) ?? null
  }

  scramKeyOf(): null {
    return null
  }

  create(_who: Principal, request: CreateKeyRequest): Promise<{ key: KeyDescription; secret: string }> {
    this.created.push(request)
    return Promise.resolve({
      key: { ...request, keyId: 'key_000000000001', createdAtMs: 1, isDisabled: false },
      secret: 'esk_x'
    })
  }

  list(): KeyDescription[] {
    return []
  }

  revoke(_who: Principal, keyId: string): Promise<void> {
    return Promise.reject(new BrokerError('KEY_NOT_FOUND', { key: keyId }))
  }
}
