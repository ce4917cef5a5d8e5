/**
 * Secrets of keys: made here, and turned into what may be kept of them. Main thread; the slow part runs off it.
 *
 * A secret has 256 random bits, so its plain SHA-256 tells nothing: nobody tries 2^256 of them. SCRAM asks for a salted and
 * repeated hash all the same; the least number of repetitions is enough, and cheap for the clients, who repeat it too.
 */
import { createHash, createHmac, hash, pbkdf2, randomBytes, timingSafeEqual } from 'node:crypto'
import { promisify } from 'node:util'
import { SECRET_PREFIX, type ScramVerifier, type SecretTraces } from '../model/keys.ts'

const SECRET_RANDOM_BYTES = 32
const KEY_ID_PREFIX = 'key_'
const KEY_ID_RANDOM_BYTES = 6
const SALT_BYTES = 16
/** The least that RFC 7677 and Kafka's clients accept. */
const SCRAM_ITERATIONS = 4096

const derive = promisify(pbkdf2)

/** A new secret: `esk_` and 43 characters of base64url. */
export function makeSecret(): string {
  return SECRET_PREFIX + randomBytes(SECRET_RANDOM_BYTES).toString('base64url')
}

/** A new key id, which some key may have already. */
export function makeKeyId(): string {
  return KEY_ID_PREFIX + randomBytes(KEY_ID_RANDOM_BYTES).toString('hex')
}

/** What a presented secret is looked up by, in hexadecimal. @cost about 2 µs. */
export function secretHash(secret: string): string {
  return hash('sha256', secret, 'hex')
}

/** Compares two hashes in a time that does not tell where they differ. */
export function isSameHash(a: Uint8Array, hashOfPresented: string): boolean {
  const b = Buffer.from(hashOfPresented, 'hex')
  return a.length === b.length && timingSafeEqual(a, b)
}

/** What is kept of a secret. @cost some milliseconds, on the threads of libuv. */
export async function tracesOf(secret: string): Promise<SecretTraces> {
  const [scramSha256, scramSha512] = await Promise.all([verifierOf(secret, 'sha256'), verifierOf(secret, 'sha512')])
  return { sha256: createHash('sha256').update(secret).digest(), scramSha256, scramSha512 }
}

/** The verifier of RFC 5802, section 3. Secrets are ASCII, which SASLprep leaves as it is. */
async function verifierOf(secret: string, digest: 'sha256' | 'sha512'): Promise<ScramVerifier> {
  const salt = randomBytes(SALT_BYTES)
  const digestBytes = digest === 'sha256' ? 32 : 64
  const salted = await derive(secret, salt, SCRAM_ITERATIONS, digestBytes, digest)
  const clientKey = createHmac(digest, salted).update('Client Key').digest()
  const storedKey = createHash(digest).update(clientKey).digest()
  const serverKey = createHmac(digest, salted).update('Server Key').digest()
  return { salt, iterations: SCRAM_ITERATIONS, storedKey, serverKey }
}
