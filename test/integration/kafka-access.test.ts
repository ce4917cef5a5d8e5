/** Who may do what over the Kafka listener: SASL with the keys of the broker, their grants, revocation and quotas. */
import assert from 'node:assert/strict'
import { createHash, createHmac, pbkdf2Sync } from 'node:crypto'
import { test } from 'node:test'
import { Kafka, logLevel } from 'kafkajs'
import type { Logger } from '../../src/base/logger.ts'
import { apis } from '../../src/wire/kafka/apis/index.ts'
import { kafkaErrors } from '../../src/wire/kafka/errors.ts'
import { makeTestKey, revokeKey, startGuarded } from '../support/access.ts'
import { authenticate, handshake, loginPlain } from '../support/kafka-login.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { clientBatch } from '../support/client-batches.ts'
import { fetchBody, fetchPartitions, produceBatch } from '../support/kafka-calls.ts'
import { connectKafka, type KafkaClient } from '../support/kafka-client.ts'
import { ClientSession } from '../support/kafka-session.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const batch = clientBatch({ records: [{ key: 'k', value: 'v' }] })

/** The client's side of RFC 5802, with the parts that a test may falsify. */
async function loginScram(
  client: KafkaClient,
  digest: 'sha256' | 'sha512',
  { id, secret, prefix = '' }: { readonly id: string; readonly secret: string; readonly prefix?: string }
): Promise<{ readonly errorCode: number; readonly isServer: boolean }> {
  assert.equal(await handshake(client, digest === 'sha256' ? 'SCRAM-SHA-256' : 'SCRAM-SHA-512'), 0)
  const bare = `n=${id},r=clientnonce`
  const first = await authenticate(client, `n,,${bare}`)
  if (first.errorCode !== 0) return { errorCode: first.errorCode, isServer: false }
  const said = first.authBytes.toString()
  const [, nonce = '', salt = '', count = ''] = /^r=([^,]*),s=([^,]*),i=(\d+)$/.exec(said) ?? []
  assert.ok(nonce.startsWith('clientnonce') && nonce.length > 20 && Number(count) >= 4096, said)
  const bytes = digest === 'sha256' ? 32 : 64
  const salted = pbkdf2Sync(secret, Buffer.from(salt, 'base64'), Number(count), bytes, digest)
  const clientKey = createHmac(digest, salted).update('Client Key').digest()
  const withoutProof = `c=biws,r=${prefix}${nonce}`
  const message = `${bare},${said},${withoutProof}`
  const signature = createHmac(digest, createHash(digest).update(clientKey).digest()).update(message).digest()
  const proof = Buffer.from(clientKey.map((byte, i) => byte ^ (signature[i] as number))).toString('base64')
  const final = await authenticate(client, `${withoutProof},p=${proof}`)
  const serverKey = createHmac(digest, salted).update('Server Key').digest()
  const expected = `v=${createHmac(digest, serverKey).update(message).digest('base64')}`
  return { errorCode: final.errorCode, isServer: final.authBytes.toString() === expected }
}

test('with keys required nothing but ApiVersions and SASL is answered before a client says whose it has', async t => {
  const { broker } = await startGuarded(t)
  const client = await connectKafka(t, broker.kafka)
  assert.equal((await client.call(apis.apiVersions, 2, {})).errorCode, 0)
  client.send(apis.metadata, 4, { topics: null })
  await client.closed()
  assert.equal(broker.server.kafka?.probe.refused.authRequired, 1)
})

test('a client that does not log in sees only that it is cut off, so the log says what it lacks', async t => {
  const warned: object[] = []
  const warn = (fields: object, message: string): void => {
    if (message === 'a Kafka login was refused') warned.push(fields)
  }
  const logger: Logger = { debug() {}, info() {}, warn, error() {} }
  const { broker } = await startGuarded(t, { logger })
  for (let i = 0; i < 2; i++) {
    const client = await connectKafka(t, broker.kafka)
    client.send(apis.metadata, 4, { topics: null })
    await client.closed()
  }
  const about = { listener: broker.kafka, remoteAddress: '127.0.0.1', mechanism: null, keyId: null, unwarnedBefore: 0 }
  const remedy = "set the client's security.protocol to SASL_PLAINTEXT, or with TLS to SASL_SSL"
  assert.deepEqual(warned, [{ ...about, problem: `Metadata came without a login: ${remedy}` }])
})

