/** TLS, pages of other origins, and clients that hold what others need: the same on both HTTP engines. */
import assert from 'node:assert/strict'
import { Agent, request as httpsRequest } from 'node:https'
import { connect as connectPlain } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { silentLogger } from '../../../../src/base/logger.ts'
import { systemClock } from '../../../../src/base/clock.ts'
import { Certificates } from '../../../../src/gateway/shared/certificates.ts'
import { makeCertificate, writeCertificate, type TestCertificate } from '../../../support/certificate.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { assertError, RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { Fixture, FixtureOptions } from './http-harness.ts'

const health = 'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
const engines = ['uws', 'node'] as const

interface SecureFixture extends Fixture {
  readonly certificates: Certificates
  replace(next: TestCertificate): string | null
}

async function startSecure(
  t: TestContext,
  engine: 'uws' | 'node',
  made: TestCertificate,
  options: FixtureOptions = {}
): Promise<SecureFixture> {
  const folder = temporaryDirectory(t)
  const files = writeCertificate(folder, made)
  const certificates = new Certificates({ files, logger: silentLogger, clock: systemClock })
  const fixture = await startGateway(t, engine, { ...options, certificates })
  const replace = (next: TestCertificate): string | null => {
    writeCertificate(folder, next)
    return certificates.reload()
  }
  return { ...fixture, certificates, replace }
}

/** A connection whose handshake is done, and whom it spoke to. */
function greet(t: TestContext, port: number, ca: string): Promise<{ socket: TLSSocket; name: string }> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port, ca }, () => {
      const { subject } = socket.getPeerCertificate()
      resolve({ socket, name: String(subject.CN) })
    })
    socket.on('error', reject)
    t.after(() => socket.destroy())
  })
}

/** One request on a connection that stays. @returns the status line. */
function ask(socket: TLSSocket): Promise<string> {
  return new Promise((resolve, reject) => {
    socket.once('data', (bytes: Buffer) => resolve(bytes.toString().split('\r\n')[0] ?? ''))
    socket.once('close', () => reject(new Error('closed')))
    socket.write(health)
  })
}

