/** The key ring: who a secret belongs to, what becomes of them when it is revoked, and what is kept of a secret. */
import assert from 'node:assert/strict'
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { describe, test } from 'node:test'
import { decideKey, KeyRing, makeKey } from '../../../src/control/keys.ts'
import type { CreateKeyRequest, ScramVerifier, StoredKey } from '../../../src/model/keys.ts'
import { limits } from '../../../src/model/limits.ts'

const request: CreateKeyRequest = {
  name: 'orders',
  rules: [{ action: 'write', topicPrefix: 'orders' }],
  produceBytesPerSec: 10,
  consumeBytesPerSec: null
}

const fresh = (changes: Partial<CreateKeyRequest> = {}, nowMs = 1): Promise<{ key: StoredKey; secret: string }> =>
  makeKey({ ...request, ...changes }, () => false, nowMs)

describe('a secret', () => {
  test('is esk_ and 43 characters, and no two are the same', async () => {
    const made = await Promise.all([fresh(), fresh()])
    for (const { key, secret } of made) {
      assert.match(secret, /^esk_[A-Za-z0-9_-]{43}$/)
      assert.match(key.keyId, /^key_[0-9a-f]{12}$/)
    }
    assert.notEqual(made[0]?.secret, made[1]?.secret)
  })

  test('is nowhere in what is kept of it', async () => {
    const { key, secret } = await fresh()
    const kept = JSON.stringify(key, (_, value: unknown) =>
      value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : value
    )
    for (const part of [secret, secret.slice(4), secret.slice(4, 20)]) assert.ok(!kept.includes(part))
    assert.deepEqual(Buffer.from(key.traces.sha256), createHash('sha256').update(secret).digest())
  })

  test('proves itself to its SCRAM verifiers, and another one does not', async () => {
    const { key, secret } = await fresh()
    const { scramSha256, scramSha512 } = key.traces
    assert.ok(scramSha256.iterations >= 4096 && scramSha512.iterations >= 4096)
    assert.notDeepEqual(scramSha256.salt, scramSha512.salt)
    assert.deepEqual([proves(secret, scramSha256, 'sha256'), proves(secret, scramSha512, 'sha512')], [true, true])
    const other = `${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`
    assert.deepEqual([proves(other, scramSha256, 'sha256'), proves(other, scramSha512, 'sha512')], [false, false])
  })
})

describe('a key ring', () => {
  test('knows whose secret it is, with what its rules give, and no other', async () => {
    const { key, secret } = await fresh()
    const ring = new KeyRing({ keys: [key] })
    const who = ring.principalOf(secret)
    assert.ok(who !== null)
    assert.deepEqual(
      [who.keyId, who.isRevoked, who.isAdmin, who.mayWrite('orders.eu'), who.mayRead('orders'), who.mayRead('bills')],
      [key.keyId, false, false, true, true, false]
    )
    for (const wrong of ['', 'esk_', `${secret} `, secret.slice(0, -1), secret.toUpperCase(), key.keyId]) {
      assert.equal(ring.principalOf(wrong), null)
    }
  })

  test('gives one principal for a key, which is revoked for all who hold it', async () => {
    const { key, secret } = await fresh()
    const ring = new KeyRing({ keys: [key] })
    const held = ring.principalOf(secret)
    assert.equal(ring.principalOf(secret), held)
    const changes = ring.decideRevoke(key.keyId)
    assert.deepEqual(changes, [{ kind: 'key-revoked', keyId: key.keyId }])
    assert.equal(held?.isRevoked, false, 'a decision changes nothing')
    for (const change of changes) ring.apply(change)
    assert.equal(held?.isRevoked, true)
    assert.equal(ring.principalOf(secret)?.isRevoked, true)
    assert.deepEqual(ring.decideRevoke(key.keyId), [], 'again, nothing changes')
    assert.deepEqual([ring.count, ring.validCount, ring.list()[0]?.isDisabled], [1, 0, true])
  })

  test('lists keys oldest first, without anything of their secrets', async () => {
    const [{ key: late }, { key: early }] = [await fresh({ name: 'late' }, 20), await fresh({ name: 'early' }, 10)]
    const listed = new KeyRing({ keys: [late, early] }).list()
    const { traces: _kept, ...description } = early
    assert.deepEqual(listed[0], description)
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['early', 'late']
    )
  })

  test('refuses to revoke what it does not have, and names it', () => {
    const ring = new KeyRing({ keys: [] })
    assert.throws(() => ring.decideRevoke('key_1'), { code: 'KEY_NOT_FOUND', message: "no key 'key_1'" })
  })

  test('takes no more keys than the limit of those that work', () => {
    assert.deepEqual(decideKey(request, limits.keysMax - 1), request)
    assert.throws(() => decideKey(request, limits.keysMax), { code: 'KEYS_TOO_MANY' })
  })

  test('forgets the oldest revoked key when there are too many of them', async () => {
    const { key, secret } = await fresh()
    const revoked = Array.from({ length: limits.revokedKeysMax }, (_, i) => {
      const sha256 = createHash('sha256').update(String(i)).digest()
      return { ...key, keyId: `key_${i}`, isDisabled: true, traces: { ...key.traces, sha256 } }
    })
    const ring = new KeyRing({ keys: [...revoked, key] })
    const held = ring.principalOf(secret)
    const changes = ring.decideRevoke(key.keyId)
    assert.deepEqual(changes, [
      { kind: 'key-revoked', keyId: key.keyId },
      { kind: 'key-forgotten', keyId: 'key_0' }
    ])
    for (const change of changes) ring.apply(change)
    assert.deepEqual([ring.has('key_0'), ring.has(key.keyId), ring.count], [false, true, limits.revokedKeysMax])
    assert.equal(ring.principalOf('0'), null, 'its secret is that of no key any more')
    assert.equal(held?.isRevoked, true)
  })
})

/** What a SCRAM server does with a client's proof (RFC 5802, section 3), here for a proof made on the spot. */
function proves(secret: string, verifier: ScramVerifier, digest: 'sha256' | 'sha512'): boolean {
  const hmac = (key: Uint8Array, text: string): Buffer => createHmac(digest, key).update(text).digest()
  const hash = (bytes: Buffer): Buffer => createHash(digest).update(bytes).digest()
  const xor = (a: Buffer, b: Uint8Array): Buffer => Buffer.from(a.map((byte, i) => byte ^ (b[i] ?? 0)))
  const length = digest === 'sha256' ? 32 : 64
  const salted = pbkdf2Sync(secret, verifier.salt, verifier.iterations, length, digest)
  const clientKey = hmac(salted, 'Client Key')
  const message = 'n=key,r=client,r=clientserver,s=salt,i=4096,c=biws,r=clientserver'
  const proof = xor(clientKey, hmac(hash(clientKey), message))
  const recovered = xor(proof, hmac(verifier.storedKey, message))
  const isServerKey = hmac(salted, 'Server Key').equals(verifier.serverKey)
  return isServerKey && hash(recovered).equals(verifier.storedKey)
}
