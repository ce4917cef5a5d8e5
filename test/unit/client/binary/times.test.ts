/** The times that a caller names bound the whole of a call, and nothing of it goes on after its end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import { BinaryClient, PipelinedClient } from '../../../../src/client/binary/index.ts'
import { Flight } from '../../../../src/client/binary/flight.ts'
import { connectingOf } from '../../../../src/client/binary/options.ts'
import { Session, type Send } from '../../../../src/client/binary/session.ts'
import { connectEs01, type Es01Client } from '../../../../src/client/es01/client.ts'
import { waitFor, type Es01Address } from '../../../support/broker.ts'
import { startFakeBroker } from './fake-broker.ts'

/** Longer than any test: what waits for it does not end. */
const FOREVER_MS = 24 * 60 * 60 * 1000
const bounded = { timeout: 20_000 }

/** A listener that takes connections and says nothing. */
async function startMute(t: TestContext): Promise<{ address: Es01Address; sockets: Socket[] }> {
  const sockets: Socket[] = []
  const server = createServer(socket => sockets.push(socket.on('error', () => {}).resume()))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return { address: { host: '127.0.0.1', port: address.port }, sockets }
}

describe('the time of a delivery', () => {
  for (const idempotent of [true, false]) {
    test(
      `ends the wait for a request in flight, whose connection goes on; idempotent ${idempotent}`,
      bounded,
      async t => {
        const broker = await startFakeBroker(t)
        broker.fateOf = () => 'silence'
        const client = new PipelinedClient({
          ...broker.address,
          idempotent,
          lingerMs: 0,
          // Long enough for a busy machine to connect and to answer in.
          deliveryTimeoutMs: 1000,
          requestTimeoutMs: FOREVER_MS
        })
        t.after(() => client.destroy())
        await assert.rejects(client.send('t', { value: 'v', partition: 0 }), { kind: 'timeout', written: 'unknown' })
        const [late] = broker.produced
        assert.ok(late !== undefined)
        broker.fateOf = () => 'write'
        broker.settle(late, 'write')
        // What is answered late is dropped, and not taken for an answer to anything else.
        assert.equal((await client.send('t', { value: 'v', partition: 0 })).offset, 1)
        assert.equal(broker.produced.at(-1)?.connection.index, 0)
      }
    )
  }

  test('ends the wait for the number of partitions, whatever the broker says to wait', bounded, async t => {
    const broker = await startFakeBroker(t)
    broker.take = (frame, connection) => connection.refuse(frame.requestId, 'rate limited: retry in 86400s')
    const client = new PipelinedClient({ ...broker.address, lingerMs: 0, deliveryTimeoutMs: 50 })
    t.after(() => client.destroy())
    await assert.rejects(client.send('t', { key: 'k', value: 'v' }), { kind: 'timeout', written: 'no' })
  })

  test('ends the wait for a place among the requests in flight', bounded, async t => {
    const { address } = await startFakeBroker(t)
    const session = new Session(connectingOf(address))
    t.after(() => session.destroy())
    const flight = new Flight(session)
    const silent: Send<void> = () => new Promise(() => {})
    for (let i = 0; i < 32; i++) void flight.run(performance.now() + FOREVER_MS, silent)
    await assert.rejects(flight.run(performance.now() + 10, silent), { kind: 'timeout', written: 'no' })
  })
})

test('the time of a request is what is left of its call', async t => {
  const { address } = await startFakeBroker(t)
  const session = new Session(connectingOf({ ...address, requestTimeoutMs: 1000 }))
  const timeOf = (leftMs: number): Promise<number> =>
    session.exchange({} as Es01Client, performance.now() + leftMs, (_, timeoutMs) => Promise.resolve(timeoutMs))
  assert.ok((await timeOf(50)) <= 50)
  assert.equal(await timeOf(5000), 1000)
  assert.equal(await timeOf(-5), 1)
})

test('a call that is sent again has the time that was left, not a whole one more', bounded, async t => {
  const broker = await startFakeBroker(t)
  const seen: number[] = []
  broker.take = (_, connection) => {
    seen.push(connection.index)
    if (connection.index === 0) connection.drop()
  }
  const client = new BinaryClient({ ...broker.address, requestTimeoutMs: 200, reconnect: { initialMs: 1, maxMs: 1 } })
  t.after(() => client.destroy())
  await assert.rejects(client.ping(), (error: Error) => {
    const [, ms] = /^no answer in (\d+) ms$/.exec(error.message) ?? []
    assert.ok(ms !== undefined && Number(ms) < 200, error.message)
    return true
  })
  assert.deepEqual(seen, [0, 1])
})

test('who waits for a place keeps it when the connection is lost meanwhile', async () => {
  let isOpen = true
  const connection = () => ({ isOpen }) as Es01Client
  const release: (() => void)[] = []
  const order: string[] = []
  const session = {
    connected: () => Promise.resolve(connection()),
    exchange: (current: Es01Client, _: number, send: Send<void>) => send(current, 1)
  } as unknown as Session
  const flight = new Flight(session)
  const hold: Send<void> = () => new Promise(resolve => release.push(resolve))
  const note = (name: string): Send<void> => {
    return () => {
      order.push(name)
      return Promise.resolve()
    }
  }
  const held = Array.from({ length: 32 }, () => flight.run(performance.now() + FOREVER_MS, hold))
  await waitFor('all places to be taken', () => release.length === 32)
  const waiting = ['a', 'b', 'c'].map(name => flight.run(performance.now() + FOREVER_MS, note(name)))
  isOpen = false
  release[0]?.()
  await Promise.all(waiting)
  assert.deepEqual(order, ['a', 'b', 'c'])
  for (const free of release) free()
  await Promise.all(held)
})

describe('a client that is ended while it connects', () => {
  test('leaves no connection behind, and its calls end', bounded, async t => {
    const { address, sockets } = await startMute(t)
    const options = { ...address, connectTimeoutMs: FOREVER_MS, requestTimeoutMs: FOREVER_MS }
    const client = new BinaryClient(options)
    const producer = new PipelinedClient(options)
    const calls = [client.ping(), producer.send('t', { value: 'v', partition: 0 }), producer.send('t', { value: 'v' })]
    await waitFor('both to connect', () => sockets.length === 2)
    const closed = sockets.map(socket => once(socket, 'close'))
    const outcomes = calls.map(call => assert.rejects(call, { kind: 'closed', written: 'no', retryable: false }))
    client.destroy()
    producer.destroy()
    await Promise.all([...closed, ...outcomes])
  })

  test('and was only asked to close, once nobody waits for the connection', bounded, async t => {
    const { address, sockets } = await startMute(t)
    const client = new BinaryClient({ ...address, connectTimeoutMs: FOREVER_MS, requestTimeoutMs: 20 })
    await assert.rejects(client.ping(), { kind: 'connection', written: 'no' })
    await waitFor('it to connect', () => sockets.length === 1)
    const [socket] = sockets
    assert.ok(socket !== undefined)
    await Promise.all([once(socket, 'close'), client.close()])
  })

  test('or was told to by a signal, before or meanwhile', bounded, async t => {
    const { address, sockets } = await startMute(t)
    const gone = AbortSignal.abort()
    await assert.rejects(connectEs01({ ...address, signal: gone }), { kind: 'connection', written: 'no' })
    const ending = new AbortController()
    const connecting = connectEs01({ ...address, connectTimeoutMs: FOREVER_MS, signal: ending.signal })
    await waitFor('it to connect', () => sockets.length === 1)
    ending.abort()
    await assert.rejects(connecting, { kind: 'connection', written: 'no' })
    assert.equal(sockets.length, 1)
  })
})
