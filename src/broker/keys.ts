/** API keys: create, list, revoke. Each change is durable before it is answered. Main thread. */
import type { Clock } from '../base/clock.ts'
import { decideKey, makeKey, type KeyRing } from '../control/keys.ts'
import type { KeyChange } from '../control/store-image.ts'
import { authorise } from '../model/access.ts'
import type { CreateKeyRequest, KeyDescription, KeyUseCases, ScramDigest, ScramKey } from '../model/keys.ts'
import type { Principal } from '../model/principal.ts'
import type { Store } from '../store/store.ts'

export interface KeyParts {
  readonly ring: KeyRing
  readonly store: Store
  readonly clock: Clock
  /** Called when keys have stopped working. */
  readonly onRevoked: () => void
}

export class KeyCommands implements KeyUseCases {
  readonly #parts: KeyParts
  /** Keys that are being made: they count for the limit. */
  #beingMade = 0

  constructor(parts: KeyParts) {
    this.#parts = parts
  }

  principalOf(secret: string): Principal | null {
    return this.#parts.ring.principalOf(secret)
  }

  scramKeyOf(keyId: string, digest: ScramDigest): ScramKey | null {
    return this.#parts.ring.scramKeyOf(keyId, digest)
  }

  async create(who: Principal, request: CreateKeyRequest): Promise<{ key: KeyDescription; secret: string }> {
    authorise(who, 'manage keys')
    const { ring, clock } = this.#parts
    const wanted = decideKey(request, ring.validCount + this.#beingMade)
    this.#beingMade++
    try {
      const { key, secret } = await makeKey(wanted, keyId => ring.has(keyId), clock.nowMs())
      // Whoever asked for it may have been revoked while its secret was worked on.
      authorise(who, 'manage keys')
      await this.#carryOut([{ kind: 'key-created', key }])
      const { traces: _kept, ...description } = key
      return { key: description, secret }
    } finally {
      this.#beingMade--
    }
  }

  list(who: Principal): KeyDescription[] {
    authorise(who, 'manage keys')
    return this.#parts.ring.list()
  }

  async revoke(who: Principal, keyId: string): Promise<void> {
    authorise(who, 'manage keys')
    const changes = this.#parts.ring.decideRevoke(keyId)
    if (changes.length > 0) await this.#carryOut(changes)
  }

  /** In memory only what is durable: a key that did not get there must not work, nor come back after a restart. */
  async #carryOut(changes: readonly KeyChange[]): Promise<void> {
    const { ring, store, onRevoked } = this.#parts
    await store.commit(changes)
    for (const change of changes) ring.apply(change)
    if (changes.some(({ kind }) => kind === 'key-revoked')) onRevoked()
  }
}
