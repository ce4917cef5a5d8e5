/** Who makes a request, as every layer from the gateways down sees it. Main thread; given out by the key ring. */

/** What a key may do with the topics of a rule: each includes the one before. */
export const grantActions = ['read', 'write', 'admin'] as const
export type GrantAction = (typeof grantActions)[number]

export interface Principal {
  /** `key_…`; 'anonymous' while authentication is off. Owns producer ids and groups. */
  readonly keyId: string
  /** True once the key was revoked: nothing more is done for it, also not for what it asked before. */
  readonly isRevoked: boolean
  /** Admin on `*`. */
  readonly isAdmin: boolean
  /** Whether a grant covers the name, whatever exists. Admin on a prefix counts as write (spec 2.9). */
  mayRead(name: string): boolean
  mayWrite(name: string): boolean
  /** Byte quotas of the key, above 0; null or absent: none (spec 2.11). */
  readonly produceBytesPerSec?: number | null
  readonly consumeBytesPerSec?: number | null
}

/** Everybody, while authentication is off. */
export const anonymous: Principal = {
  keyId: 'anonymous',
  isRevoked: false,
  isAdmin: true,
  mayRead: () => true,
  mayWrite: () => true,
  produceBytesPerSec: null,
  consumeBytesPerSec: null
}
