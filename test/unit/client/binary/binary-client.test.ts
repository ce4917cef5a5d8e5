/** The client of one request and one answer, against a peer that loses connections. */
import assert from 'node:assert/strict'
import { describe, test, type TestContext } from 'node:test'
import { BinaryClient, type ClientOptions } from '../../../../src/client/binary/index.ts'
import { opcodes } from '../../../../src/wire/es01/frame.ts'
import { waitFor } from '../../../support/broker.ts'
import { startPeer } from '../../../support/es01-peer.ts'
import { startFakeBroker, type FakeBroker, type Fate } from './fake-broker.ts'

function clientOf(t: TestContext, broker: FakeBroker, options: Partial<ClientOptions> = {}): BinaryClient {
  const client = new BinaryClient({ ...broker.address, reconnect: { initialMs: 1, maxMs: 5 }, ...options })
  t.after(() => client.destroy())
  return client
}

function inTurn(...fates: readonly Fate[]): () => Fate {
  let next = 0
  return () => fates[next++] ?? 'write'
}

/** Records with sequences. */
function numbered(count: number) {
  return Array.from({ length: count }, (_, i) => ({ value: 'v', partition: 0, sequence: BigInt(i) }))
}

describe('a client whose connection is lost', () => {
  test('reads again over the next one', async t => {
    const answer = Buffer.alloc(20)
    const seen: number[] = []
    const address = await startPeer(t, {
      onFrame: (frame, connection) => {
        seen.push(connection.index)
        if (connection.index < 3) return connection.drop()
        if (frame.opcode === opcodes.ping) return connection.answer(frame.requestId, opcodes.pong, Buffer.alloc(0))
        connection.answer(frame.requestId, opcodes.consumed, answer)
      }
    })
    const client = new BinaryClient({ ...address, reconnect: { initialMs: 1, maxMs: 5 } })
    t.after(() => client.destroy())
    await client.ping()
    const consumed = await client.consume({ topic: 't', partition: 0, offset: 0 })
    assert.deepEqual(consumed, { nextOffset: 0, highWatermark: 0, records: [] })
    assert.deepEqual(seen, [0, 1, 2, 3, 3])
  })

  test('does not produce again what may be written, and says so', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = inTurn('lose')
    const client = clientOf(t, broker)
    await assert.rejects(client.produce('t', [{ value: 'v' }]), {
      kind: 'connection',
      written: 'unknown',
      retryable: true
    })
    assert.equal(broker.produced.length, 1)
    assert.deepEqual(await client.produce('t', [{ value: 'v' }]), [{ partition: 0, offset: 1, duplicate: false }])
  })

  test('produces again what the broker knows by its sequences, up to 128 records', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker)
    broker.fateOf = inTurn('lose', 'drop')
    const results = await client.produce('t', numbered(128), { producerId: 'p' })
    assert.deepEqual([results[0]?.duplicate, results[127]?.offset], [true, 127])
    broker.fateOf = inTurn('lose')
    await assert.rejects(client.produce('t', numbered(129), { producerId: 'q' }), { written: 'unknown' })
    broker.fateOf = inTurn('lose')
    await assert.rejects(client.produce('t', [{ value: 'v', partition: 0 }], { producerId: 'r' }), {
      written: 'unknown'
    })
  })

  test('does not say that nothing was written because the last attempt did not come through', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = inTurn('lose', { refuse: 'forbidden: this key may not' })
    const client = clientOf(t, broker)
    await assert.rejects(client.produce('t', numbered(1), { producerId: 'p' }), { kind: 'refused', written: 'unknown' })
  })
})

describe('a client without a broker', () => {
  test('says that nothing was sent, after its time', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker, { port: 1, requestTimeoutMs: 30 })
    const expected = { kind: 'connection', written: 'no', retryable: true }
    await assert.rejects(client.produce('t', [{ value: 'v' }]), expected)
    await assert.rejects(client.ping(), expected)
  })

  test('ends its calls at once when it is destroyed', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker, { port: 1, requestTimeoutMs: 60_000 })
    const running = client.ping()
    client.destroy()
    await assert.rejects(running, { kind: 'closed' })
    await assert.rejects(client.ping(), { kind: 'closed' })
  })
})

test('a client that is destroyed ends its calls as closed, also those that had left', async t => {
  const broker = await startFakeBroker(t)
  broker.fateOf = () => 'silence'
  const client = clientOf(t, broker)
  const produced = client.produce('t', [{ value: 'v' }])
  await waitFor('the request', () => broker.produced.length === 1)
  broker.take = () => undefined
  const pinged = client.ping()
  await Promise.resolve()
  client.destroy()
  await assert.rejects(produced, { kind: 'closed', written: 'unknown', retryable: false })
  await assert.rejects(pinged, { kind: 'closed', written: 'no', retryable: false })
})

test('a client that closes has its open calls answered first', async t => {
  const broker = await startFakeBroker(t)
  const client = clientOf(t, broker)
  const running = [client.produce('t', [{ value: 'a' }]), client.produce('t', [{ value: 'b' }])]
  await client.close()
  assert.equal((await Promise.all(running)).length, 2)
  await assert.rejects(client.ping(), { kind: 'closed' })
})

test('a client that closes does not wait for ever for a broker that is stopped', async t => {
  const broker = await startFakeBroker(t)
  const client = clientOf(t, broker, { requestTimeoutMs: 50 })
  await client.produce('t', [{ value: 'a' }])
  // Not even the end of the connection is read.
  broker.produced[0]?.connection.socket.pause()
  await client.close()
})

test('options that cannot be are refused when the client is made', () => {
  const address = { host: '127.0.0.1', port: 1 }
  for (const wrong of [
    { token: 42 },
    { tls: { ca: 5 } },
    { tls: { ca: Buffer.from('pem') } },
    { tls: { insecure: 'yes' } },
    { tls: true }
  ]) {
    assert.throws(() => new BinaryClient({ ...address, ...(wrong as object) }), { kind: 'invalid', written: 'no' })
  }
})

test('what cannot be a request is refused before it is sent', async t => {
  const broker = await startFakeBroker(t)
  const client = clientOf(t, broker)
  for (const offset of [-1, 0.5, 2 ** 53]) {
    await assert.rejects(client.consume({ topic: 't', partition: 0, offset }), { kind: 'invalid' })
  }
  await assert.rejects(client.consume({ topic: 't', partition: -1, offset: 0 }), { kind: 'invalid' })
  await assert.rejects(client.produce('t', [{ value: undefined as never }]), { kind: 'invalid', written: 'no' })
  assert.equal(broker.produced.length, 0)
})
