/** Keys on ES01: what a hello is answered, what a frame is refused before it is decoded, and revocation. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeHello, helloStatuses } from '../../../../src/wire/es01/handshake.ts'
import { encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import type { FakePrincipal } from '../fake-keys.ts'
import { startGateway, until, type Fixture, type RawClient } from './fixture.ts'

const ping = (id: number): Buffer => encodeFrame(id, opcodes.ping, Buffer.alloc(0))
const produce = (id: number, topic = 't'): Buffer => encodeProduceFrame(id, topic, [{ value: 'v', partition: 0 }])
const consume = (id: number, topic = 't'): Buffer =>
  encodeConsumeFrame(id, { topic, partition: 0, offset: 0, maxRecords: 10, maxBytes: 1000 })

/** A hello with any bytes for a token. */
function helloWith(token: Buffer): Buffer {
  const hello = Buffer.concat([encodeHello('', 0), token])
  hello.writeUInt32BE(token.length, 8)
  return hello
}

interface Reply {
  readonly status: number
  readonly message: string
}

async function replyTo(client: RawClient): Promise<Reply> {
  const head = await client.take(13)
  assert.equal(head.toString('latin1', 0, 4), 'ES01')
  assert.equal(head.readUInt32BE(5), 0)
  const message = await client.take(head.readUInt32BE(9))
  return { status: head[4] ?? -1, message: message.toString() }
}

/** A listener that asks for keys, and a client with one for topic `t`. */
async function startGuarded(t: TestContext): Promise<Fixture & { key: FakePrincipal; client: RawClient }> {
  const fixture = await startGateway(t, { settings: { auth: 'required' } })
  const key = fixture.broker.keys.add('good', 't')
  const client = await fixture.open()
  client.send(encodeHello('good', 0))
  assert.deepEqual(await replyTo(client), { status: helloStatuses.ok, message: '' })
  return { ...fixture, key, client }
}

describe('a hello where keys are asked for', () => {
  const refusals: readonly (readonly [string, Buffer, number, RegExp, 'authRequired' | 'authFailed' | 'badMagic'])[] = [
    ['without a token', helloWith(Buffer.alloc(0)), 3, /empty/, 'authRequired'],
    ['with a token that is not UTF-8', helloWith(Buffer.from([0xff, 0xfe])), 3, /not UTF-8/, 'authRequired'],
    ['with the token of no key', helloWith(Buffer.from('bad')), 2, /no key/, 'authFailed'],
    ['with the token of a revoked key', helloWith(Buffer.from('gone')), 2, /^key revoked$/, 'authFailed'],
    [
      'with another magic',
      Buffer.concat([Buffer.from('HELO'), helloWith(Buffer.from('good')).subarray(4)]),
      1,
      /ES01/,
      'badMagic'
    ]
  ]
  for (const [what, hello, status, words, reason] of refusals) {
    test(`${what} is refused with status ${status}, and the connection closed`, async t => {
      const { open, broker, gateway } = await startGateway(t, { settings: { auth: 'required' } })
      broker.keys.add('good', 't')
      broker.keys.add('gone', 't').isRevoked = true
      const client = await open()
      client.send(Buffer.concat([hello, ping(1)]))
      const reply = await replyTo(client)
      assert.equal(reply.status, status)
      assert.match(reply.message, words)
      await client.closed()
      assert.deepEqual([client.restBytes, gateway.probe.refused[reason], gateway.probe.requests], [0, 1, 0])
    })
  }

  test('with the token of a key is accepted, byte by byte too', async t => {
    const { open, broker } = await startGateway(t, { settings: { auth: 'required' } })
    broker.keys.add('good', 't')
    const client = await open()
    for (const byte of Buffer.concat([encodeHello('good', 0), ping(1)])) client.send(Buffer.from([byte]))
    assert.deepEqual(await replyTo(client), { status: 0, message: '' })
    assert.equal((await client.frame()).opcode, opcodes.pong)
  })
})

