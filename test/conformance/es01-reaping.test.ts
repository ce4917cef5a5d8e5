/**
 * Clients that go wrong, or go away without a word: each is closed for its own reason, which the page of metrics counts,
 * its place is free again and nothing of what it held stays held (the fixture looks for that at its end).
 */
import assert from 'node:assert/strict'
import { connect as connectPlain } from 'node:net'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../src/base/clock.ts'
import { silentLogger } from '../../src/base/logger.ts'
import { gatewayReaders } from '../../src/composition/metrics-gateways.ts'
import { Certificates } from '../../src/gateway/shared/certificates.ts'
import { FrameMemory } from '../../src/gateway/shared/frame-memory.ts'
import type { CloseReason } from '../../src/gateway/es01/probe.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../src/wire/es01/produce-frame.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { startBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { openRaw, range, type RawClient } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'
import { startGateway, until, type Fixture, type FixtureOptions } from '../unit/gateway/es01/fixture.ts'
import { consume, goesOn, hex, metric } from './es01-stage.ts'

const MIB = 1024 * 1024

function produce(id: number, valueBytes = 1): Buffer {
  return encodeProduceFrame(id, 't', [{ value: Buffer.alloc(valueBytes, id), partition: 0 }])
}

const read = (id: number): Buffer => consume(id, { topic: 't', maxBytes: 8 * MIB })

/** What the page of metrics says of closed connections: reasons that are not zero. */
async function pageOf({ gateway, requestBudget, replyBudget }: Fixture): Promise<Record<string, number>> {
  const budgets = { requestBudget, replyBudget, frameMemory: new FrameMemory(requestBudget) }
  const readers = gatewayReaders({ http: null, es01: gateway, kafka: null, ...budgets })
  const samples = await readers.millrace_es01_refused_connections_total()
  return Object.fromEntries(samples.flatMap(({ labels, value }) => (value === 0 ? [] : [[labels['reason'], value]])))
}

/** Has any connection been closed for a reason? */
function hasReason({ gateway }: Fixture): boolean {
  return Object.values(gateway.probe.refused).some(count => count > 0)
}

/** A client that sends this and is then dead: it reads nothing, says nothing and does not end. */
async function dead(client: RawClient, ...sent: readonly Buffer[]): Promise<void> {
  client.socket.pause()
  for (const bytes of sent) client.send(bytes)
  await until('all has left', () => client.socket.writableLength === 0)
}

interface Reaping {
  readonly reason: CloseReason
  readonly what: string
  readonly options: FixtureOptions
  /** Brings one client into its end. */
  readonly act: (fixture: Fixture, t: TestContext) => Promise<void>
}

const guarded = { settings: { auth: 'required' } } as const
const hello = encodeHello('', 0)

/** A client that is refused for these bytes. */
function refused(reason: CloseReason, what: string, bytes: Buffer, options: FixtureOptions = {}): Reaping {
  return { reason, what, options, act: async ({ open }) => (await open()).send(bytes) }
}

const reapings: readonly Reaping[] = [
  refused('badMagic', 'another magic', hex('45533032 00000000 00000000')),
  refused('tokenTooLong', 'a token of 1025 bytes', hex('45533031 00000000 00000401')),
  refused('authRequired', 'no token where one is asked for', hello, guarded),
  refused('authFailed', 'the token of no key', encodeHello('stranger', 0), guarded),
  refused('frameLength', 'a length below 5', Buffer.concat([hello, hex('00000004')])),
  refused('unknownOpcode', 'opcode 4', Buffer.concat([hello, hex('00000005 00000001 04')])),
  {
    reason: 'keyRevoked',
    what: 'a frame after the key was revoked',
    options: guarded,
    async act({ broker, open }) {
      const key = broker.keys.add('good', 't')
      const client = await open()
      client.send(encodeHello('good', 0))
      await client.take(13)
      key.isRevoked = true
      client.send(produce(1))
    }
  },
  {
    reason: 'helloTimeout',
    what: 'nothing, dead',
    options: { timeouts: { helloMs: 40 } },
    act: async ({ open }) => dead(await open())
  },
  {
    reason: 'helloTimeout',
    what: 'half of a hello, dead',
    options: { timeouts: { helloMs: 40 } },
    act: async ({ open }) => dead(await open(), hello.subarray(0, 7))
  },
  {
    reason: 'bodyTimeout',
    what: 'half of a frame, dead',
    options: { timeouts: { bodyMs: 40 } },
    act: async ({ greet }) => dead(await greet(), produce(1, 3 * MIB).subarray(0, 2 * MIB))
  },
  {
    reason: 'bodyTimeout',
    what: 'a frame that comes byte by byte, for ever',
    options: { timeouts: { bodyMs: 60 } },
    async act({ greet }, t) {
      const client = await greet()
      const frame = produce(1, MIB)
      let sent = 0
      const timer = setInterval(() => client.send(frame.subarray(sent, ++sent)), 5)
      atEnd(t, () => clearInterval(timer))
    }
  },
  {
    reason: 'idleTimeout',
    what: 'nothing after the hello, dead',
    options: { settings: { binaryIdleTimeoutMs: 40 } },
    act: async ({ greet }) => dead(await greet())
  },
  {
    reason: 'slowReader',
    what: 'consumes whose answers nobody reads, dead',
    options: { timeouts: { writeMs: 60 } },
    async act({ greet, broker }) {
      broker.bigValueBytes = 6 * MIB
      await dead(await greet(), ...range(12).map(read))
    }
  },
  {
    reason: 'slowReader',
    what: 'the same, and its end: half open, and reads nothing',
    options: { timeouts: { writeMs: 60 } },
    async act({ greet, broker }) {
      broker.bigValueBytes = 6 * MIB
      const client = await greet()
      await dead(client, ...range(12).map(read))
      client.socket.end()
    }
  },
  {
    reason: 'memory',
    what: 'half of a frame that holds what others wait for, dead',
    options: { requestBytes: 3 * MIB, timeouts: { stalledMs: 40 } },
    async act({ greet }) {
      await dead(await greet(), produce(1, 4 * MIB).subarray(0, MIB))
    }
  },
  {
    reason: 'connectionsPerIp',
    what: 'a connection more than its address may have',
    options: { settings: { binaryMaxConnectionsPerIp: 0 } },
    async act({ greet, open }) {
      const first = await greet()
      await (await open()).closed()
      first.socket.destroy()
    }
  },
  {
    reason: 'connectionsTotal',
    what: 'a connection more than there may be',
    options: { connectionsMax: 1 },
    async act({ greet, open }) {
      const first = await greet()
      await (await open()).closed()
      first.socket.destroy()
    }
  }
]