for (const engine of engines) {
  test(`HTTPS serves requests and large bodies, on ${engine}`, async t => {
    const made = makeCertificate('first')
    const { port, broker } = await startSecure(t, engine, made)
    const body = `{"records":[{"value":"${'v'.repeat(3_000_000)}"}]}`
    const agent = new Agent({ ca: made.cert })
    t.after(() => agent.destroy())
    const call = (method: string, path: string, content?: string): Promise<string> =>
      new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json' }
        const sent = httpsRequest({ host: '127.0.0.1', port, method, path, agent, headers }, answer => {
          answer.resume().on('end', () => resolve(String(answer.statusCode)))
        })
        sent.on('error', reject)
        sent.end(content)
      })
    assert.equal(await call('POST', '/topics', '{"name":"t"}'), '201')
    assert.equal(await call('POST', '/topics/t/produce', body), '200')
    assert.equal(broker.topicCount(), 1)
  })

  test(`a plain client of an HTTPS listener is closed without an answer, and others are served on, on ${engine}`, async t => {
    const made = makeCertificate('first')
    const { port } = await startSecure(t, engine, made)
    const plain = [health, '\x16\x03', Buffer.alloc(100_000, 7).toString('latin1')].map(text => {
      const raw = new RawConnection(t, port)
      raw.socket.end(text, 'latin1')
      return raw
    })
    await waitFor(() => plain.every(raw => raw.isClosed), 'the plain clients to be closed')
    // A TLS alert is no answer; a status line would be.
    for (const raw of plain) assert.ok(!raw.received.includes('HTTP'), raw.received)
    const { socket } = await greet(t, port, made.cert)
    assert.equal(await ask(socket), 'HTTP/1.1 200 OK')
  })

  test(`a new certificate is for new connections, open ones go on, and none is refused meanwhile, on ${engine}`, async t => {
    const first = makeCertificate('first')
    const made = [first, makeCertificate('second'), makeCertificate('third')]
    const ca = made.map(({ cert }) => cert).join('')
    const { port, replace } = await startSecure(t, engine, first)
    const before = await greet(t, port, ca)
    assert.equal(before.name, 'first')
    const seen = new Set<string>()
    let isOver = false
    const storm = Array.from({ length: 4 }, async () => {
      for (let count = 0; !isOver || count < 3; count++) {
        const { socket, name } = await greet(t, port, ca)
        seen.add(name)
        assert.equal(await ask(socket), 'HTTP/1.1 200 OK')
        socket.destroy()
      }
    })
    for (const next of made.slice(1)) {
      await waitFor(() => seen.size >= made.indexOf(next), 'connections with the certificate before')
      assert.equal(replace(next), null)
    }
    await waitFor(() => seen.has('third'), 'connections with the last certificate')
    isOver = true
    await Promise.all(storm)
    assert.equal(await ask(before.socket), 'HTTP/1.1 200 OK')
    assert.equal(before.socket.getPeerCertificate().subject.CN, 'first')
    assert.equal((await greet(t, port, ca)).name, 'third')
  })

  test(`a key that does not belong to the certificate changes nothing, on ${engine}`, async t => {
    const first = makeCertificate('first')
    const { port, replace } = await startSecure(t, engine, first)
    const bad = { cert: makeCertificate('second').cert, key: makeCertificate('other').key }
    assert.match(replace(bad) ?? '', /does not belong/)
    assert.equal((await greet(t, port, first.cert)).name, 'first')
  })

  test(`connections above the limit are closed at once and counted, and there is room again, on ${engine}`, async t => {
    for (const secure of [null, makeCertificate('first')]) {
      const options = { connectionsMax: 3 }
      const { port, gateway } =
        secure === null ? await startGateway(t, engine, options) : await startSecure(t, engine, secure, options)
      const open = (): RawConnection => new RawConnection(t, port)
      const kept = [open(), open(), open()]
      await waitFor(() => gateway.probe.connections === 3, 'three connections')
      const surplus = [open(), open()]
      await waitFor(() => surplus.every(raw => raw.isClosed), 'the surplus to be closed')
      assert.equal(gateway.probe.connectionsRefused, 2)
      assert.ok(kept.every(raw => !raw.isClosed))
      for (const raw of kept) raw.socket.destroy()
      await waitFor(() => gateway.probe.connections === 0, 'their end')
      const later = open()
      await waitFor(() => gateway.probe.connections === 1, 'a new one')
      assert.equal(later.isClosed, false)
    }
  })

  test(`a body that comes too slowly is answered 408 and its connection closed, on ${engine}`, async t => {
    const { port, gateway, requestBudget, send } = await startGateway(t, engine, {
      timeouts: { windowMs: 150 }
    })
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    raw.socket.write(
      'POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 4000000\r\n\r\n'
    )
    const trickle = setInterval(() => raw.socket.writable && raw.socket.write('{'), 20)
    t.after(() => clearInterval(trickle))
    await waitFor(() => raw.isClosed, 'the connection to be closed')
    assert.match(raw.received, /^HTTP\/1\.1 408 /)
    assert.match(raw.received, /"code":"BODY_TIMEOUT","retry":"same","written":"no"/)
    assert.match(raw.received, /at least 16384 bytes a second/)
    assert.deepEqual([gateway.probe.bodiesLate, requestBudget.usedBytes], [1, 0])
  })

  test(`a body that keeps its rate is taken however long it takes, on ${engine}`, async t => {
    const { port, gateway, send } = await startGateway(t, engine, { timeouts: { windowMs: 60 } })
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    const body = Buffer.from(`{"records":[{"value":"${'v'.repeat(200_000)}"}]}`)
    raw.socket.write(
      `POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n`
    )
    let sent = 0
    const send4 = setInterval(() => {
      raw.socket.write(body.subarray(sent, sent + 4_000))
      sent += 4_000
      if (sent >= body.length) clearInterval(send4)
    }, 6)
    t.after(() => clearInterval(send4))
    await waitFor(() => raw.received.includes('\r\n\r\n'), 'the answer')
    assert.match(raw.received, /^HTTP\/1\.1 200 /)
    assert.equal(gateway.probe.bodiesLate, 0)
  })

  test(`while request memory is short a slow body goes early, and who waited is served, on ${engine}`, async t => {
    const MIB = 1024 * 1024
    const { port, gateway, requestBudget, send } = await startGateway(t, engine, {
      requestBudgetBytes: 12 * MIB,
      timeouts: { windowMs: 100_000, shortWindowMs: 100 }
    })
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    raw.socket.write(
      'POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n'
    )
    raw.socket.write(Buffer.alloc(6 * MIB, 32))
    await waitFor(() => requestBudget.usedBytes >= 6 * MIB, 'the half of it')
    await waitFor(() => requestBudget.usedBytes === 0, 'its memory to be given back')
    assert.equal(gateway.probe.bodiesLate, 1)
    assert.equal((await send('POST', '/topics/t/produce', `{"records":[{"value":"v"}]}`)).status, 200)
  })

  test(`pages of listed origins are answered with their origin, and others as if there were none, on ${engine}`, async t => {
    const listed = 'https://app.example'
    const settings = { corsOrigin: [listed, 'http://localhost:3000'] }
    const { send, gateway } = await startGateway(t, engine, { settings })
    const asked = { 'access-control-request-method': 'POST', 'access-control-request-headers': 'content-type' }
    for (const origin of settings.corsOrigin) {
      for (const path of ['/topics', '/topics/t/produce', '/no/such/route']) {
        const preflight = await send('OPTIONS', path, undefined, { origin, ...asked })
        assert.deepEqual([preflight.status, preflight.text], [204, ''])
        assert.equal(preflight.headers['access-control-allow-origin'], origin)
        assert.equal(preflight.headers['access-control-allow-methods'], 'GET, POST, PUT, DELETE')
        assert.equal(
          preflight.headers['access-control-allow-headers'],
          'authorization, content-type, last-event-id, x-es-key'
        )
        assert.equal(preflight.headers.vary, 'Origin')
      }
      for (const [method, path, status] of [
        ['GET', '/topics', 200],
        ['GET', '/topics/none', 404],
        ['PATCH', '/topics', 405]
      ] as const) {
        const answer = await send(method, path, undefined, { origin })
        assert.equal(answer.status, status)
        assert.deepEqual([answer.headers['access-control-allow-origin'], answer.headers.vary], [origin, 'Origin'])
      }
    }
    const strangers = [
      'https://evil.example',
      'https://app.example.evil.example',
      'https://app.example/',
      'null',
      'HTTPS://APP.EXAMPLE',
      '*'
    ]
    for (const origin of strangers) {
      const preflight = await send('OPTIONS', '/topics', undefined, { origin, ...asked })
      assertError(preflight, 405, 'METHOD_NOT_ALLOWED', /OPTIONS/)
      assert.equal(preflight.headers.allow, 'GET, HEAD, POST')
      const answer = await send('GET', '/topics', undefined, { origin })
      assert.equal(answer.status, 200)
      for (const { headers } of [preflight, answer]) {
        assert.deepEqual(
          Object.keys(headers).filter(name => name.startsWith('access-control') || name === 'vary'),
          []
        )
      }
    }
    // The host is still checked: a listed page must not reach the broker by a name of its own.
    const rebound = await send('OPTIONS', '/topics', undefined, { origin: listed, host: 'evil.example' })
    assert.equal(rebound.status, 403)

    gateway.applyAccess({ bind: '127.0.0.1:0', auth: 'disabled', allowedHost: [], corsOrigin: ['https://new.example'] })
    assert.equal((await send('OPTIONS', '/topics', undefined, { origin: listed })).status, 405)
    assert.equal((await send('OPTIONS', '/topics', undefined, { origin: 'https://new.example' })).status, 204)
  })
}