test('a login where authentication is off is refused, and the log says what the client is to leave out', async t => {
  const problems: unknown[] = []
  const warn = (fields: object, message: string): void => {
    if (message === 'a Kafka login was refused') problems.push((fields as { problem: string }).problem)
  }
  const broker = await startBroker(t, { logger: { debug() {}, info() {}, warn, error() {} } })
  const client = await connectKafka(t, broker.kafka)
  const { errorCode } = await client.call(apis.saslHandshake, 1, { mechanism: 'PLAIN' })
  assert.equal(errorCode, kafkaErrors.ILLEGAL_SASL_STATE.code)
  assert.deepEqual(problems, [
    "authentication is disabled: set the client's security.protocol to PLAINTEXT, or with TLS to SSL"
  ])
})

test('PLAIN and both kinds of SCRAM take the id of a key and its secret', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t')
  const plain = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(plain, admin.id, admin.secret), 0)
  assert.equal((await produceBatch(plain, 't', 0, batch)).errorCode, 0)
  for (const digest of ['sha256', 'sha512'] as const) {
    const client = await connectKafka(t, broker.kafka)
    assert.deepEqual(await loginScram(client, digest, admin), { errorCode: 0, isServer: true })
    assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
  }
  // librdkafka before 2.6.1 says its own part of the nonce twice.
  const old = await connectKafka(t, broker.kafka)
  assert.equal((await loginScram(old, 'sha256', { ...admin, prefix: 'clientnonce' })).errorCode, 0)
})

test('after a handshake of version 0 the tokens come bare', async t => {
  const { broker, admin } = await startGuarded(t)
  const client = await connectKafka(t, broker.kafka)
  assert.equal((await client.call(apis.saslHandshake, 0, { mechanism: 'PLAIN' })).errorCode, 0)
  const token = Buffer.from(`\0${admin.id}\0${admin.secret}`)
  const size = Buffer.alloc(4)
  size.writeInt32BE(token.length)
  client.socket.write(Buffer.concat([size, token]))
  assert.equal((await client.next())?.bytes.length, 0)
  assert.equal((await client.call(apis.metadata, 4, { topics: null })).topics.length, 0)
})

test('a wrong secret, the secret of another key, and an unknown mechanism are refused, and say so', async t => {
  const { broker, admin } = await startGuarded(t)
  const other = await makeTestKey(admin.api, 'read:t')
  const { SASL_AUTHENTICATION_FAILED, UNSUPPORTED_SASL_MECHANISM, ILLEGAL_SASL_STATE } = kafkaErrors
  for (const [id, secret] of [
    [admin.id, 'esk_wrong'],
    [admin.id, other.secret],
    ['key_000000000000', admin.secret]
  ] as const) {
    const plain = await connectKafka(t, broker.kafka)
    assert.equal(await loginPlain(plain, id, secret), SASL_AUTHENTICATION_FAILED.code)
    await plain.closed()
    const scram = await connectKafka(t, broker.kafka)
    assert.equal((await loginScram(scram, 'sha256', { id, secret })).errorCode, SASL_AUTHENTICATION_FAILED.code)
    await scram.closed()
  }
  const client = await connectKafka(t, broker.kafka)
  const { errorCode, mechanisms } = await client.call(apis.saslHandshake, 1, { mechanism: 'GSSAPI' })
  assert.equal(errorCode, UNSUPPORTED_SASL_MECHANISM.code)
  assert.deepEqual(mechanisms, ['PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512'])
  assert.equal((await authenticate(client, 'x')).errorCode, ILLEGAL_SASL_STATE.code)
})

