/** What is told of keys, and when: nothing before it is durable. The store is played by the test. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { KeyCommands } from '../../../src/broker/keys.ts'
import { KeyRing } from '../../../src/control/keys.ts'
import type { StoreChange } from '../../../src/control/store-image.ts'
import { BrokerError } from '../../../src/model/errors.ts'
import type { CreateKeyRequest } from '../../../src/model/keys.ts'
import { limits } from '../../../src/model/limits.ts'
import { anonymous } from '../../../src/model/principal.ts'
import { ManualClock } from '../../support/log-harness.ts'
import { waitFor } from '../../support/broker.ts'
import { emptyImage } from '../control/topics.ts'

const request: CreateKeyRequest = {
  name: 'n',
  rules: [{ action: 'read', topicPrefix: '*' }],
  produceBytesPerSec: 0,
  consumeBytesPerSec: 5
}

class Stage {
  readonly ring = new KeyRing(emptyImage)
  readonly commits: { changes: readonly StoreChange[]; settle: (error?: BrokerError) => void }[] = []
  readonly keys: KeyCommands
  /** Times that it was said that keys had stopped working. */
  revocations = 0

  constructor() {
    const commit = (changes: readonly StoreChange[]): Promise<void> =>
      new Promise((resolve, reject) => {
        this.commits.push({ changes, settle: error => (error === undefined ? resolve() : reject(error)) })
      })
    const store = { image: emptyImage, commit, close: () => Promise.resolve() }
    this.keys = new KeyCommands({
      ring: this.ring,
      store,
      clock: new ManualClock(),
      onRevoked: () => void this.revocations++
    })
  }

  async settle(error?: BrokerError): Promise<readonly StoreChange[]> {
    const commit = await waitFor('a commit', () => this.commits.shift())
    commit.settle(error)
    return commit.changes
  }

  async made(): Promise<{ keyId: string; secret: string }> {
    const making = this.keys.create(anonymous, request)
    await this.settle()
    const { key, secret } = await making
    return { keyId: key.keyId, secret }
  }
}

describe('a key that is made', () => {
  test('works when it is durable and not before, and is told without anything of its secret but the secret', async () => {
    const stage = new Stage()
    const making = stage.keys.create(anonymous, request)
    await waitFor('the commit', () => stage.commits.length === 1)
    assert.equal(stage.ring.count, 0)
    await stage.settle()
    const { key, secret } = await making
    const { keyId, createdAtMs, ...rest } = key
    assert.deepEqual(rest, { ...request, produceBytesPerSec: null, isDisabled: false })
    assert.equal(stage.keys.principalOf(secret)?.keyId, keyId)
    assert.deepEqual(stage.keys.list(anonymous), [key])
    assert.ok(createdAtMs > 0)
  })

  test('that could not be stored does not work', async () => {
    const stage = new Stage()
    const making = stage.keys.create(anonymous, request)
    await stage.settle(new BrokerError('DISK_FULL'))
    await assert.rejects(making, { code: 'DISK_FULL' })
    assert.equal(stage.ring.count, 0)
  })

  test('is none if whoever asked for it was revoked meanwhile', async () => {
    const stage = new Stage()
    const who = { ...anonymous, isRevoked: false }
    const making = stage.keys.create(who, request)
    who.isRevoked = true
    await assert.rejects(making, { code: 'KEY_REVOKED' })
    assert.equal(stage.commits.length, 0)
  })

  test('counts for the limit while it is made', async () => {
    const stage = new Stage()
    const makings = Array.from({ length: 3 }, () => stage.keys.create(anonymous, request))
    Object.defineProperty(stage.ring, 'validCount', { value: limits.keysMax - 3 })
    await assert.rejects(stage.keys.create(anonymous, request), { code: 'KEYS_TOO_MANY' })
    for (const _making of makings) await stage.settle()
    await Promise.all(makings)
  })

  test('takes an administrator, as does all else', async () => {
    const stage = new Stage()
    const who = { ...anonymous, isAdmin: false }
    await assert.rejects(stage.keys.create(who, request), { code: 'FORBIDDEN' })
    await assert.rejects(stage.keys.revoke(who, 'key_1'), { code: 'FORBIDDEN' })
    assert.throws(() => stage.keys.list(who), { code: 'FORBIDDEN' })
    assert.equal(stage.commits.length, 0)
  })
})

describe('a revocation', () => {
  test('holds when it is durable; one that could not be stored does not', async () => {
    const stage = new Stage()
    const { keyId, secret } = await stage.made()
    const who = stage.keys.principalOf(secret)
    const failing = stage.keys.revoke(anonymous, keyId)
    await stage.settle(new BrokerError('DISK_FULL'))
    await assert.rejects(failing, { code: 'DISK_FULL' })
    assert.deepEqual([who?.isRevoked, stage.revocations], [false, 0])
    const revoking = stage.keys.revoke(anonymous, keyId)
    assert.deepEqual(await stage.settle(), [{ kind: 'key-revoked', keyId }])
    await revoking
    assert.deepEqual([who?.isRevoked, stage.revocations], [true, 1])
  })

  test('may come twice at once, and again: each is answered when it holds', async () => {
    const stage = new Stage()
    const { keyId } = await stage.made()
    const both = [stage.keys.revoke(anonymous, keyId), stage.keys.revoke(anonymous, keyId)]
    await stage.settle()
    await stage.settle()
    await Promise.all(both)
    await stage.keys.revoke(anonymous, keyId)
    assert.equal(stage.commits.length, 0)
    assert.deepEqual([stage.ring.count, stage.ring.validCount], [1, 0])
  })

  test('of a key that revokes itself is answered', async () => {
    const stage = new Stage()
    const { keyId, secret } = await stage.made()
    const admin = Object.create(stage.keys.principalOf(secret), { isAdmin: { value: true } }) as typeof anonymous
    const revoking = stage.keys.revoke(admin, keyId)
    await stage.settle()
    await revoking
    await assert.rejects(stage.keys.revoke(admin, keyId), { code: 'KEY_REVOKED' })
  })
})