test('headers that trickle in are cut off in time, silent connections and unfinished handshakes too, on both engines', async t => {
  const started = await Promise.all(engines.map(engine => startGateway(t, engine)))
  const made = makeCertificate('first')
  const secure = await Promise.all(engines.map(engine => startSecure(t, engine, made)))
  // Done with its handshake, a connection owes its headers in turn. None of them ever closes its side.
  await Promise.all(secure.map(({ port }) => greet(t, port, made.cert)))
  for (const [i, { port }] of started.entries()) {
    const slow = connectPlain({ port, host: '127.0.0.1', allowHalfOpen: true })
    slow.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\nx: ')
    const trickle = setInterval(() => slow.writable && slow.write('a'), 100)
    t.after(() => clearInterval(trickle))
    const silent = connectPlain({ port, host: '127.0.0.1', allowHalfOpen: true })
    const shy = connectPlain({ port: secure[i]?.port ?? 0, host: '127.0.0.1', allowHalfOpen: true })
    for (const socket of [slow, silent, shy]) t.after(() => socket.on('error', () => {}).destroy())
    slow.on('error', () => {})
  }
  const counts = (): number[] => [...started, ...secure].map(({ gateway }) => gateway.probe.connections)
  await waitFor(() => counts().join() === '2,2,2,2', 'all connections')
  const sinceMs = performance.now()
  // Ten seconds, and the four in which uWebSockets.js looks.
  while (counts().some(count => count > 0)) {
    assert.ok(performance.now() - sinceMs < 18_000, `still open: ${counts().join()}`)
    await new Promise(resolve => setImmediate(resolve))
  }
  assert.ok(performance.now() - sinceMs > 5_000)
})
