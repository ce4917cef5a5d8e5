/** The client against the real listener, and against peers that break the protocol. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { connectEs01, encodeProduceFrame, Es01Error } from '../../../../src/client/es01/client.ts'
import type { Es01Client } from '../../../../src/client/es01/client.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeHelloReply } from '../../../../src/wire/es01/handshake.ts'
import { startGateway, until } from '../../gateway/es01/fixture.ts'

async function connected(t: TestContext, port: number, requestTimeoutMs = 10_000): Promise<Es01Client> {
  const client = await connectEs01({ host: '127.0.0.1', port, requestTimeoutMs })
  t.after(() => client.destroy())
  return client
}

/** A peer that does with each connection what the test says. */
async function peer(t: TestContext, serve: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    // What the client does to the connection is what the tests look at, from the client's side.
    socket.on('error', () => {})
    serve(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  const address = server.address()
  assert.ok(typeof address === 'object' && address !== null)
  return address.port
}

/** A peer that accepts the hello and answers each request by what `answer` gives. */
function greetingPeer(t: TestContext, answer: (id: number) => Buffer | null): Promise<number> {
  return peer(t, socket => {
    socket.once('data', () => {
      socket.write(encodeHelloReply(0, 0, ''))
      socket.on('data', chunk => {
        const frame = answer(chunk.readUInt32BE(4))
        if (frame === null) socket.destroy()
        else socket.write(frame)
      })
    })
  })
}

function rejects(promise: Promise<unknown>, expected: Partial<Es01Error>): Promise<void> {
  return assert.rejects(promise, error => {
    assert.ok(error instanceof Es01Error)
    for (const [name, value] of Object.entries(expected)) assert.equal(Reflect.get(error, name), value, error.message)
    return true
  })
}

describe('a client of a broker', () => {
  test('produces and reads back keys and values as they were', async t => {
    const { port } = await startGateway(t)
    const client = await connected(t, port)
    const value = Buffer.from([0, 1, 255])
    const results = await client.produce('t', [
      { key: 'ключ', value, partition: 2 },
      { value: 'text', partition: 2 }
    ])
    assert.deepEqual(results, [
      { partition: 2, offset: 0, duplicate: false },
      { partition: 2, offset: 1, duplicate: false }
    ])
    const consumed = await client.consume({ topic: 't', partition: 2, offset: 0, maxRecords: 10, maxBytes: 1000 })
    const timestampMs = 1_700_000_000_000
    assert.deepEqual(consumed, {
      nextOffset: 2,
      highWatermark: 2,
      records: [
        { partition: 2, offset: 0, timestampMs, key: Buffer.from('ключ'), value },
        { partition: 2, offset: 1, timestampMs, key: null, value: Buffer.from('text') }
      ]
    })
  })

  test('keeps what it read while later answers arrive', async t => {
    const { port } = await startGateway(t)
    const client = await connected(t, port)
    await client.produce('t', [{ value: 'keep me', partition: 0 }])
    const request = { topic: 't', partition: 0, offset: 0, maxRecords: 1, maxBytes: 1 }
    const first = await client.consume(request)
    await client.produce('t', [{ value: Buffer.alloc(100_000, 1), partition: 0 }])
    for (let i = 0; i < 20; i++) await client.consume({ ...request, offset: 1 })
    assert.equal(first.records[0]?.value.toString(), 'keep me')
  })

  test('has many requests in flight, more than the broker takes at once', async t => {
    const { port, broker } = await startGateway(t)
    const client = await connected(t, port)
    broker.isHeld = true
    const answers = Array.from({ length: 200 }, (_, i) => client.produce('t', [{ value: `${i}`, partition: 1 }]))
    await until('the broker is busy', () => broker.inProgress === 32)
    assert.equal(client.inFlight, 200)
    broker.release()
    const offsets = (await Promise.all(answers)).map(results => results[0]?.offset)
    assert.deepEqual(
      offsets,
      Array.from({ length: 200 }, (_, i) => i)
    )
    assert.equal(client.inFlight, 0)
  })

  test('tells a refusal from an uncertain outcome, and goes on after it', async t => {
    const { port, broker } = await startGateway(t)
    const client = await connected(t, port)
    await rejects(client.produce('nope', [{ value: 'v' }]), { kind: 'refused', written: 'no' })
    broker.throwsNext = true
    await rejects(client.produce('t', [{ value: 'v' }]), { kind: 'refused', written: 'unknown' })
    await client.ping()
  })

  test('sends a prepared frame again and again', async t => {
    const { port, broker } = await startGateway(t)
    const client = await connected(t, port)
    const frame = encodeProduceFrame(0, 't', [{ value: 'same', partition: 3 }])
    const ids = new Set<number>()
    for (let i = 0; i < 5; i++) {
      const answer = await client.sendFrame(frame)
      assert.equal(answer.opcode, opcodes.produced)
      ids.add(answer.requestId)
    }
    assert.equal(ids.size, 5)
    assert.equal(broker.log('t', 3).length, 5)
  })

  test('that closes gets the answers to its open requests first, and takes no more', async t => {
    const { port, broker } = await startGateway(t)
    const client = await connected(t, port)
    broker.isHeld = true
    const answer = client.produce('t', [{ value: 'v', partition: 0 }])
    await until('it is in progress', () => broker.inProgress === 1)
    const closed = client.close()
    await rejects(client.ping(), { kind: 'connection', written: 'no' })
    broker.release()
    assert.equal((await answer).length, 1)
    await closed
  })
})

describe('a client that loses its broker', () => {
  test('says no before anything was sent and unknown after', async t => {
    const port = await greetingPeer(t, () => null)
    const client = await connected(t, port)
    await rejects(client.produce('t', [{ value: 'v' }]), { kind: 'connection', written: 'unknown' })
    await rejects(client.produce('t', [{ value: 'v' }]), { kind: 'connection', written: 'no' })
  })

  test('gives up on a request after its time, drops the late answer, and goes on', async t => {
    let late: Buffer | null = null
    const port = await greetingPeer(t, id => {
      const pong = encodeFrame(id, opcodes.pong, Buffer.alloc(0))
      const answer = late === null ? Buffer.alloc(0) : Buffer.concat([late, pong])
      late ??= pong
      return answer
    })
    const client = await connected(t, port, 40)
    await rejects(client.ping(), { kind: 'timeout', written: 'unknown' })
    await client.ping()
  })

  test('closes at an answer that nobody asked for, or that cannot be an answer', async t => {
    const frames = [
      (id: number) => encodeFrame(id + 1, opcodes.pong, Buffer.alloc(0)),
      (id: number) => encodeFrame(id, opcodes.ping, Buffer.alloc(0)),
      () => Buffer.alloc(8)
    ]
    for (const frame of frames) {
      const client = await connected(t, await greetingPeer(t, frame))
      await rejects(client.ping(), { kind: 'protocol' })
    }
  })

  test('does not take the wrong answer for a right one', async t => {
    const port = await greetingPeer(t, id => encodeFrame(id, opcodes.produced, Buffer.from('00000000', 'hex')))
    const client = await connected(t, port)
    await rejects(client.ping(), { kind: 'protocol' })
    await rejects(client.produce('t', [{ value: 'v' }]), { kind: 'protocol', written: 'unknown' })
  })
})

describe('a client that cannot connect', () => {
  test('says where and why', async t => {
    const port = await peer(t, () => {})
    const refusing = await peer(t, socket => socket.end(encodeHelloReply(2, 0, 'no such key')))
    const other = await peer(t, socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const closing = await peer(t, socket => socket.destroy())
    const at = (to: number) => connectEs01({ host: '127.0.0.1', port: to, connectTimeoutMs: to === port ? 30 : 5000 })
    await rejects(at(port), { kind: 'timeout', written: 'no', message: `no handshake with 127.0.0.1:${port} in 30 ms` })
    const message = `127.0.0.1:${refusing} refused the handshake: no such key (status 2)`
    await rejects(at(refusing), { kind: 'refused', written: 'no', message })
    await rejects(at(other), { kind: 'protocol', written: 'no' })
    await rejects(at(closing), { kind: 'connection', written: 'no' })
  })
})
