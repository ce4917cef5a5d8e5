/** Keys on the command line: what is asked of the broker, what is printed, and which secret is sent with what. */
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { temporaryDirectory } from '../../support/temporary-directory.ts'
import { run, startFakeBroker } from './terminal.ts'

const key = {
  key_id: 'key_0123456789ab',
  name: 'orders\nwriter',
  acls: [
    { action: 'write', topic_prefix: 'orders.' },
    { action: 'read', topic_prefix: '*' }
  ],
  produce_bytes_per_sec: 1048576,
  consume_bytes_per_sec: null,
  created_at_ms: 1_700_000_000_000,
  disabled: false
}

function fileWith(t: TestContext, text: string): string {
  const path = join(temporaryDirectory(t), 'secret')
  writeFileSync(path, text)
  return path
}

test('key create sends the rules and quotas, and prints the secret once, under a line that says so', async t => {
  const body = JSON.stringify({ key, secret: 'esk_once' })
  const broker = await startFakeBroker(t, () => ({ status: 201, body }))
  const words = ['key', 'create', '--name', 'orders-writer', '--acl', 'write:orders.', '--acl', 'read:*']
  const quotas = ['--produce-bytes-per-sec', '1048576', '--consume-bytes-per-sec', '0', '--broker', broker.url]
  assert.deepEqual(await run([...words, ...quotas]), {
    code: 0,
    stdout:
      "created key 'orders\\nwriter' (key_0123456789ab) with 2 rule(s)\n" +
      'over Kafka (SASL) the user name is key_0123456789ab, and the password the secret\n' +
      'SECRET, shown this once:\nesk_once\n',
    stderr: ''
  })
  const sent = {
    name: 'orders-writer',
    acls: [
      { action: 'write', topic_prefix: 'orders.' },
      { action: 'read', topic_prefix: '*' }
    ],
    produce_bytes_per_sec: 1048576,
    consume_bytes_per_sec: null
  }
  assert.deepEqual(
    broker.asked.map(({ method, url, body: asked }) => [method, url, JSON.parse(asked)]),
    [['POST', '/admin/keys', sent]]
  )
  assert.equal((await run([...words, ...quotas, '--json'])).stdout, `${body}\n`)
})

test('key create without rules makes a key that may do nothing, and says so; a rule that is none is wrong use', async t => {
  const made = { ...key, acls: [] }
  const broker = await startFakeBroker(t, () => ({ status: 201, body: JSON.stringify({ key: made, secret: 's' }) }))
  const bare = await run(['key', 'create', '--name', 'n', '--broker', broker.url])
  assert.equal(bare.code, 0)
  assert.match(bare.stdout, /^created key [^\n]* with 0 rule\(s\): it may do nothing, and rules are given with --acl /)
  assert.deepEqual((JSON.parse(broker.asked[0]?.body ?? '') as { acls: unknown }).acls, [])
  for (const rule of ['orders', 'own:orders', 'read:', ':orders', '']) {
    const { code, stderr } = await run(['key', 'create', '--name', 'n', '--acl', rule, '--broker', broker.url])
    assert.equal(code, 2, rule)
    assert.match(
      stderr,
      /is no rule, such as read:orders, write:orders, admin:orders; with \* in place of a topic it is for all\n$/
    )
  }
  const { code, stderr } = await run(['key', 'create', '--broker', broker.url])
  assert.deepEqual([code, stderr], [2, 'millrace: --name is missing\n'])
  assert.equal(broker.asked.length, 1)
})