test('a refused login is in the log, with who it said to be and never a secret', async t => {
  const lines: object[] = []
  const take = (fields: object, message: string): void => {
    if (message === 'a Kafka login was refused') lines.push(fields)
  }
  // How many of them are warnings is a matter of time.
  const logger: Logger = { debug: take, info() {}, warn: take, error() {} }
  const { broker, admin } = await startGuarded(t, { logger })
  const wrong = 'esk_wrong'
  const login = async (id: string, secret: string): Promise<void> => {
    const client = await connectKafka(t, broker.kafka)
    assert.equal(await loginPlain(client, id, secret), kafkaErrors.SASL_AUTHENTICATION_FAILED.code)
    await client.closed()
  }
  await login(admin.id, wrong)
  for (const digest of ['sha256', 'sha512'] as const) {
    const client = await connectKafka(t, broker.kafka)
    await loginScram(client, digest, { id: admin.id, secret: wrong })
  }
  await login('a\n\u{1f600}\\"b', wrong)
  await login('x'.repeat(1000), wrong)
  await login(admin.secret, admin.id)
  await login(`${admin.secret.toUpperCase()}`, admin.id)
  const bare = await connectKafka(t, broker.kafka)
  await bare.call(apis.saslHandshake, 0, { mechanism: 'PLAIN' })
  const token = Buffer.from(`\0bare\0${wrong}`)
  bare.socket.write(Buffer.concat([Buffer.from([0, 0, 0, token.length]), token]))
  await bare.closed()
  const foreign = await connectKafka(t, broker.kafka)
  for (const mechanism of ['GSSAPI', `OTHER\n${wrong}`]) await foreign.call(apis.saslHandshake, 1, { mechanism })
  const about = { listener: broker.kafka, remoteAddress: '127.0.0.1' }
  const problem = 'the user is the id of no key, or the password not its secret'
  const plain = (keyId: string) => ({ ...about, mechanism: 'PLAIN', keyId, problem })
  const unknown = { ...about, keyId: null, problem: 'mechanisms here are PLAIN, SCRAM-SHA-256, SCRAM-SHA-512' }
  assert.deepEqual(
    lines.map(line => ({ ...line, unwarnedBefore: undefined })),
    [
      plain(admin.id),
      { ...plain(admin.id), mechanism: 'SCRAM-SHA-256' },
      { ...plain(admin.id), mechanism: 'SCRAM-SHA-512' },
      plain('a\\u000a\\ud83d\\ude00\\u005c"b'),
      plain(`${'x'.repeat(24)}…`),
      plain('(looks like a secret)'),
      plain('(looks like a secret)'),
      plain('bare'),
      { ...unknown, mechanism: 'GSSAPI' },
      { ...unknown, mechanism: '(looks like a secret)' }
    ].map(line => ({ ...line, unwarnedBefore: undefined }))
  )
  const all = JSON.stringify(lines)
  assert.ok(!all.includes(wrong) && !all.includes(admin.secret.slice(4, 20)))
  assert.equal(broker.server.kafka?.probe.refused.authFailed, 8)
})

test('a key sees and reads the topics of its grants alone, and writes none that it may only read', async t => {
  const { broker, admin } = await startGuarded(t)
  for (const name of ['mine', 'theirs']) await admin.api.createTopic(name)
  const reader = await makeTestKey(admin.api, 'read:mine')
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, reader.id, reader.secret), 0)
  const all = await client.call(apis.metadata, 12, { topics: null })
  assert.deepEqual(
    all.topics.map(({ name }) => name),
    ['mine']
  )
  const named = await client.call(apis.metadata, 4, { topics: [{ name: 'theirs' }, { name: 'neither' }] })
  const { TOPIC_AUTHORIZATION_FAILED } = kafkaErrors
  assert.deepEqual(
    named.topics.map(topic => topic.errorCode),
    Array(2).fill(TOPIC_AUTHORIZATION_FAILED.code)
  )
  const [fetched] = await fetchPartitions(client, 'theirs', { 0: 0 })
  assert.equal(fetched?.errorCode, TOPIC_AUTHORIZATION_FAILED.code)
  assert.equal((await produceBatch(client, 'mine', 0, batch)).errorCode, TOPIC_AUTHORIZATION_FAILED.code)
  const made = await client.call(apis.createTopics, 5, {
    topics: [{ name: 'new', numPartitions: 1, replicationFactor: 1, assignments: [], configs: [] }],
    timeoutMs: 1000,
    validateOnly: false
  })
  assert.equal(made.topics[0]?.errorCode, TOPIC_AUTHORIZATION_FAILED.code)
  // By its id no more is told of a topic than by its name.
  const seen = await adminIdOf(t, broker.kafka, admin, 'theirs')
  const byId = await client.call(apis.metadata, 12, { topics: [{ name: null, topicId: seen }] })
  assert.equal(byId.topics[0]?.errorCode, kafkaErrors.UNKNOWN_TOPIC_ID.code)
})

