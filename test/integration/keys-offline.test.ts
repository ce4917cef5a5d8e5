/** Keys of a stopped broker: written into its directory by whoever is locked out, left out of archives or taken along. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import {
  makeTestKey,
  readBootstrapSecret,
  revokeKey,
  startGuarded,
  type KeyAnswer,
  type TestKey
} from '../support/access.ts'
import { runMillrace, spawnBroker, startBroker } from '../support/broker.ts'
import { assertRefused, HttpApi, parse } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const flags = { '--auth': 'required' }

/** The secret below its line. */
function secretOf(stdout: string): string {
  return /^SECRET.*\n(esk_[A-Za-z0-9_-]{43})$/m.exec(stdout)?.[1] ?? ''
}

test('a start without an administrator says so, and what makes one; a start with one does not', async t => {
  const { broker, admin } = await startGuarded(t)
  const { dataDir } = broker
  await makeTestKey(admin.api, 'read:a')
  await revokeKey(admin.api, admin.id)
  await broker.stop()
  const isWarning = (line: Record<string, unknown>): boolean =>
    /is an administrator: .*--data-dir/.test(String(line['msg']))
  const locked = await spawnBroker(t, { dataDir, flags })
  assert.equal(locked.logs.filter(isWarning).length, 1)
  await locked.kill('SIGTERM')
  const words = ['key', 'create', '--name', 'rescue', '--acl', 'admin:*', '--data-dir', dataDir]
  assert.equal((await runMillrace(words)).code, 0)
  const open = await spawnBroker(t, { dataDir, flags })
  assert.equal(open.logs.filter(isWarning).length, 0)
})

test('who is locked out writes a key into the directory of the stopped broker', async t => {
  const { broker, admin } = await startGuarded(t)
  const { dataDir } = broker
  await revokeKey(admin.api, admin.id)
  const words = ['key', 'create', '--name', 'rescue', '--acl', 'admin:*', '--data-dir', dataDir]

  await t.test('not while it runs', async () => {
    const { code, stdout, stderr } = await runMillrace(words)
    assert.deepEqual([code, stdout], [3, ''])
    assert.match(stderr, /is in use by another millrace process/)
  })
  await broker.stop()

  await t.test('not where no broker ever was, and makes nothing there', async t => {
    const empty = temporaryDirectory(t)
    const { code, stderr } = await runMillrace([...words.slice(0, -1), empty])
    assert.equal(code, 3)
    assert.match(stderr, /no broker has used it/)
    assert.equal(existsSync(join(empty, 'store.db')), false)
  })

  await t.test('not one that a broker would refuse', async () => {
    const refused = await runMillrace(['key', 'create', '--name', 'x', '--acl', 'read:a/b', '--data-dir', dataDir])
    assert.equal(refused.code, 1)
    assert.match(refused.stderr, /^millrace: acls\[0\]\.topic_prefix 'a\/b' is not a valid name/)
  })

  await t.test('and it works at the next start', async t => {
    const made = await runMillrace(words)
    assert.deepEqual([made.code, made.stderr], [0, ''])
    assert.match(
      made.stdout,
      /^created key 'rescue' \(key_[0-9a-f]{12}\) with 1 rule\(s\)\nover Kafka .*\nSECRET, shown this once:\n/
    )
    const asJson = await runMillrace([...words, '--json'])
    const { key, secret } = JSON.parse(asJson.stdout) as { key: KeyAnswer; secret: string }
    const again = await startBroker(t, { dataDir, flags })
    for (const one of [secretOf(made.stdout), secret]) {
      const { keys } = parse<{ keys: KeyAnswer[] }>(await new HttpApi(again.url, one).get('/admin/keys'))
      assert.deepEqual(
        keys.map(({ name, disabled }) => [name, disabled]),
        [
          ['bootstrap-admin', true],
          ['rescue', false],
          ['rescue', false]
        ]
      )
      assert.deepEqual(keys.at(-1), key)
    }
    await again.stop()
  })
})

interface Dumped {
  readonly dataDir: string
  readonly reader: TestKey
  readonly admin: TestKey
}

/** A stopped broker with a topic, a key and a revoked one. */
async function stopped(t: TestContext): Promise<Dumped> {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('orders')
  await admin.api.produce('orders', [{ value: 'v' }])
  const reader = await makeTestKey(admin.api, 'read:orders')
  await revokeKey(admin.api, (await makeTestKey(admin.api, 'read:forgotten')).id)
  await broker.stop()
  return { dataDir: broker.dataDir, reader, admin }
}

