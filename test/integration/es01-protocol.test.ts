/** ES01 against the whole broker (spec 11, 12): handshake, refusals, order, what closes a connection and what does not. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeConsumeFrame } from '../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import {
  decodeProduced,
  encodeProduceFrame,
  type ProduceRecord,
  type ProduceResult
} from '../../src/wire/es01/produce-frame.ts'
import { startBroker } from '../support/broker.ts'
import { greetRaw, offsetsOf, openClient, openRaw, range, readAll } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'

/** The results in an answer to a produce. */
function resultsOf(payload: Buffer): ProduceResult[] {
  const results = decodeProduced(payload)
  assert.ok(typeof results !== 'string', String(results))
  return results
}

const u16 = (value: number): Buffer => Buffer.from([value >>> 8, value & 0xff])

/** A produce payload: topic, no producer id, then what follows. */
function payload(topic: string | Buffer, ...rest: readonly Buffer[]): Buffer {
  const name = Buffer.from(topic)
  return Buffer.concat([u16(name.length), name, ...rest])
}

test('the handshake', async t => {
  const { es01 } = await startBroker(t)
  await t.test('drops the features that it does not have, and takes any token while auth is off', async t => {
    const client = await openRaw(t, es01)
    client.send(encodeHello('esk_whatever', 0xffff_ffff))
    assert.equal((await client.take(13)).toString('hex'), '45533031000000000100000000', 'gzip, and nothing else')
  })
  await t.test('may come byte by byte, and the frames behind it too', async t => {
    const client = await openRaw(t, es01)
    const session = Buffer.concat([encodeHello('abc', 0), encodeFrame(5, opcodes.ping, Buffer.alloc(0))])
    for (const byte of session) client.send(Buffer.from([byte]))
    assert.equal((await client.take(13)).toString('hex'), '45533031000000000000000000')
    assert.deepEqual(await client.frame(), { id: 5, opcode: opcodes.pong, payload: Buffer.alloc(0) })
  })
  await t.test('with another magic is refused with status 1, and the connection closed', async t => {
    const client = await openRaw(t, es01)
    client.send(Buffer.from('GET / HTTP/1.1\r\n\r\n'))
    const reply = await client.take(13)
    assert.deepEqual([reply.toString('latin1', 0, 4), reply[4]], ['ES01', 1])
    await client.closed()
  })
  await t.test('with a token that is too long is refused with status 2, and the connection closed', async t => {
    const client = await openRaw(t, es01)
    client.send(encodeHello('x'.repeat(1025), 0))
    assert.equal((await client.take(13))[4], 2)
    await client.closed()
  })
})

test('a request that cannot be carried out', async t => {
  const broker = await startBroker(t, { variant: { engine: 'node', shards: 3 } })
  const api = new HttpApi(broker.url)
  await api.createTopic('strict', 3)
  const client = await greetRaw(t, broker.es01)
  const produce = (records: readonly ProduceRecord[], topic = 'strict', producerId: string | null = null): Buffer =>
    encodeProduceFrame(0, topic, records, producerId)
  const consume = (topic: string, partition: number): Buffer =>
    encodeConsumeFrame(0, { topic, partition, offset: 0, maxRecords: 1, maxBytes: 1 })
  const good = { value: 'good', partition: 0 }
  const noProducer = Buffer.from('ffffffff', 'hex')
  const refusals: readonly (readonly [string, Buffer, RegExp])[] = [
    ['a produce to no topic', produce([good], 'none'), /^not found: no topic named 'none'$/],
    ['a consume of no topic', consume('none', 0), /^not found: no topic named 'none'$/],
    ['a topic deleted by its name being empty', produce([good], ''), /^not found: /],
    [
      'a produce past the last partition',
      produce([good, { value: 'v', partition: 3 }]),
      /^bad request: partition 3 is out of range.*3 partition/
    ],
    [
      'a consume past the last partition',
      consume('strict', 4_294_967_295),
      /^bad request: partition 4294967295 is out of range/
    ],
    [
      'a record over the limit',
      produce([good, { value: Buffer.alloc(8 * 1024 * 1024 + 1) }]),
      /^bad request: record 1 has 8388609 .* limit of 8388608.*nothing was written/
    ],
    ['100,001 records', produce(Array.from({ length: 100_001 }, () => good)), /^bad request: .*100001.*100000/],
    [
      'a producer id without sequences',
      produce([good], 'strict', 'p'),
      /^bad request: records\[0\]\.sequence is missing/
    ],
    ['an empty payload', encodeFrame(0, opcodes.produce, Buffer.alloc(0)), /^decode: /],
    ['a topic longer than the payload', encodeFrame(0, opcodes.consume, u16(500)), /^decode: /],
    [
      'a topic that is no UTF-8',
      encodeFrame(0, opcodes.produce, payload(Buffer.from([0xff]), noProducer, Buffer.alloc(4))),
      /^decode: .*UTF-8/
    ],
    [
      'a count that lies',
      encodeFrame(0, opcodes.produce, payload('strict', noProducer, Buffer.from('ffffffff', 'hex'))),
      /^decode: count is 4294967295/
    ],
    [
      'a value longer than the payload',
      encodeFrame(
        0,
        opcodes.produce,
        payload('strict', noProducer, Buffer.from('00000001ffffffff7fffffff000000000000000000000000', 'hex'))
      ),
      /^decode: /
    ],
    ['an answer sent as a request', encodeFrame(0, opcodes.error, Buffer.from('x')), /^bad request: opcode: 0xFF/]
  ]
  for (const [i, [what, frame, text]] of refusals.entries()) {
    await t.test(`is answered by an error frame: ${what}`, async () => {
      frame.writeUInt32BE(1000 + i, 4)
      client.send(frame)
      assert.match(await client.errorText(1000 + i), text)
    })
  }
  await t.test('has written nothing, and the connection goes on', async () => {
    assert.deepEqual(await api.ends('strict'), [0, 0, 0])
    client.send(encodeProduceFrame(77, 'strict', [good]))
    const answer = await client.frame()
    assert.deepEqual([answer.id, resultsOf(answer.payload)], [77, [{ partition: 0, offset: 0, duplicate: false }]])
  })
  await t.test('an empty produce is answered by no results', async () => {
    client.send(encodeProduceFrame(78, 'strict', []))
    assert.deepEqual(await client.frame(), { id: 78, opcode: opcodes.produced, payload: Buffer.alloc(4) })
  })
  await t.test('bytes behind a payload are ignored', async () => {
    client.send(encodeFrame(79, opcodes.produce, Buffer.concat([produce([good]).subarray(9), Buffer.from('more')])))
    assert.deepEqual(resultsOf((await client.frame()).payload), [{ partition: 0, offset: 1, duplicate: false }])
  })

  const lies: readonly (readonly [string, string])[] = [
    ['a length below 5', '00000004 00000001'],
    ['a length beyond the frame limit', '01000001 00000001 01'],
    ['an unknown opcode', '00000005 00000001 04']
  ]
  for (const [what, hex] of lies) {
    await t.test(`closes the connection without a frame: ${what}`, async t => {
      const liar = await greetRaw(t, broker.es01)
      liar.send(Buffer.from(hex.replaceAll(' ', ''), 'hex'))
      await liar.closed()
      assert.equal(liar.restBytes, 0)
    })
  }
  await t.test('and the other connections never noticed', async () => {
    client.send(encodeFrame(80, opcodes.ping, Buffer.alloc(0)))
    assert.equal((await client.frame()).id, 80)
  })
})

