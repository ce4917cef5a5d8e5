/** API keys of a real broker: their endpoints, the first one, what outlives a restart, and what never reaches the log. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import {
  firstKey,
  makeTestKey,
  readBootstrapSecret,
  revokeKey,
  startGuarded,
  type KeyAnswer
} from '../support/access.ts'
import { spawnBroker, startBroker } from '../support/broker.ts'
import { openRaw } from '../support/es01-session.ts'
import { assertRefused, HttpApi, parse } from '../support/http-api.ts'
import { failToStart, smallFlags } from '../support/start-failure.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const required = { '--auth': 'required' }

for (const engine of ['uws', 'node'] as const) {
  test(`the key endpoints, on ${engine}`, async t => {
    const { admin } = await startGuarded(t, { variant: { engine, shards: 1 } })
    const { api } = admin

    await t.test('answer 201 with the key and, once, its secret', async () => {
      const acls = [
        { action: 'write', topic_prefix: 'orders.' },
        { action: 'read', topic_prefix: '*' }
      ]
      const before = Date.now()
      const answer = await api.post('/admin/keys', {
        name: 'orders-writer',
        acls,
        produce_bytes_per_sec: 1_048_576,
        consume_bytes_per_sec: 0
      })
      assert.equal(answer.status, 201)
      const { key, secret } = parse<{ key: KeyAnswer; secret: string }>(answer)
      assert.match(secret, /^esk_[A-Za-z0-9_-]{43}$/)
      const { key_id, created_at_ms, ...rest } = key
      assert.match(key_id, /^key_[0-9a-f]{12}$/)
      assert.ok(created_at_ms >= before && created_at_ms <= Date.now())
      const quotas = { produce_bytes_per_sec: 1_048_576, consume_bytes_per_sec: null }
      assert.deepEqual(rest, { name: 'orders-writer', acls, ...quotas, disabled: false })
      assert.equal(
        Object.keys(key).join(),
        'key_id,name,acls,produce_bytes_per_sec,consume_bytes_per_sec,created_at_ms,disabled'
      )
      const list = await api.get('/admin/keys')
      assert.deepEqual(parse<{ keys: KeyAnswer[] }>(list).keys.at(-1), key)
      assert.ok(!list.text.includes(secret) && !list.text.includes('secret'))
    })

    await t.test('list keys in the order of their making, revoked ones too', async () => {
      const { id } = await makeTestKey(api)
      await makeTestKey(api, 'read:a')
      await revokeKey(api, id)
      const { keys } = parse<{ keys: KeyAnswer[] }>(await api.get('/admin/keys'))
      assert.deepEqual(
        keys.map(({ name, disabled }) => [name, disabled]),
        [
          ['bootstrap-admin', false],
          ['orders-writer', false],
          ['none', true],
          ['read:a', false]
        ]
      )
      assert.deepEqual(
        keys.map(key => key.created_at_ms),
        keys.map(key => key.created_at_ms).sort((a, b) => a - b)
      )
    })

    await t.test('revoke with 204, again with 204, and what is not there with 404', async () => {
      const { id, api: revoked } = await makeTestKey(api, 'read:*')
      assert.equal((await revoked.get('/topics')).status, 200)
      await revokeKey(api, id)
      await revokeKey(api, id)
      assertRefused(await revoked.get('/topics'), 401, 'KEY_REVOKED')
      assertRefused(await api.call('DELETE', '/admin/keys/key_000000000000'), 404, 'KEY_NOT_FOUND', [
        'key_000000000000'
      ])
      assertRefused(await api.call('DELETE', '/admin/keys/%2e%2e%2fstore.db'), 404, 'KEY_NOT_FOUND')
    })

    await t.test('refuse a key that may not be, and make none', async () => {
      const { keys: before } = parse<{ keys: KeyAnswer[] }>(await api.get('/admin/keys'))
      const rule = { action: 'read', topic_prefix: '*' }
      const cases: readonly (readonly [object, string])[] = [
        [{ name: '', acls: [] }, 'FIELD_INVALID'],
        [{ name: 'é'.repeat(101), acls: [] }, 'FIELD_INVALID'],
        [{ name: 'k', acls: new Array(101).fill(rule) }, 'FIELD_INVALID'],
        [{ name: 'k', acls: [{ ...rule, action: 'own' }] }, 'FIELD_INVALID'],
        [{ name: 'k', acls: [{ ...rule, topic_prefix: '' }] }, 'NAME_INVALID'],
        [{ name: 'k', acls: [{ ...rule, topic_prefix: 'a/b' }] }, 'NAME_INVALID']
      ]
      for (const [body, code] of cases) assertRefused(await api.post('/admin/keys', body), 400, code)
      assert.equal(parse<{ keys: KeyAnswer[] }>(await api.get('/admin/keys')).keys.length, before.length)
      const name = 'é "name"\n🔑'
      const most = await api.post('/admin/keys', { name, acls: new Array(100).fill(rule) })
      assert.equal(parse<{ key: KeyAnswer }>(most).key.name, name)
    })
  })
}

test('the first start that asks for keys', async t => {
  const dataDir = temporaryDirectory(t)
  const first = await startBroker(t, { dataDir, flags: required })
  const path = join(dataDir, 'bootstrap.key')
  const secret = readBootstrapSecret(dataDir)

  await t.test('makes an administrator, and its secret a file for the owner alone, without a newline', async () => {
    assert.match(secret, /^esk_[A-Za-z0-9_-]{43}$/)
    assert.equal(statSync(path).mode & 0o777, 0o600)
    const { keys } = parse<{ keys: KeyAnswer[] }>(await new HttpApi(first.url, secret).get('/admin/keys'))
    assert.deepEqual(
      keys.map(({ name, acls }) => ({ name, acls })),
      [{ name: 'bootstrap-admin', acls: [{ action: 'admin', topic_prefix: '*' }] }]
    )
  })

  await t.test('is the only one that does, also when the file is gone and every key revoked', async t => {
    rmSync(path)
    const { api, id } = { api: new HttpApi(first.url, secret), id: await idOf(first.url, secret) }
    await revokeKey(api, id)
    assertRefused(await api.get('/topics'), 401, 'KEY_REVOKED')
    await first.stop()
    const second = await startBroker(t, { dataDir, flags: required })
    assert.equal(existsSync(path), false)
    assertRefused(await new HttpApi(second.url, secret).get('/topics'), 401, 'KEY_REVOKED')
    await second.stop()
  })
})

async function idOf(url: string, secret: string): Promise<string> {
  const { keys } = parse<{ keys: KeyAnswer[] }>(await new HttpApi(url, secret).get('/admin/keys'))
  return keys[0]?.key_id ?? ''
}

test('keys that were made while authentication was off are those that count when it is turned on', async t => {
  const dataDir = temporaryDirectory(t)
  const open = await startBroker(t, { dataDir })
  const admin = await makeTestKey(new HttpApi(open.url), 'admin:*')
  await open.stop()
  const guarded = await startBroker(t, { dataDir, flags: required })
  assert.equal(existsSync(join(dataDir, 'bootstrap.key')), false)
  assert.equal((await new HttpApi(guarded.url, admin.secret).get('/admin/keys')).status, 200)
  assertRefused(await new HttpApi(guarded.url).get('/topics'), 401, 'UNAUTHENTICATED')
})

test('keys, grants, quotas and revocations outlive a restart and a kill', async t => {
  const dataDir = temporaryDirectory(t)
  const first = await spawnBroker(t, { dataDir, flags: required })
  const { api } = await firstKey(first)
  const [kept, gone] = [await makeTestKey(api, 'write:orders'), await makeTestKey(api, 'write:orders')]
  await api.post('/admin/keys', {
    name: 'quota',
    acls: [],
    produce_bytes_per_sec: 7,
    consume_bytes_per_sec: 4294967295
  })
  await revokeKey(api, gone.id)
  const before = await api.get('/admin/keys')
  // Nothing is waited for: what was answered is durable.
  await first.kill('SIGKILL')
  const second = await spawnBroker(t, { dataDir, flags: required })
  const again = new HttpApi(second.url, readBootstrapSecret(dataDir))
  assert.equal((await again.get('/admin/keys')).text, before.text)
  assert.equal((await new HttpApi(second.url, kept.secret).get('/topics')).status, 200)
  assertRefused(await new HttpApi(second.url, kept.secret).get('/topics/bills'), 403, 'FORBIDDEN')
  assertRefused(await new HttpApi(second.url, gone.secret).get('/topics'), 401, 'KEY_REVOKED')
  const { code } = await second.kill('SIGTERM')
  assert.equal(code, 0)
})

test('a start that is killed between the file and its key makes another one', async t => {
  for (const point of ['bootstrap.rename:1=kill', 'bootstrap.rename:1=kill-after', 'bootstrap.directory-sync:1=kill']) {
    await t.test(point, async t => {
      const dataDir = temporaryDirectory(t)
      const env = { MILLRACE_FAULTS: `bootstrap/${point}` }
      await assert.rejects(spawnBroker(t, { dataDir, flags: required, env }), /ended before/)
      const left = existsSync(join(dataDir, 'bootstrap.key')) ? readBootstrapSecret(dataDir) : null
      assert.equal(left === null, point === 'bootstrap.rename:1=kill')
      const broker = await startBroker(t, { dataDir, flags: required })
      const secret = readBootstrapSecret(dataDir)
      assert.notEqual(secret, left)
      if (left !== null) assertRefused(await new HttpApi(broker.url, left).get('/topics'), 401, 'UNAUTHENTICATED')
      assert.equal((await new HttpApi(broker.url, secret).get('/topics')).status, 200)
      assert.equal(existsSync(join(dataDir, 'bootstrap.key.new')), false)
    })
  }
})

test('a start that cannot write the file of the first key ends in one line, and has no key', async t => {
  const dataDir = temporaryDirectory(t)
  const args = smallFlags(dataDir, required)
  const env = { MILLRACE_FAULTS: 'bootstrap/bootstrap.write:1=ENOSPC' }
  assert.match(await failToStart(t, args, { env }), /^millrace: cannot start: .*bootstrap\.key/)
  const broker = await startBroker(t, { dataDir, flags: required })
  const { keys } = parse<{ keys: KeyAnswer[] }>(
    await new HttpApi(broker.url, readBootstrapSecret(dataDir)).get('/admin/keys')
  )
  assert.equal(keys.length, 1)
})

test('no secret, rightly or wrongly used, reaches the log of a broker that tells all', async t => {
  const dataDir = temporaryDirectory(t)
  const broker = await spawnBroker(t, { dataDir, flags: { ...required, '--log-level': 'debug' } })
  const admin = await firstKey(broker)
  await admin.api.createTopic('orders')
  const writer = await makeTestKey(admin.api, 'write:orders')
  const wrong = ['esk_wrong-over-http', 'esk_wrong-in-x-es-key', 'esk_wrong-scheme', 'esk_wrong-over-es01']
  const nobody = new HttpApi(broker.url)
  const tries: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
    ['/topics', { authorization: `Bearer ${wrong[0]}` }],
    ['/topics', { 'x-es-key': wrong[1] ?? '' }],
    ['/topics', { authorization: `Basic ${wrong[2]}` }]
  ]
  for (const [path, headers] of tries) assert.equal((await nobody.call('GET', path, undefined, headers)).status, 401)
  await writer.api.produce('orders', [{ value: 'v' }])
  assert.equal((await nobody.call('GET', '/topics', undefined, { 'x-es-key': writer.secret })).status, 200)
  assertRefused(await writer.api.get('/admin/keys'), 403, 'FORBIDDEN')

  const client = await connectEs01({ ...broker.es01, token: writer.secret })
  await client.produce('orders', [{ value: 'v' }])
  await assert.rejects(connectEs01({ ...broker.es01, token: wrong[3] ?? '' }), /status 2/)
  await revokeKey(admin.api, writer.id)
  await assert.rejects(client.ping(), /key revoked/)
  await assert.rejects(connectEs01({ ...broker.es01, token: writer.secret }), /status 2/)
  assertRefused(await writer.api.get('/topics'), 401, 'KEY_REVOKED')
  const raw = await openRaw(t, broker.es01)
  raw.send(encodeHello(`${admin.secret}${'x'.repeat(1100)}`, 0))
  assert.equal((await raw.take(13))[4], 2)
  await broker.kill('SIGTERM')

  const log = broker.logs.map(line => JSON.stringify(line)).join('\n')
  assert.match(log, /bootstrap\.key/, 'the log tells where the first secret is')
  for (const secret of [admin.secret, writer.secret, ...wrong]) assert.ok(!log.includes(secret), secret.slice(0, 8))
  // Nor anywhere in the directory but in the file that is meant for it.
  const store = ['store.db', 'store.db-wal'].filter(name => existsSync(join(dataDir, name)))
  for (const name of store) {
    const bytes = readFileSync(join(dataDir, name))
    for (const secret of [admin.secret, writer.secret]) assert.ok(!bytes.includes(secret), name)
  }
})