async function adminIdOf(
  t: Parameters<typeof connectKafka>[0],
  address: string,
  admin: { readonly id: string; readonly secret: string },
  name: string
): Promise<string> {
  const client = await connectKafka(t, address)
  assert.equal(await loginPlain(client, admin.id, admin.secret), 0)
  return (await client.call(apis.metadata, 12, { topics: [{ name }] })).topics[0]?.topicId ?? ''
}

test('a key that is revoked can do nothing more on connections that it has', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t')
  const key = await makeTestKey(admin.api, 'write:t')
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, key.id, key.secret), 0)
  assert.equal((await produceBatch(client, 't', 0, batch)).errorCode, 0)
  await revokeKey(admin.api, key.id)
  client.send(apis.metadata, 4, { topics: null })
  await client.closed()
  const again = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(again, key.id, key.secret), kafkaErrors.SASL_AUTHENTICATION_FAILED.code)
})

test('a fetch that waits in a session ends with its key, and leaves nothing', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('t', 2)
  const key = await makeTestKey(admin.api, 'read:t')
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, key.id, key.secret), 0)
  const session = new ClientSession(client, 't')
  await session.fetch({ offsets: { 0: 0, 1: 0 } })
  session.send({ maxWaitMs: 60_000 })
  const has = async (line: string) => (await admin.api.get('/metrics')).text.includes(`\n${line}\n`)
  await waitFor('it to wait', () => has('millrace_watches 2'))
  await revokeKey(admin.api, key.id)
  await client.closed()
  await waitFor('it to be gone', () => has('millrace_watches 0'))
  await waitFor('its memory to be free', () => has('millrace_memory_budget_used_bytes{budget="replies"} 0'))
})

test('what stands behind a fetch that ends with its key is not answered: its client would take that for the fetch', async t => {
  const { broker, admin } = await startGuarded(t)
  await admin.api.createTopic('orders')
  const key = await makeTestKey(admin.api, 'read:orders')
  const client = await connectKafka(t, broker.kafka)
  assert.equal(await loginPlain(client, key.id, key.secret), 0)
  client.send(apis.fetch, 11, fetchBody('orders', { 0: 0 }, { maxWaitMs: 30_000 }))
  client.send(apis.apiVersions, 2, {})
  await waitFor('both to be taken', () => broker.server.kafka?.probe.apis.get('ApiVersions')?.requests === 1)
  await revokeKey(admin.api, key.id)
  await client.closed()
})

test('over TLS clients of Kafka use the certificate of the other protocols, and plain ones are turned away', async t => {
  const folder = temporaryDirectory(t)
  const certificate = makeCertificate('kafka')
  const { cert, key } = writeCertificate(folder, certificate)
  const broker = await startBroker(t, { flags: { '--tls-cert': cert, '--tls-key': key } })
  const kafka = new Kafka({ brokers: [broker.kafka], ssl: { ca: [certificate.cert] }, logLevel: logLevel.NOTHING })
  const admin = kafka.admin()
  await admin.connect()
  assert.deepEqual(await admin.listTopics(), [])
  await admin.disconnect()
  const plain = await connectKafka(t, broker.kafka)
  plain.send(apis.metadata, 4, { topics: null })
  await plain.closed()
})
