/**
 * The mechanisms by which a client says whose key it has: user is the id of the key, password its secret. Main thread.
 * A refusal tells nothing of which of both was wrong.
 *
 *   PLAIN (RFC 4616)                       the secret itself: over TLS, or on one machine
 *   SCRAM-SHA-256, SCRAM-SHA-512 (RFC 5802)  a proof of it, without channel binding
 *
 *   client-first   n,,n=user,r=nonce                 server-first   r=nonce and more,s=salt,i=iterations
 *   client-final   c=biws,r=nonce and more,p=proof   server-final   v=signature
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { KeyUseCases, ScramDigest, ScramKey } from '../../model/keys.ts'
import type { SaslExchange, SaslStep } from './sasl-session.ts'

/** By the names that clients call them. */
export const mechanisms: readonly string[] = ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512']

type Keys = Pick<KeyUseCases, 'principalOf' | 'scramKeyOf'>

/** @returns an exchange of tokens of that mechanism, or null: it is not known here. */
export function exchangeOf(mechanism: string, keys: Keys): SaslExchange | null {
  if (mechanism === 'PLAIN') return new PlainExchange(keys)
  if (mechanism === 'SCRAM-SHA-256') return new ScramExchange(keys, 'sha256')
  return mechanism === 'SCRAM-SHA-512' ? new ScramExchange(keys, 'sha512') : null
}

const NO_BYTES: Buffer = Buffer.alloc(0)
const refused = (told: string): SaslStep => ({ kind: 'refused', told })
/** What anybody hears whose key or secret is wrong. */
const notKnown = refused('the user is the id of no key, or the password not its secret')
const keyRevoked = refused('key revoked')

class PlainExchange implements SaslExchange {
  readonly mechanism = 'PLAIN'
  user: string | null = null
  readonly #keys: Keys

  constructor(keys: Keys) {
    this.#keys = keys
  }

  /** authorization id NUL user NUL password */
  take(token: Buffer): SaslStep {
    const [authorizationId, user, password, ...more] = token.toString('utf8').split('\0')
    if (user === undefined || password === undefined || more.length > 0) {
      return refused('a token of PLAIN has three parts')
    }
    this.user = user
    if (authorizationId !== '' && authorizationId !== user) return refused('nobody may act for another key')
    const who = this.#keys.principalOf(password)
    if (who === null || who.keyId !== user) return notKnown
    return who.isRevoked ? keyRevoked : { kind: 'done', who, reply: NO_BYTES }
  }
}

const NONCE_BYTES = 18

/** What the first tokens have settled. */
interface ScramBegun {
  readonly key: ScramKey
  /** How the client's first token began: what it says of channel binding. */
  readonly gs2: string
  readonly nonce: string
  /** Both first tokens, as they are signed. */
  readonly said: string
}

class ScramExchange implements SaslExchange {
  readonly mechanism: string
  user: string | null = null
  readonly #keys: Keys
  readonly #digest: ScramDigest
  /** After the first token. */
  #begun: ScramBegun | null = null

  constructor(keys: Keys, digest: ScramDigest) {
    this.#keys = keys
    this.#digest = digest
    this.mechanism = digest === 'sha256' ? 'SCRAM-SHA-256' : 'SCRAM-SHA-512'
  }

  take(token: Buffer): SaslStep {
    const text = token.toString('utf8')
    return this.#begun === null ? this.#takeFirst(text) : this.#takeFinal(text, this.#begun)
  }

  #takeFirst(text: string): SaslStep {
    const match = /^([ny],(?:a=([^,]*))?,)(n=([^,]*),r=([\x21-\x2b\x2d-\x7e]+)(?:,.*)?)$/.exec(text)
    if (match === null) return refused('not a first token of SCRAM without channel binding')
    const [, gs2 = '', acting, bare = '', user = '', clientNonce = ''] = match
    this.user = nameOf(user)
    if (acting !== undefined && acting !== user) return refused('nobody may act for another key')
    const key = this.#keys.scramKeyOf(this.user, this.#digest)
    if (key === null) return notKnown
    const { salt, iterations } = key.verifier
    const nonce = clientNonce + randomBytes(NONCE_BYTES).toString('base64url')
    const reply = `r=${nonce},s=${Buffer.from(salt).toString('base64')},i=${iterations}`
    this.#begun = { key, gs2, nonce, said: `${bare},${reply}` }
    return { kind: 'more', reply: Buffer.from(reply) }
  }

  #takeFinal(text: string, { key, gs2, nonce, said }: ScramBegun): SaslStep {
    const match = /^(c=([^,]*),r=([^,]*)(?:,.*)?),p=([^,]*)$/.exec(text)
    if (match === null) return refused('not a final token of SCRAM')
    const [, withoutProof = '', binding = '', finalNonce = '', proof = ''] = match
    // librdkafka before 2.6.1 repeats its own part before the nonce. It is signed all the same.
    if (!finalNonce.endsWith(nonce)) return refused('the nonce is not that of this exchange')
    if (Buffer.from(binding, 'base64').toString('utf8') !== gs2)
      return refused('the channel binding is not as it began')
    const message = `${said},${withoutProof}`
    if (!this.#isProof(Buffer.from(proof, 'base64'), key, message)) return notKnown
    if (key.who.isRevoked) return keyRevoked
    const signature = createHmac(this.#digest, key.verifier.serverKey).update(message).digest('base64')
    return { kind: 'done', who: key.who, reply: Buffer.from(`v=${signature}`) }
  }

  /** A proof is ClientKey xor ClientSignature; what is kept is the hash of the ClientKey. */
  #isProof(proof: Buffer, { verifier: { storedKey } }: ScramKey, message: string): boolean {
    const signature = createHmac(this.#digest, storedKey).update(message).digest()
    if (proof.length !== signature.length) return false
    const clientKey = proof.map((byte, i) => byte ^ (signature[i] as number))
    return timingSafeEqual(createHash(this.#digest).update(clientKey).digest(), storedKey)
  }
}

/** A user as RFC 5802 writes it. */
function nameOf(user: string): string {
  return user.replaceAll('=2C', ',').replaceAll('=3D', '=')
}