for (const { reason, what, options, act } of reapings) {
  test(`is closed as ${reason}, and leaves its place: ${what}`, async t => {
    const fixture = await startGateway(t, options)
    await act(fixture, t)
    await until('it is gone and counted', () => {
      return fixture.gateway.connectionCount === 0 && hasReason(fixture)
    })
    assert.deepEqual(await pageOf(fixture), { [reason]: 1 })
    // Where clocks run out soon, or keys are asked for, that nothing is left says the same.
    if (options.timeouts === undefined && options.settings === undefined) await goesOn(await fixture.greet())
  })
}

/** A listener with a certificate; what connects to it sends nothing of itself. */
async function startSecure(t: TestContext, options: FixtureOptions): Promise<Fixture> {
  const files = writeCertificate(temporaryDirectory(t), makeCertificate('reaping'))
  const certificates = new Certificates({ files, logger: silentLogger, clock: systemClock })
  return startGateway(t, { ...options, certificates })
}

for (const [reason, what, sent] of [
  ['handshakeTimeout', 'nothing, dead', Buffer.alloc(0)],
  ['handshakeTimeout', 'the head of a handshake, dead', hex('16 0301 0200')],
  ['handshakeFailed', 'a hello in plain', hello]
] as const) {
  test(`is closed as ${reason} over TLS, and leaves its place: ${what}`, async t => {
    const fixture = await startSecure(t, { timeouts: { handshakeMs: 60 } })
    const socket = connectPlain(fixture.port, '127.0.0.1')
    // However the broker ends it: what counts is what it says of it.
    socket.on('error', () => {}).pause()
    atEnd(t, () => socket.destroy())
    socket.write(sent)
    await until('it is counted', () => hasReason(fixture))
    assert.deepEqual(await pageOf(fixture), { [reason]: 1 })
    await until('its place is free', () => fixture.gateway.handshakeCount + fixture.gateway.connectionCount === 0)
  })
}

/** What a client has sent when it ends its side, and how many answers are due to it then. */
const ends: readonly (readonly [string, readonly Buffer[], number])[] = [
  ['before its hello', [], 0],
  ['in its hello', [hello.subarray(0, 5)], 0],
  ['after its hello', [hello], 0],
  ['in the length of a frame', [hello, produce(1).subarray(0, 2)], 0],
  ['in a frame', [hello, produce(1), produce(2).subarray(0, -1)], 1],
  ['in a large frame', [hello, produce(1), produce(2, 3 * MIB).subarray(0, 2 * MIB)], 1],
  ['with requests in progress', [hello, ...range(40).map(id => produce(id))], 40]
]

for (const [when, sent, answers] of ends) {
  test(`a client that ends its side ${when} is answered what it asked, let go at once, and counted as no fault`, async t => {
    const fixture = await startGateway(t)
    const client = await fixture.open()
    client.socket.end(Buffer.concat(sent))
    if (sent.length > 0 && sent[0] === hello) await client.take(13)
    assert.equal((await client.frames(answers)).length, answers)
    await client.closed()
    assert.equal(client.restBytes, 0)
    await until('its place is free', () => fixture.gateway.connectionCount === 0)
    assert.deepEqual(await pageOf(fixture), {})
    await until('what it half sent is forgotten', () => fixture.requestBudget.usedBytes === 0)
  })
}

test('every reason has a test here that ends in it, but for a bug of ours', async t => {
  const fixture = await startGateway(t)
  const shown = [...reapings.map(({ reason }) => reason), 'handshakeTimeout', 'handshakeFailed', 'bug']
  assert.deepEqual(Object.keys(fixture.gateway.probe.refused).sort(), [...new Set(shown)].sort())
})

test('a running broker shows the reasons on /metrics', async t => {
  const broker = await startBroker(t, { flags: { '--binary-idle-timeout': '100ms' } })
  const api = new HttpApi(broker.url)
  const [idle, stranger] = [await openRaw(t, broker.es01), await openRaw(t, broker.es01)]
  idle.send(hello)
  stranger.send(hex('45533032 00000000 00000000'))
  await Promise.all([idle.closed(), stranger.closed()])
  const counts = ['idleTimeout', 'badMagic', 'slowReader'].map(reason => {
    return metric(api, 'millrace_es01_refused_connections_total', { reason })
  })
  assert.deepEqual(await Promise.all(counts), [1, 1, 0])
  assert.equal(await metric(api, 'millrace_connections', { protocol: 'es01' }), 0)
})
