/** The ES01 listener over TLS: the same protocol, with handshakes that cost no more than a connection may. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect as connectPlain, type Socket } from 'node:net'
import { test, type TestContext } from 'node:test'
import { connect, type TLSSocket } from 'node:tls'
import { systemClock } from '../../../../src/base/clock.ts'
import { silentLogger } from '../../../../src/base/logger.ts'
import { Certificates } from '../../../../src/gateway/shared/certificates.ts'
import { encodeHello } from '../../../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { makeCertificate, writeCertificate, type TestCertificate } from '../../../support/certificate.ts'
import { agreeOnGzip, plainFrame, withPayload } from '../../../support/es01-gzip.ts'
import { temporaryDirectory } from '../../../support/temporary-directory.ts'
import { RawClient, startGateway, until, type Fixture, type FixtureOptions } from './fixture.ts'

const MIB = 1024 * 1024

interface SecureFixture extends Fixture {
  readonly made: TestCertificate
  readonly certificates: Certificates
  /** A connection whose handshake is done. */
  secure(ca?: string): Promise<{ client: RawClient; socket: TLSSocket }>
  /** One that sends nothing of itself. */
  plain(): Socket
  replace(next: TestCertificate): string | null
}

async function startSecure(t: TestContext, options: FixtureOptions = {}): Promise<SecureFixture> {
  const folder = temporaryDirectory(t)
  const made = makeCertificate('first')
  const certificates = new Certificates({
    files: writeCertificate(folder, made),
    logger: silentLogger,
    clock: systemClock
  })
  const fixture = await startGateway(t, { ...options, certificates })
  const { port } = fixture
  return {
    ...fixture,
    made,
    certificates,
    async secure(ca = made.cert) {
      const socket = connect({ host: '127.0.0.1', port, ca })
      t.after(() => socket.destroy())
      const client = new RawClient(socket)
      await once(socket, 'secureConnect')
      return { client, socket }
    },
    plain() {
      const socket = connectPlain(port, '127.0.0.1')
      socket.on('error', () => {}).resume()
      t.after(() => socket.destroy())
      return socket
    },
    replace(next) {
      writeCertificate(folder, next)
      return certificates.reload()
    }
  }
}

const produce = (id: number, bytes: number): Buffer =>
  encodeProduceFrame(id, 't', [{ value: Buffer.alloc(bytes, id), partition: 0 }])

async function greet(client: RawClient): Promise<void> {
  client.send(encodeHello('', 0))
  assert.equal((await client.take(13)).toString('hex'), '45533031000000000000000000')
}

test('frames of any size arrive whole and in order over TLS, and a client that half-closes gets every answer', async t => {
  const { secure, broker, gateway, certificates } = await startSecure(t)
  const { client, socket } = await secure()
  await greet(client)
  assert.deepEqual([gateway.connectionCount, gateway.directCount, gateway.handshakeCount], [1, 0, 0])
  const sizes = [1, 100, 65_536, 1_000_000, 3, 3_000_000, 7]
  client.send(Buffer.concat(sizes.map((bytes, i) => produce(i, bytes))))
  socket.end()
  assert.equal((await client.frames(sizes.length)).length, sizes.length)
  assert.deepEqual(
    broker.log('t', 0).map(record => record.value.length),
    sizes
  )
  assert.ok(broker.log('t', 0).every((record, i) => record.value.equals(Buffer.alloc(sizes[i] ?? 0, i))))
  await client.closed()
  assert.equal(certificates.reloadFailures, 0)
})

test('memory that is used up stops the reading over TLS too, until some is free', async t => {
  const { secure, broker, requestBudget, gateway } = await startSecure(t, { requestBytes: MIB })
  assert.ok(requestBudget.tryReserve(MIB))
  const { client } = await secure()
  await greet(client)
  client.send(produce(1, 900_000))
  await until('the reading paused', () => gateway.probe.pauses > 0)
  assert.equal(broker.submitted, 0)
  requestBudget.release(MIB)
  assert.equal((await client.frame()).id, 1)
})

test('a client that speaks no TLS is closed and counted, and others are served on', async t => {
  const { secure, plain, gateway } = await startSecure(t)
  for (const bytes of [encodeHello('', 0), Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(100_000, 7)]) {
    plain().write(bytes)
  }
  await until('all failed', () => gateway.probe.refused.handshakeFailed === 3)
  assert.deepEqual([gateway.connectionCount, gateway.handshakeCount], [0, 0])
  await greet((await secure()).client)
})

test('a handshake that is not done in time is cut off and counted', async t => {
  const { plain, gateway } = await startSecure(t, { timeouts: { handshakeMs: 50 } })
  const silent = plain()
  await once(silent, 'close')
  await until('it is counted', () => gateway.handshakeCount === 0)
  assert.deepEqual([gateway.probe.refused.handshakeTimeout, gateway.handshakeCount], [1, 0])
})

test('unfinished handshakes count against the limits of connections, and give their place back', async t => {
  for (const [options, reason] of [
    [{ settings: { binaryMaxConnectionsPerIp: 2 } }, 'connectionsPerIp'],
    [{ connectionsMax: 2 }, 'connectionsTotal']
  ] as const) {
    const { plain, secure, gateway } = await startSecure(t, options)
    const shy = [plain(), plain()]
    await until('both are in their handshake', () => gateway.handshakeCount === 2)
    plain()
    await until('the third is turned away', () => gateway.probe.refused[reason] === 1)
    for (const socket of shy) socket.destroy()
    await until('both are gone', () => gateway.handshakeCount === 0)
    await greet((await secure()).client)
    assert.equal(gateway.connectionCount, 1)
  }
})

test('gzip goes over TLS too: a large frame is inflated, and those behind it follow', async t => {
  const { secure, broker, gateway } = await startSecure(t)
  const { client } = await secure()
  await agreeOnGzip(client)
  const sizes = [3_000_000, 7, 300_000, 1]
  client.send(Buffer.concat(sizes.map((bytes, i) => withPayload(produce(i, bytes)))))
  for (const _ of sizes) assert.equal((await plainFrame(client)).opcode, 0x81)
  assert.deepEqual(
    broker.log('t', 0).map(record => record.value.length),
    sizes
  )
  assert.equal(gateway.directCount, 0)
})

test('a new certificate is for new connections, and open ones go on', async t => {
  const { secure, made, replace } = await startSecure(t)
  const next = makeCertificate('second')
  const before = await secure()
  await greet(before.client)
  assert.equal(replace(next), null)
  const after = await secure(next.cert)
  assert.equal(after.socket.getPeerCertificate().subject.CN, 'second')
  await assert.rejects(secure(made.cert), /self-signed/)
  before.client.send(produce(1, 10))
  assert.equal((await before.client.frame()).id, 1)
})

test('a stop cuts handshakes off and answers what is in progress', async t => {
  const { secure, plain, gateway, broker } = await startSecure(t)
  const { client } = await secure()
  await greet(client)
  plain()
  await until('one is in its handshake', () => gateway.handshakeCount === 1)
  broker.isHeld = true
  client.send(produce(1, 10))
  await until('it is in progress', () => broker.inProgress === 1)
  const stopped = gateway.stop(5_000)
  await until('the handshake is cut off', () => gateway.handshakeCount === 0)
  broker.release()
  assert.equal((await client.frame()).id, 1)
  client.socket.end()
  await stopped
})
