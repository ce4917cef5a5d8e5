/**
 * API keys as every layer sees them: what a key is, what is kept of its secret, and the use cases. Main thread; the store
 * thread has the same shapes.
 *
 * Invariant: a secret exists twice, in the answer that made it and with its owner. Nothing here can be turned back into it.
 */
import type { GrantAction, Principal } from './principal.ts'

/** What every secret begins with. */
export const SECRET_PREFIX = 'esk_'

/** What one rule of a key lets it do, with which topics. */
export interface GrantRule {
  readonly action: GrantAction
  /** `*`, or a name: it covers that name, and those that go on behind a separator (control/key-rules.ts). */
  readonly topicPrefix: string
}

/** A key without anything of its secret. */
export interface KeyDescription {
  /** `key_` and 12 hexadecimal digits. Never given twice. */
  readonly keyId: string
  /** For people; several keys may have one name. */
  readonly name: string
  readonly rules: readonly GrantRule[]
  /** null: unlimited. */
  readonly produceBytesPerSec: number | null
  readonly consumeBytesPerSec: number | null
  /** Unix ms. */
  readonly createdAtMs: number
  /** It was revoked, for good. */
  readonly isDisabled: boolean
}

/** What a SCRAM server keeps of a secret (RFC 5802): enough to recognise it, useless to pretend to know it. */
export interface ScramVerifier {
  readonly salt: Uint8Array
  readonly iterations: number
  readonly storedKey: Uint8Array
  readonly serverKey: Uint8Array
}

export const scramDigests = ['sha256', 'sha512'] as const
export type ScramDigest = (typeof scramDigests)[number]

/** What a SCRAM server needs of a key. */
export interface ScramKey {
  readonly who: Principal
  readonly verifier: ScramVerifier
}

/** What is kept of a secret. */
export interface SecretTraces {
  /** SHA-256 of the whole secret: what a presented one is looked up by. The secret is random, so nobody finds it by guessing. */
  readonly sha256: Uint8Array
  readonly scramSha256: ScramVerifier
  readonly scramSha512: ScramVerifier
}

/** A key as the store has it. */
export interface StoredKey extends KeyDescription {
  readonly traces: SecretTraces
}

/** A key that is asked for; the types of its fields were checked. */
export interface CreateKeyRequest {
  readonly name: string
  readonly rules: readonly GrantRule[]
  /** null or 0: unlimited. */
  readonly produceBytesPerSec: number | null
  readonly consumeBytesPerSec: number | null
}

/** Implemented by broker/keys.ts. Promises reject with BrokerError. */
export interface KeyUseCases {
  /**
   * Whose secret that is; null: nobody's. A revoked key is told apart, by its isRevoked.
   * @cost one SHA-256.
   */
  principalOf(secret: string): Principal | null
  /** To recognise, by SCRAM, who has the secret of that key; null: there is no such key. Revoked ones as above. */
  scramKeyOf(keyId: string, digest: ScramDigest): ScramKey | null
  /** The only time that the secret is told. Resolves when the key is durable. @fails FORBIDDEN, FIELD_INVALID, NAME_INVALID, KEYS_TOO_MANY */
  create(who: Principal, request: CreateKeyRequest): Promise<{ readonly key: KeyDescription; readonly secret: string }>
  /** Revoked ones too, oldest first. @throws BrokerError FORBIDDEN */
  list(who: Principal): KeyDescription[]
  /** Resolves when that is durable and nothing more is done for the key. Again: nothing changes. @fails FORBIDDEN, KEY_NOT_FOUND */
  revoke(who: Principal, keyId: string): Promise<void>
}