describe('a topic that the key does not cover', () => {
  test('is refused before anything else of the frame is decoded, and the connection goes on', async t => {
    const { client, broker } = await startGuarded(t)
    const torn = (opcode: number, id: number): Buffer => encodeFrame(id, opcode, Buffer.from('\0\x05other\xff\xff\xff'))
    client.send(
      Buffer.concat([torn(opcodes.produce, 1), torn(opcodes.consume, 2), produce(3, 'other'), consume(4, 'other')])
    )
    for (const [id, words] of [
      [1, "forbidden: this key may not produce: that takes write on 'other'"],
      [2, "forbidden: this key may not consume: that takes read on 'other'"],
      [3, "forbidden: this key may not produce: that takes write on 'other'"],
      [4, "forbidden: this key may not consume: that takes read on 'other'"]
    ] as const) {
      assert.equal(await client.errorText(id), words)
    }
    assert.equal(broker.submitted, 0)
    client.send(produce(5))
    assert.equal((await client.frame()).opcode, opcodes.produced)
  })

  test('is refused as malformed where it is not whole, or not UTF-8', async t => {
    const { client } = await startGuarded(t)
    for (const [id, payload] of [Buffer.from('\0'), Buffer.from('\0\x09t'), Buffer.from([0, 1, 0xff])].entries()) {
      client.send(encodeFrame(id, opcodes.produce, payload))
      assert.match(await client.errorText(id), /^decode: /)
    }
  })
})

describe('a key that is revoked while its connection is open', () => {
  test('gets `key revoked` for its next frame, whatever it is, and the connection is closed', async t => {
    for (const frame of [ping(7), produce(7), consume(7), encodeFrame(7, opcodes.produce, Buffer.from([0xff]))]) {
      await t.test(`opcode ${frame[8]}, ${frame.length} bytes`, async t => {
        const { client, key, gateway, broker } = await startGuarded(t)
        client.send(produce(1))
        await client.frame()
        key.isRevoked = true
        client.send(Buffer.concat([frame, produce(8)]))
        assert.equal(await client.errorText(7), 'key revoked')
        await client.closed()
        assert.deepEqual([client.restBytes, broker.submitted, gateway.probe.refused.keyRevoked], [0, 1, 1])
      })
    }
  })

  test('hears what became of a produce that was on its way, and reads nothing that was asked for before', async t => {
    const { client, key, broker } = await startGuarded(t)
    broker.isHeld = true
    client.send(Buffer.concat([produce(1), consume(2)]))
    await until('both are in progress', () => broker.inProgress === 2)
    key.isRevoked = true
    broker.release()
    const answers = await client.frames(2)
    const [produced, read] = answers.sort((a, b) => a.id - b.id)
    assert.equal(produced?.opcode, opcodes.produced)
    assert.deepEqual([read?.opcode, read?.payload.toString()], [opcodes.error, 'key revoked'])
    client.send(ping(3))
    assert.equal(await client.errorText(3), 'key revoked')
    await client.closed()
  })

  test('reads nothing of an answer in several chunks either', async t => {
    const { client, key, broker } = await startGuarded(t)
    broker.chunkBytes = 1000
    broker.bigValueBytes = 10_000
    broker.isHeld = true
    client.send(consume(1))
    await until('the read is in progress', () => broker.inProgress === 1)
    key.isRevoked = true
    broker.release()
    assert.equal(await client.errorText(1), 'key revoked')
  })

  test('is refused for a frame that waited for room', async t => {
    const { client, key, broker } = await startGuarded(t)
    broker.isFull = true
    client.send(produce(1))
    await until('the frame waits', () => broker.waitingForRoom === 1)
    key.isRevoked = true
    broker.makeRoom()
    assert.equal(await client.errorText(1), 'key revoked')
    await client.closed()
    assert.equal(broker.submitted, 0)
  })

  test('leaves the connections of other keys alone', async t => {
    const { key, open, broker } = await startGuarded(t)
    broker.keys.add('other', 't')
    const other = await open()
    other.send(encodeHello('other', 0))
    await replyTo(other)
    key.isRevoked = true
    other.send(produce(1))
    assert.equal((await other.frame()).opcode, opcodes.produced)
  })
})
