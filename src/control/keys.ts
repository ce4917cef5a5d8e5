/**
 * The key ring: all keys in memory, by id and by the hash of their secret, and who they are for the layers below. Main
 * thread only; calls nobody. Decisions give changes; what is committed is applied.
 *
 * Invariants: a key has one principal for as long as the process lives, so whoever holds it sees a revocation at once; a
 * revoked key never comes back; ids and secrets are unique.
 */
import { assert, unreachable } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import type { CreateKeyRequest, GrantRule, KeyDescription, ScramDigest, ScramKey, StoredKey } from '../model/keys.ts'
import { limits } from '../model/limits.ts'
import type { Principal } from '../model/principal.ts'
import { echo } from './echo.ts'
import { checkedKey, grants, isAdministrator } from './key-rules.ts'
import { isSameHash, makeKeyId, makeSecret, secretHash, tracesOf } from './key-secrets.ts'
import type { KeyChange, StoreImage } from './store-image.ts'

/** A key of the ring, and who makes the requests that present its secret. */
class RingKey implements Principal {
  readonly keyId: string
  readonly isAdmin: boolean
  readonly produceBytesPerSec: number | null
  readonly consumeBytesPerSec: number | null
  readonly stored: StoredKey
  isRevoked: boolean
  readonly #rules: readonly GrantRule[]

  constructor(stored: StoredKey) {
    this.stored = stored
    this.keyId = stored.keyId
    this.produceBytesPerSec = stored.produceBytesPerSec
    this.consumeBytesPerSec = stored.consumeBytesPerSec
    this.isRevoked = stored.isDisabled
    this.isAdmin = isAdministrator(stored.rules)
    this.#rules = stored.rules
  }

  mayRead(name: string): boolean {
    return grants(this.#rules, 'read', name)
  }

  mayWrite(name: string): boolean {
    return grants(this.#rules, 'write', name)
  }

  describe(): KeyDescription {
    const { keyId, name, rules, produceBytesPerSec, consumeBytesPerSec, createdAtMs } = this.stored
    return { keyId, name, rules, produceBytesPerSec, consumeBytesPerSec, createdAtMs, isDisabled: this.isRevoked }
  }
}

export class KeyRing {
  /** In the order in which they were made. */
  readonly #byId = new Map<string, RingKey>()
  readonly #byHash = new Map<string, RingKey>()
  #revokedCount = 0

  constructor(image: Pick<StoreImage, 'keys'>) {
    for (const key of image.keys) this.#insert(key)
  }

  /** Revoked ones included. */
  get count(): number {
    return this.#byId.size
  }

  /** Keys that work. */
  get validCount(): number {
    return this.#byId.size - this.#revokedCount
  }

  /** Whether any key that works may do everything. */
  get hasAdministrator(): boolean {
    return [...this.#byId.values()].some(key => key.isAdmin && !key.isRevoked)
  }

  has(keyId: string): boolean {
    return this.#byId.has(keyId)
  }

  /** Whose secret that is, be it of a revoked key; null: nobody's. */
  principalOf(secret: string): Principal | null {
    const hash = secretHash(secret)
    const key = this.#byHash.get(hash)
    // The map compares hashes of secrets, which tell nothing of a secret that is not known; this one tells no time besides.
    return key !== undefined && isSameHash(key.stored.traces.sha256, hash) ? key : null
  }

  /** What recognises the owner of that key by SCRAM, be it a revoked one; null: there is no such key. */
  scramKeyOf(keyId: string, digest: ScramDigest): ScramKey | null {
    const key = this.#byId.get(keyId)
    if (key === undefined) return null
    const { scramSha256, scramSha512 } = key.stored.traces
    return { who: key, verifier: digest === 'sha256' ? scramSha256 : scramSha512 }
  }

  /** All, oldest first. */
  list(): KeyDescription[] {
    return [...this.#byId.values()].map(key => key.describe()).sort((a, b) => a.createdAtMs - b.createdAtMs)
  }

  /**
   * What revoking a key changes: nothing if it is revoked. Beyond a limit the oldest revoked keys are forgotten.
   * @throws BrokerError KEY_NOT_FOUND
   */
  decideRevoke(keyId: string): readonly KeyChange[] {
    const key = this.#byId.get(keyId)
    if (key === undefined) throw new BrokerError('KEY_NOT_FOUND', { key: echo(keyId) })
    if (key.isRevoked) return []
    const surplus = this.#revokedCount + 1 - limits.revokedKeysMax
    const oldest = surplus > 0 ? [...this.#byId.values()].filter(other => other.isRevoked).slice(0, surplus) : []
    return [
      { kind: 'key-revoked', keyId },
      ...oldest.map(other => ({ kind: 'key-forgotten', keyId: other.keyId }) as const)
    ]
  }

  /** Carries out what the store has committed. */
  apply(change: KeyChange): void {
    switch (change.kind) {
      case 'key-created':
        return this.#insert(change.key)
      case 'key-revoked':
        return this.#revoke(change.keyId)
      case 'key-forgotten':
        return this.#forget(change.keyId)
      default:
        unreachable(change)
    }
  }

  #insert(stored: StoredKey): void {
    const hash = Buffer.from(stored.traces.sha256).toString('hex')
    assert(!this.#byId.has(stored.keyId) && !this.#byHash.has(hash), 'ids and secrets of keys are unique')
    const key = new RingKey(stored)
    this.#byId.set(stored.keyId, key)
    this.#byHash.set(hash, key)
    if (key.isRevoked) this.#revokedCount++
  }

  /** Of two revocations at once the second finds it done, or the key forgotten. */
  #revoke(keyId: string): void {
    const key = this.#byId.get(keyId)
    if (key === undefined || key.isRevoked) return
    key.isRevoked = true
    this.#revokedCount++
  }

  #forget(keyId: string): void {
    const key = this.#byId.get(keyId)
    if (key === undefined) return
    assert(key.isRevoked, 'only a revoked key is forgotten')
    this.#byId.delete(keyId)
    this.#byHash.delete(Buffer.from(key.stored.traces.sha256).toString('hex'))
    this.#revokedCount--
  }
}

/**
 * The request of a new key, checked. @param validCount keys that work, or are about to.
 * @throws BrokerError FIELD_INVALID, FIELD_RANGE, NAME_INVALID, KEYS_TOO_MANY
 */
export function decideKey(request: CreateKeyRequest, validCount: number): CreateKeyRequest {
  const wanted = checkedKey(request)
  if (validCount >= limits.keysMax) throw new BrokerError('KEYS_TOO_MANY', { limit: limits.keysMax })
  return wanted
}

/**
 * A key out of a decided request, and its secret, which is told once.
 * @param isTaken whether a key has that id. @cost some milliseconds, off this thread.
 */
export async function makeKey(
  wanted: CreateKeyRequest,
  isTaken: (keyId: string) => boolean,
  nowMs: number
): Promise<{ readonly key: StoredKey; readonly secret: string }> {
  const secret = makeSecret()
  const traces = await tracesOf(secret)
  let keyId = makeKeyId()
  while (isTaken(keyId)) keyId = makeKeyId()
  return { key: { ...wanted, keyId, createdAtMs: nowMs, isDisabled: false, traces }, secret }
}