test('key list prints one key a line and marks the revoked ones', async t => {
  const keys = [key, { ...key, key_id: 'key_1', name: 'old', acls: [], disabled: true }]
  const bodies = [{ keys }, { keys: [] }, { keys }].map(value => JSON.stringify(value))
  const broker = await startFakeBroker(t, () => ({ status: 200, body: bodies.shift() ?? '' }))
  const list = ['key', 'list', '--broker', broker.url]
  assert.deepEqual(await run(list), {
    code: 0,
    stdout:
      "key_0123456789ab name='orders\\nwriter' acls=write:orders.,read:* produce_bytes_per_sec=1048576 " +
      'consume_bytes_per_sec=unlimited created=2023-11-14T22:13:20.000Z\n' +
      "key_1            name='old'            acls=none                 produce_bytes_per_sec=1048576 consume_bytes_per_sec=unlimited " +
      'created=2023-11-14T22:13:20.000Z [revoked]\n',
    stderr: ''
  })
  assert.equal((await run(list)).stdout, '(no keys)\n')
  assert.equal((await run([...list, '--json'])).stdout, `${JSON.stringify({ keys })}\n`)
})

test('key revoke names the key in the path, given either way', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 204, body: '' }))
  for (const words of [['key_1'], ['--id', 'key_1']]) {
    const outcome = await run(['key', 'revoke', ...words, '--broker', broker.url])
    assert.deepEqual(outcome, { code: 0, stdout: "revoked key 'key_1'\n", stderr: '' })
  }
  assert.equal((await run(['key', 'revoke', 'a/../b', '--json', '--broker', broker.url])).stdout, '')
  assert.deepEqual(
    broker.asked.map(({ method, url }) => `${method} ${url}`),
    ['DELETE /admin/keys/key_1', 'DELETE /admin/keys/key_1', 'DELETE /admin/keys/a%2F..%2Fb']
  )
  assert.equal((await run(['key', 'revoke', 'a', '--id', 'b'])).code, 2)
  assert.equal((await run(['key', 'revoke'])).code, 2)
})

test('every client command sends the secret that it is given: a file wins over --auth, that over the environment', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 200, body: '{"topics":[],"producers":[],"keys":[]}' }))
  const file = fileWith(t, '  esk_file \nsecond line\n')
  const env = { MILLRACE_KEY: 'esk_env', ES_AUTH: 'esk_es' }
  const at = ['--broker', broker.url]
  await run(['topic', 'list', '--auth-file', file, '--auth', 'esk_flag', ...at], { env })
  await run(['topic', 'list', '--auth', 'esk_flag', ...at], { env })
  await run(['--auth', 'esk_before', 'producer', 'list', ...at], { env })
  await run(['key', 'list', ...at], { env })
  await run(['topic', 'list', ...at], { env: { ES_AUTH: 'esk_es' } })
  await run(['topic', 'list', ...at])
  assert.deepEqual(
    [...broker.authorizations],
    ['Bearer esk_file', 'Bearer esk_flag', 'Bearer esk_before', 'Bearer esk_env', 'Bearer esk_es', undefined]
  )
})

test('a secret that cannot be one is wrong use, and is not repeated', async t => {
  const cases: readonly (readonly [readonly string[], Record<string, string>])[] = [
    [['--auth', 'esk_two words'], {}],
    [['--auth', ''], {}],
    [['--auth', 'esk_ü'], {}],
    [['--auth-file', fileWith(t, '\nesk_second')], {}],
    [['--auth-file', join(temporaryDirectory(t), 'missing')], {}],
    [[], { MILLRACE_KEY: 'esk_line\nbreak' }]
  ]
  for (const [words, env] of cases) {
    const { code, stdout, stderr } = await run(['topic', 'list', ...words], { env })
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, /^millrace: (--auth|MILLRACE_KEY).*\n$/)
    for (const secret of ['two words', 'ü', 'second', 'break']) assert.ok(!stderr.includes(secret), stderr)
  }
})

test('a broker that asks for a key is answered with how to give one', async t => {
  const body = '{"error":"no valid key: send one","code":"UNAUTHENTICATED","retry":"never","written":"no"}'
  const broker = await startFakeBroker(t, () => ({ status: 401, body }))
  const { code, stderr } = await run(['topic', 'list', '--auth', 'esk_wrong', '--broker', broker.url])
  assert.equal(code, 1)
  assert.match(stderr, /answered 401: no valid key: send one\. Give a key with --auth-file, --auth or MILLRACE_KEY\n$/)
  assert.ok(!stderr.includes('esk_wrong'))
})
