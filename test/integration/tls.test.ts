/** TLS over real sockets: the product's own clients, its command line, certificates that change, and starts that fail. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Logger } from '../../src/base/logger.ts'
import { connectEs01 } from '../../src/client/es01/client.ts'
import { HttpClient } from '../../src/client/http/http-client.ts'
import { runMillrace, spawnBroker, startBroker, waitFor } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { atEnd } from '../support/clean-up.ts'
import { overTls } from '../support/https.ts'
import { failToStart, smallFlags } from '../support/start-failure.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

for (const engine of ['uws', 'node'] as const) {
  test(`both protocols over TLS, and a certificate that changes on disk, on ${engine}`, async t => {
    const folder = temporaryDirectory(t)
    const first = makeCertificate('first')
    const files = writeCertificate(folder, first)
    const flags = { '--tls-cert': files.cert, '--tls-key': files.key, '--http-engine': engine }
    const { server, es01: address } = await startBroker(t, { flags })
    const broker = `https://${server.httpAddress}`
    const httpTo = (ca: string): HttpClient => new HttpClient({ broker, timeoutMs: 10_000, tls: { ca } })

    const http = httpTo(first.cert)
    await http.createTopic('t', 1, {})
    const es01 = await connectEs01({ ...address, tls: { ca: first.cert } })
    atEnd(t, () => es01.destroy())
    const value = Buffer.alloc(900_000, 'v')
    await es01.produce('t', [{ value, partition: 0 }])
    await http.produce('t', [{ value: 'over https', partition: 0 }])
    const { body } = await http.consume('t', { partition: 0, offset: 0, maxRecords: 10 })
    assert.deepEqual(
      body.records.map(record => record.value.length),
      [900_000, 10]
    )

    await t.test('a client that does not trust the certificate sends nothing and says why', async () => {
      await assert.rejects(httpTo(makeCertificate('other').cert).listTopics(), { kind: 'untrusted', written: 'no' })
      await assert.rejects(connectEs01({ ...address, tls: {} }), { kind: 'connection', written: 'no' })
      await assert.rejects(connectEs01({ ...address, connectTimeoutMs: 2_000 }), { written: 'no' })
    })
    await t.test('a bad new certificate shows as a trouble, and the old one is served on', async () => {
      writeFileSync(files.key, makeCertificate('stranger').key)
      await waitFor('the trouble', () => server.tls?.reloadFailures === 1)
      const health = await fetchHealth(broker, first.cert)
      assert.match(health, /"troubles":\["the TLS certificate could not be replaced/)
      assert.ok(!health.includes(folder))
    })
    await t.test('a good one is for new connections of both protocols, open ones go on', async () => {
      const second = makeCertificate('second')
      writeCertificate(folder, second)
      await waitFor('the new certificate', () => server.tls?.reloads === 1)
      assert.doesNotMatch(await fetchHealth(broker, second.cert), /troubles/)
      await assert.rejects(httpTo(first.cert).listTopics(), { kind: 'untrusted' })
      const next = await connectEs01({ ...address, tls: { ca: second.cert } })
      atEnd(t, () => next.destroy())
      await next.ping()
      await es01.ping()
    })
  })
}

async function fetchHealth(broker: string, ca: string): Promise<string> {
  return (await overTls(`${broker}/healthz`, ca)).text
}

test('the command line talks to an https broker that it is told to trust, and to no other', async t => {
  const folder = temporaryDirectory(t)
  const files = writeCertificate(folder, makeCertificate('cli'))
  const flags = { '--tls-cert': files.cert, '--tls-key': files.key }
  const { server } = await startBroker(t, { flags })
  const broker = ['--broker', `https://${server.httpAddress}`]
  const created = await runMillrace(['topic', 'create', '--name', 'a', ...broker, '--tls-ca', files.cert])
  assert.deepEqual([created.code, created.stderr], [0, ''])
  const listed = await runMillrace([...broker, '--insecure', 'topic', 'list'])
  assert.deepEqual([listed.code, listed.stdout], [0, 'a\n'])
  const untrusted = await runMillrace(['topic', 'list', ...broker])
  assert.equal(untrusted.code, 3)
  assert.match(untrusted.stderr, /^millrace: the certificate of https:.* is not trusted: .*--tls-ca.*--insecure.*\n$/)
  assert.doesNotMatch(untrusted.stderr, /Node\.js/, 'no advice that is not for this command')
  const other = await startBroker(t, { flags: { ...flags, '--bind': '127.0.0.2:0' } })
  const elsewhere = `https://${other.server.httpAddress}`
  const unlisted = await runMillrace(['topic', 'list', '--broker', elsewhere, '--tls-ca', files.cert])
  assert.match(
    unlisted.stderr,
    / is not trusted: .*altnames.*Name the broker in --broker as its certificate does; .*\n$/
  )
  const unreadable = await runMillrace(['topic', 'list', ...broker, '--tls-ca', join(folder, 'none.pem')])
  assert.equal(unreadable.code, 2)
  assert.match(unreadable.stderr, /--tls-ca '.*none\.pem' cannot be read/)
  const plain = await runMillrace(['topic', 'list', '--broker', `http://${server.httpAddress}`])
  assert.equal(plain.code, 3)
  assert.match(plain.stderr, /got no answer: .*named with https:.*; its Kafka listener is no --broker\n$/)
  assert.doesNotMatch(plain.stderr, /may or may not have happened/, 'it was a read')
})

test('the command line says that a broker without a certificate is none for https, and that nothing was sent', async t => {
  const { server } = await startBroker(t)
  const url = `https://${server.httpAddress}`
  const { code, stderr } = await runMillrace(['produce', '--topic', 'a', '--value', 'x', '--broker', url])
  assert.equal(code, 3)
  assert.match(
    stderr,
    /cannot reach a broker at https:\S+: what listens there does not speak TLS, write http:\/\/ for it\. .*\n$/
  )
  assert.doesNotMatch(stderr, /may or may not|routines/)
})

test('SIGHUP reads file and certificate anew, SIGUSR2 logs the state, and the broker serves on', async t => {
  const folder = temporaryDirectory(t)
  const files = writeCertificate(folder, makeCertificate('first'))
  const config = join(folder, 'millrace.toml')
  const base = `tls_cert = "${files.cert}"\ntls_key = "${files.key}"\n`
  writeFileSync(config, base)
  const broker = await spawnBroker(t, { flags: { '--config': config } })
  const url = broker.url.replace('http:', 'https:')

  const second = makeCertificate('second')
  writeCertificate(folder, second)
  writeFileSync(config, `${base}cors_origin = "https://app.example"\nmax_fetch_records = 7\nlog_level = "debug"\n`)
  broker.child.kill('SIGHUP')
  const reloaded = await broker.waitForLog(line => line['msg'] === 'reloaded')
  assert.deepEqual(reloaded['changed'], ['--cors-origin', '--log-level'])
  assert.equal(reloaded['certificate'], 'read anew')
  const restart = await broker.waitForLog(line => Array.isArray(line['needRestart']))
  assert.deepEqual(restart['needRestart'], ['--max-fetch-records'])
  const answer = await overTls(`${url}/topics`, second.cert, { origin: 'https://app.example' })
  assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, 'https://app.example'])

  writeFileSync(config, `${base}bnid = 7\n`)
  broker.child.kill('SIGHUP')
  const faulty = await broker.waitForLog(line => typeof line['faults'] === 'string')
  assert.match(String(faulty['faults']), /bnid: did you mean bind\?/)

  broker.child.kill('SIGUSR2')
  const line = await broker.waitForLog(entry => entry['msg'] === 'state')
  const state = line['state'] as Record<string, unknown>
  const shards = state['shards'] as Record<string, unknown>[]
  assert.ok(shards.length >= 1)
  for (const shard of shards) {
    assert.deepEqual(Object.keys(shard), ['shard', 'ringBytes', 'pending', 'journal', 'settling', 'heap'])
    assert.equal(shard['pending'], 0)
  }
  assert.ok(JSON.stringify(line).length < 64 * 1024)
  for (const part of ['readiness', 'troubles', 'memory', 'heap', 'http', 'es01', 'budgets', 'background']) {
    assert.ok(Object.hasOwn(state, part), part)
  }
  assert.ok(!JSON.stringify(broker.logs).includes('PRIVATE KEY'))
  assert.equal((await overTls(`${url}/readyz`, second.cert)).status, 200)
  assert.deepEqual(await broker.kill('SIGTERM'), { code: 0, signal: null })
})

test('clients that speak no TLS are told in the log with what to set, and others are not', async t => {
  const lines: string[] = []
  const note = (fields: object, message: string): void => void lines.push(`${JSON.stringify(fields)} ${message}`)
  const logger: Logger = { debug() {}, info() {}, warn: note, error: note }
  const { cert } = makeCertificate('secure')
  const files = writeCertificate(temporaryDirectory(t), makeCertificate('secure'))
  const flags = { '--tls-cert': files.cert, '--tls-key': files.key, '--http-engine': 'node' }
  const broker = await startBroker(t, { logger, flags })
  const { server } = broker
  const kafka = Buffer.from('0000001400120000000000010000000a6b61666b612d6a61', 'hex')
  const sent = [
    [server.httpAddress, Buffer.from('GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n')],
    [server.binaryAddress, Buffer.from('ES01\0\0\0\0\0\0\0\0')],
    [server.kafkaAddresses[0], kafka]
  ] as const
  for (let i = 0; i < 3; i++) {
    for (const [address, bytes] of sent) {
      const socket = connect(Number(address?.split(':')[1]), '127.0.0.1')
      socket.on('error', () => socket.destroy())
      socket.resume()
      socket.write(bytes)
      await once(socket, 'close')
    }
  }
  // Trusts nobody, so that its handshake fails: it speaks TLS all the same.
  await assert.rejects(connectEs01({ ...broker.es01, tls: { ca: cert } }))
  await waitFor('all handshakes to have failed', () => server.es01?.probe.refused.handshakeFailed === 4)
  const told = (protocol: string, remedy: string): string =>
    `{"remoteAddress":"127.0.0.1"} a client did not speak TLS to the ${protocol} listener, which does: ${remedy}`
  assert.deepEqual(
    [...new Set(lines)],
    [
      told('HTTP', 'write https:// in its address'),
      told('ES01', 'set the option tls of the client library'),
      told('Kafka', "set the client's security.protocol to SSL")
    ]
  )
})

test('TLS files that cannot be used end the start in one line, before anything is made', async t => {
  const folder = temporaryDirectory(t)
  const files = writeCertificate(folder, makeCertificate('first'))
  const foreign = join(folder, 'foreign.key')
  writeFileSync(foreign, makeCertificate('other').key)
  const cases: readonly (readonly [Record<string, string>, number, RegExp])[] = [
    [{ '--tls-cert': files.cert }, 2, /tls_cert is set without tls_key/],
    [{ '--tls-key': files.key }, 2, /tls_key is set without tls_cert/],
    [{ '--tls-cert': join(folder, 'none'), '--tls-key': files.key }, 1, /certificate .*none: no such file/],
    [{ '--tls-cert': files.cert, '--tls-key': foreign }, 1, /foreign\.key does not belong to/],
    [{ '--tls-cert': files.key, '--tls-key': files.key }, 1, /tls\.key: it is not a certificate/]
  ]
  for (const [flags, code, words] of cases) {
    const line = await failToStart(t, smallFlags(join(folder, 'data'), flags), { code })
    assert.match(line, words)
    assert.ok(!line.includes('PRIVATE KEY'))
  }
})

test('a host name that is not known ends the start of a broker without authentication', async t => {
  const line = await failToStart(t, smallFlags(temporaryDirectory(t), { '--bind': 'unknown-host.invalid:0' }))
  assert.match(line, /unknown-host\.invalid:0 \(--bind\): the host name cannot be looked up/)
})