for (const shards of [1, 3] as const) {
  test(`many requests on one connection, with ${shards} shard(s)`, async t => {
    const broker = await startBroker(t, { variant: { engine: 'node', shards } })
    const api = new HttpApi(broker.url)
    await api.createTopic('pipe', 3)
    await api.createTopic('other', 3)

    await t.test('pipelined produces to one topic are executed in order, also beyond 32 in progress', async t => {
      const client = await openClient(t, broker.es01)
      const results = await Promise.all(
        range(200).map(i =>
          client.produce('pipe', [
            { value: `a${i}`, partition: i % 2 },
            { value: `b${i}`, partition: 2 }
          ])
        )
      )
      for (const partition of [0, 1, 2]) {
        const offsets = offsetsOf(results.flat().filter(result => result.partition === partition))
        assert.deepEqual(offsets, range(offsets.length))
      }
      const read = await readAll(client, 'pipe', 2)
      assert.deepEqual(
        read.map(record => record.value.toString()),
        range(200).map(i => `b${i}`)
      )
    })

    await t.test('produces, consumes, pings and refusals are each answered under their own id', async t => {
      const client = await greetRaw(t, broker.es01)
      const frames = range(120).map(i => {
        if (i % 4 === 0) return encodeProduceFrame(i, 'other', [{ value: `${i}` }])
        if (i % 4 === 1)
          return encodeConsumeFrame(i, { topic: 'pipe', partition: 2, offset: i, maxRecords: 1, maxBytes: 1 })
        return i % 4 === 2
          ? encodeFrame(i, opcodes.ping, Buffer.alloc(0))
          : encodeProduceFrame(i, 'none', [{ value: 'v' }])
      })
      client.send(Buffer.concat(frames))
      const answers = await client.frames(120)
      assert.deepEqual(
        answers.map(answer => answer.id).sort((a, b) => a - b),
        range(120)
      )
      const expected = [opcodes.produced, opcodes.consumed, opcodes.pong, opcodes.error]
      for (const { id, opcode, payload } of answers) {
        assert.equal(opcode, expected[id % 4], `request ${id}`)
        if (id % 4 === 1) assert.equal(payload.readBigUInt64BE(20 + 4), BigInt(id), 'the record that was asked for')
      }
    })

    await t.test('a client that half-closes hears every answer, then the end', async t => {
      const client = await greetRaw(t, broker.es01)
      const before = (await api.ends('pipe'))[1] ?? 0
      const frames = range(50).map(i => encodeProduceFrame(i, 'pipe', [{ value: `last ${i}`, partition: 1 }]))
      client.socket.end(Buffer.concat(frames))
      const answers = await client.frames(50)
      const results = answers.sort((a, b) => a.id - b.id).flatMap(answer => resultsOf(answer.payload))
      assert.deepEqual(
        results,
        range(50).map(i => ({ partition: 1, offset: before + i, duplicate: false }))
      )
      await client.closed()
      assert.ok(client.hasEnded)
    })

    await t.test('a client that vanishes amid its requests leaves whole records or none', async t => {
      const before = (await api.ends('pipe'))[0] ?? 0
      const client = await greetRaw(t, broker.es01)
      const frame = encodeProduceFrame(1, 'pipe', [
        { value: 'w1', partition: 0 },
        { value: 'w2', partition: 0 }
      ])
      client.send(Buffer.concat([frame, frame, frame.subarray(0, frame.length - 3)]))
      await client.frame()
      client.socket.resetAndDestroy()
      const probe = await openClient(t, broker.es01)
      const [mark] = await probe.produce('pipe', [{ value: 'mark', partition: 0 }])
      const values = (await readAll(probe, 'pipe', 0, before)).map(record => record.value.toString())
      assert.equal(mark?.offset, before + values.length - 1)
      assert.deepEqual(values.slice(0, 2), ['w1', 'w2'])
      assert.ok(values.length === 3 || values.length === 5, values.join())
    })
  })
}