async function succeed(...words: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await runMillrace(words)
  assert.deepEqual([code, stderr], [0, ''], stdout)
  return stdout
}

test('an archive has nothing of any key, which dump says, and a broker restored of it makes a first one', async t => {
  const { dataDir, reader, admin } = await stopped(t)
  const archive = join(temporaryDirectory(t), 'all.tar')
  const dumped = await runMillrace(['dump', '--data-dir', dataDir, '--output', archive])
  assert.equal(dumped.code, 0)
  assert.equal(dumped.stderr, 'millrace: without its 3 API key(s): --include-keys takes them along\n')
  const bytes = readFileSync(archive)
  for (const text of ['bootstrap', 'forgotten', reader.id, reader.secret, admin.id, admin.secret]) {
    assert.ok(!bytes.includes(text), text)
  }
  // The control: the directory itself has them.
  assert.ok(readFileSync(join(dataDir, 'store.db')).includes(reader.id))
  const back = join(temporaryDirectory(t), 'back')
  await succeed('restore', '--input', archive, '--data-dir', back)
  assert.equal(existsSync(join(back, 'bootstrap.key')), false)
  const broker = await startBroker(t, { dataDir: back, flags })
  assertRefused(await new HttpApi(broker.url, reader.secret).get('/topics'), 401, 'UNAUTHENTICATED')
  const first = new HttpApi(broker.url, readBootstrapSecret(back))
  assert.equal(parse<{ keys: KeyAnswer[] }>(await first.get('/admin/keys')).keys.length, 1)
  assert.deepEqual(await first.ends('orders'), [1])
})

test('an archive with keys has them as they were, and never the file of the first one', async t => {
  const { dataDir, reader, admin } = await stopped(t)
  const archive = join(temporaryDirectory(t), 'all.tar.gz')
  const told = JSON.parse(
    await succeed('dump', '--data-dir', dataDir, '--output', archive, '--include-keys', '--json')
  ) as { includes_keys: boolean }
  assert.equal(told.includes_keys, true)
  const some = join(temporaryDirectory(t), 'some')
  for (const more of [[], ['--topics', 'orders', '--force']]) {
    await succeed('restore', '--input', archive, '--data-dir', some, ...more)
    assert.equal(existsSync(join(some, 'bootstrap.key')), false)
    const broker = await startBroker(t, { dataDir: some, flags })
    assert.equal(existsSync(join(some, 'bootstrap.key')), false, 'there are keys')
    const { keys } = parse<{ keys: KeyAnswer[] }>(await new HttpApi(broker.url, admin.secret).get('/admin/keys'))
    assert.deepEqual(
      keys.map(({ name, disabled }) => [name, disabled]),
      [
        ['bootstrap-admin', false],
        ['read:orders', false],
        ['read:forgotten', true]
      ]
    )
    assert.deepEqual(parse<{ topics: string[] }>(await new HttpApi(broker.url, reader.secret).get('/topics')).topics, [
      'orders'
    ])
    await broker.stop()
  }
})

test('the command line does with a real broker what it says', async t => {
  const { broker, admin } = await startGuarded(t)
  const at = ['--broker', broker.url]
  const file = join(broker.dataDir, 'bootstrap.key')
  const made = await succeed('key', 'create', '--name', 'w', '--acl', 'write:orders', '--auth-file', file, ...at)
  await succeed('topic', 'create', '--name', 'orders', '--auth-file', file, ...at)
  const secret = secretOf(made)
  const env = { MILLRACE_KEY: secret }
  const produced = await runMillrace(['produce', '--topic', 'orders', '--value', 'v', ...at], { env })
  assert.deepEqual([produced.code, produced.stdout], [0, 'partition=0 offset=0\n'])
  const id = /\((key_[0-9a-f]{12})\)/.exec(made)?.[1] ?? ''
  await succeed('key', 'revoke', id, '--auth', admin.secret, ...at)
  const list = await succeed('key', 'list', '--auth-file', file, ...at)
  assert.match(list, new RegExp(`^${id} name='w' +acls=write:orders .* \\[revoked\\]$`, 'm'))
  assert.ok(!list.includes('esk_'))
  const refused = await runMillrace(['topic', 'list', ...at], { env })
  assert.deepEqual([refused.code, refused.stdout], [1, ''])
  assert.match(refused.stderr, /answered 401: key revoked/)
  assert.ok(!refused.stderr.includes(secret))
})
