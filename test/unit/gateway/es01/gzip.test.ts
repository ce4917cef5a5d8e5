/** Payloads as gzip (spec 11.10, 12): agreed on in the hello, both directions, order, and whatever a stream may lie about. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, test } from 'node:test'
import type { TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { limits } from '../../../../src/model/limits.ts'
import { decodeConsumed, encodeConsumeFrame } from '../../../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../../../src/wire/es01/frame.ts'
import { encodeHello } from '../../../../src/wire/es01/handshake.ts'
import { decodeProduced, encodeProduceFrame } from '../../../../src/wire/es01/produce-frame.ts'
import { agreeOnGzip, occupyPool, plainErrorText, plainFrame, withPayload, zeros } from '../../../support/es01-gzip.ts'
import { startGateway, until, type Fixture, type FixtureOptions, type RawClient } from './fixture.ts'

const KIB = 1024
const MIB = 1024 * KIB

/** Text that gzip makes a twentieth of. */
const textOf = (bytes: number): Buffer => Buffer.alloc(bytes, 'the same words over and over, 0123456789; ')
const plainProduce = (id: number, value: Buffer | string = 'v', topic = 't'): Buffer =>
  encodeProduceFrame(id, topic, [{ value, partition: 0 }])
const produce = (id: number, value: Buffer | string = 'v', topic = 't'): Buffer =>
  withPayload(plainProduce(id, value, topic))
const consume = (id: number, maxBytes = MIB): Buffer =>
  withPayload(encodeConsumeFrame(id, { topic: 't', partition: 0, offset: 0, maxRecords: 100, maxBytes }))
const ping = (id: number): Buffer => encodeFrame(id, opcodes.ping, Buffer.alloc(0))

async function start(t: TestContext, options: FixtureOptions = {}): Promise<Fixture & { client: RawClient }> {
  const fixture = await startGateway(t, options)
  return { ...fixture, client: await agreeOnGzip(await fixture.open()) }
}

/** With keys, and a client whose key covers topic `t` alone. */
async function startGuarded(t: TestContext): Promise<Fixture & { client: RawClient }> {
  const fixture = await startGateway(t, { settings: { auth: 'required' } })
  fixture.broker.keys.add('good', 't')
  return { ...fixture, client: await agreeOnGzip(await fixture.open(), 'good') }
}

describe('gzip', () => {
  test('is agreed on where the hello asks for it, and only then', async t => {
    const { open } = await startGateway(t)
    for (const [asked, agreed] of [
      [0, 0],
      [1, 1],
      [2, 0],
      [0xffff_ffff, 1]
    ] as const) {
      const client = await open()
      client.send(encodeHello('', asked))
      assert.equal((await client.take(13)).readUInt32BE(5), agreed, `${asked}`)
    }
  })

  test('is what every payload is then, of both directions, the empty ones and those of errors too', async t => {
    const { client, broker, gateway } = await start(t)
    client.send(produce(1, 'first'))
    const produced = await plainFrame(client)
    assert.deepEqual(
      [produced.id, produced.opcode, decodeProduced(produced.payload)],
      [1, opcodes.produced, [{ partition: 0, offset: 0, duplicate: false }]]
    )
    client.send(consume(2))
    const consumed = await plainFrame(client)
    assert.deepEqual([consumed.id, consumed.opcode], [2, opcodes.consumed])
    const read = decodeConsumed(consumed.payload)
    assert.ok(typeof read !== 'string')
    assert.deepEqual(
      read.records.map(record => record.value.toString()),
      ['first']
    )
    client.send(withPayload(ping(3)))
    assert.deepEqual(await plainFrame(client), { id: 3, opcode: opcodes.pong, payload: Buffer.alloc(0) })
    client.send(produce(4, 'v', 'none'))
    assert.equal(await plainErrorText(client, 4), "not found: no topic named 'none'")
    client.send(withPayload(encodeFrame(5, opcodes.produced, Buffer.from('x'))))
    assert.match(await plainErrorText(client, 5), /^bad request: opcode: 0x81 is an answer/)
    assert.equal(broker.submitted, 3)
    assert.deepEqual(
      [...gateway.probe.errorFrames],
      [
        ['TOPIC_NOT_FOUND', 1],
        ['FIELD_INVALID', 1]
      ]
    )
  })

  test('is not what the payload of a ping is read as: it is ignored', async t => {
    const { client, gateway } = await start(t)
    client.send(encodeFrame(1, opcodes.ping, Buffer.from('no gzip at all')))
    client.send(withPayload(ping(2), () => zeros(1)))
    for (const id of [1, 2]) assert.equal((await plainFrame(client)).id, id)
    assert.equal(gateway.probe.gzip.inPlainBytes, 0)
  })

  test('carries records and answers of any size, whatever they compress to', async t => {
    const { client, broker, gateway, replyBudget } = await start(t)
    broker.chunkBytes = 100_000
    const values = [textOf(10), textOf(60 * KIB), randomBytes(40 * KIB), textOf(5 * MIB), randomBytes(2 * MIB)]
    for (const [id, value] of values.entries()) {
      client.send(produce(id, value))
      assert.equal((await plainFrame(client)).opcode, opcodes.produced)
      client.send(
        withPayload(
          encodeConsumeFrame(100, { topic: 't', partition: 0, offset: id, maxRecords: 1, maxBytes: value.length + 100 })
        )
      )
      const read = decodeConsumed((await plainFrame(client)).payload)
      assert.ok(typeof read !== 'string' && read.records[0]?.value.equals(value), `value ${id}`)
    }
    const { inCompressedBytes, inPlainBytes, outPlainBytes, outCompressedBytes } = gateway.probe.gzip
    const bytes = values.reduce((sum, value) => sum + value.length, 0)
    assert.ok(inPlainBytes > bytes && inPlainBytes < bytes + 2000 && inCompressedBytes < bytes / 2)
    assert.ok(outPlainBytes > bytes && outPlainBytes < bytes + 2000 && outCompressedBytes < bytes / 2)
    await until('all reply bytes were given back', () => replyBudget.usedBytes === 0)
  })

  test('answers a produce of 100,000 records with as many results', async t => {
    const { client } = await start(t)
    const records = Array.from({ length: 100_000 }, (_, i) => ({ value: `${i}`, partition: 1 }))
    client.send(withPayload(encodeProduceFrame(1, 't', records)))
    const results = decodeProduced((await plainFrame(client)).payload)
    assert.ok(typeof results !== 'string')
    assert.deepEqual([results.length, results[99_999]?.offset], [100_000, 99_999])
  })

  test('streams of several members are one payload, whatever the last of them says that it holds', async t => {
    const { client, broker } = await start(t)
    for (const [id, value] of ['small', textOf(3 * MIB)].entries()) {
      const payload = plainProduce(id, value).subarray(9)
      const parts = [payload.subarray(0, 7), payload.subarray(7), Buffer.alloc(0)].map(part => gzipSync(part))
      client.send(encodeFrame(id, opcodes.produce, Buffer.concat(parts)))
      assert.equal((await plainFrame(client)).opcode, opcodes.produced)
    }
    assert.equal(broker.log('t', 0)[1]?.value.length, 3 * MIB)
  })
})

describe('a large frame', () => {
  test('is inflated elsewhere: other connections go on, and its own frames behind it keep their order', async t => {
    const { client, broker, open, gateway } = await start(t)
    const other = await agreeOnGzip(await open())
    const pool = occupyPool(t)
    const large = textOf(8 * MIB)
    client.send(Buffer.concat([produce(1, large), produce(2, 'small'), ping(3)]))
    await until('it is to be inflated', () => gateway.inflatingBytes > large.length)
    for (let id = 1; id <= 200; id++) {
      other.send(ping(id))
      assert.equal((await plainFrame(other)).id, id)
    }
    other.send(produce(201, 'of another'))
    await plainFrame(other)
    assert.deepEqual([broker.submitted, client.restBytes], [1, 0])
    await pool.free()
    const answers = [await plainFrame(client), await plainFrame(client), await plainFrame(client)]
    assert.deepEqual(answers.map(answer => answer.id).sort(), [1, 2, 3])
    assert.deepEqual(
      broker.log('t', 0).map(record => record.value.length),
      ['of another'.length, large.length, 'small'.length]
    )
    assert.equal(gateway.probe.pauses, 0, 'nothing of the broker was full')
  })

  test('is answered in full when its client half-closes behind it', async t => {
    const { client, broker } = await start(t)
    client.socket.end(Buffer.concat([produce(1, textOf(MIB)), produce(2)]))
    assert.deepEqual([(await plainFrame(client)).id, (await plainFrame(client)).id], [1, 2])
    await client.closed()
    assert.ok(client.hasEnded)
    assert.equal(broker.log('t', 0).length, 2)
  })

  test('of a key that is revoked meanwhile is refused as `key revoked`, and the connection is closed', async t => {
    const { open, broker, gateway } = await startGateway(t, { settings: { auth: 'required' } })
    const key = broker.keys.add('good', 't')
    const client = await agreeOnGzip(await open(), 'good')
    const pool = occupyPool(t)
    client.send(produce(1, textOf(MIB)))
    await until('it is inflated', () => gateway.inflatingBytes > MIB)
    key.isRevoked = true
    await pool.free()
    assert.equal(await plainErrorText(client, 1), 'key revoked')
    await client.closed()
    assert.equal(broker.submitted, 0)
  })
})

describe('a stream that is no good', () => {
  const damaged = (change: (stream: Buffer) => Buffer | undefined, value: Buffer | string = 'v'): Buffer =>
    withPayload(plainProduce(0, value), payload => {
      const stream = gzipSync(payload)
      return change(stream) ?? stream
    })
  const u32 = (value: number, fromEnd: number) => (stream: Buffer) =>
    void stream.writeUInt32LE(value, stream.length - fromEnd)
  const large = textOf(MIB)
  const cases: readonly (readonly [string, (value: Buffer | string) => Buffer, RegExp])[] = [
    ['nothing', () => encodeFrame(0, opcodes.produce, Buffer.alloc(0)), /unexpected end of file/],
    ['no gzip', value => plainProduce(0, value), /incorrect header check/],
    ['cut off', value => damaged(stream => stream.subarray(0, -9), value), /unexpected end of file/],
    ['of another checksum', value => damaged(u32(12345, 8), value), /incorrect data check/],
    ['of length 0, as it says', value => damaged(u32(0, 4), value), /incorrect length check/],
    ['of 4 GiB, as it says', value => damaged(u32(0xffff_ffff, 4), value), /incorrect length check/],
    ['with rubbish behind it', value => damaged(stream => Buffer.concat([stream, Buffer.from('rub')]), value), /header/]
  ]
  for (const [size, value] of [
    ['small', 'v'],
    ['large', large]
  ] as const) {
    for (const [what, make, words] of cases) {
      test(`is answered by an error frame, and the connection goes on: ${size}, ${what}`, async t => {
        const { client, broker, gateway, requestBudget } = await start(t)
        client.send(make(value))
        const text = await plainErrorText(client, 0)
        assert.match(text, /^decode: the payload is not valid gzip: /)
        assert.match(text, words)
        assert.deepEqual([...gateway.probe.errorFrames], [['GZIP_INVALID', 1]])
        assert.deepEqual([broker.submitted, requestBudget.usedBytes], [0, 0])
        client.send(produce(1))
        assert.equal((await plainFrame(client)).opcode, opcodes.produced)
      })
    }
  }

  const limit = 16 * MIB - 5
  const bombs: readonly (readonly [string, () => Buffer])[] = [
    ['64 MiB of zeros', () => zeros(1)],
    ['1 GiB of zeros in 1 MiB', () => zeros(16)],
    ['one byte more than fits', () => gzipSync(Buffer.alloc(limit + 1))],
    ['64 MiB that end in a member of nothing', () => Buffer.concat([zeros(1), gzipSync(Buffer.alloc(0))])]
  ]
  for (const [what, make] of bombs) {
    test(`is inflated no further than a frame may be long: ${what}`, async t => {
      const { client, gateway, requestBudget } = await start(t)
      const stream = make()
      assert.ok(stream.length < 2 * MIB)
      client.send(encodeFrame(7, opcodes.produce, stream))
      assert.match(await plainErrorText(client, 7), new RegExp(`^decode: .*more than the limit of ${limit} bytes`))
      assert.deepEqual([...gateway.probe.errorFrames], [['INFLATED_TOO_LARGE', 1]])
      assert.ok(gateway.probe.gzip.inPlainBytes <= 2 * limit, `${gateway.probe.gzip.inPlainBytes} bytes`)
      assert.equal(requestBudget.usedBytes, 0)
      client.send(produce(8))
      assert.equal((await plainFrame(client)).id, 8)
    })
  }

  test('is none if it inflates to exactly as much as a frame may have', async t => {
    const { client } = await start(t)
    const payload = Buffer.concat([plainProduce(1).subarray(9), Buffer.alloc(limit)]).subarray(0, limit)
    client.send(encodeFrame(1, opcodes.produce, gzipSync(payload)))
    assert.equal((await plainFrame(client)).opcode, opcodes.produced)
  })
})

describe('a topic that the key does not cover', () => {
  const refusal = "forbidden: this key may not produce: that takes write on 'other'"

  test('is refused before the rest is inflated, and the connection goes on', async t => {
    const { client, gateway, broker } = await startGuarded(t)
    client.send(produce(1, randomBytes(4 * MIB), 'other'))
    assert.equal(await plainErrorText(client, 1), refusal)
    const { inPlainBytes, inCompressedBytes } = gateway.probe.gzip
    assert.ok(inPlainBytes <= limits.gzipPrefixBytes && inCompressedBytes === limits.gzipPrefixBytes)
    client.send(produce(2, 'v', 'other'))
    assert.equal(await plainErrorText(client, 2), refusal)
    assert.equal(broker.submitted, 0)
    client.send(produce(3, textOf(2 * MIB)))
    assert.equal((await plainFrame(client)).opcode, opcodes.produced)
  })

  test('is refused so where the stream is a bomb, small or large, or broken behind its topic', async t => {
    const { client, gateway } = await startGuarded(t)
    const other = Buffer.from('\0\x05other')
    const streams = [
      gzipSync(Buffer.concat([other, Buffer.alloc(400 * KIB)])),
      Buffer.concat([gzipSync(other), zeros(16)]),
      gzipSync(Buffer.concat([other, randomBytes(MIB)])).fill(0, 1000)
    ]
    for (const [id, stream] of streams.entries()) {
      client.send(encodeFrame(id, opcodes.produce, stream))
      assert.equal(await plainErrorText(client, id), refusal)
    }
    // The most that a prefix can hold, and what is inflated at once of the small one.
    assert.ok(gateway.probe.gzip.inPlainBytes <= streams.length * 1032 * limits.gzipPrefixBytes + 64 * KIB)
  })

  const header = (flags: number): Buffer => Buffer.from([0x1f, 0x8b, 8, flags, 0, 0, 0, 0, 0, 3])
  const u16 = (value: number): Buffer => Buffer.from([value >>> 8, value & 0xff])
  const endless: readonly (readonly [string, () => Buffer, RegExp])[] = [
    [
      'a topic of 65,535 bytes',
      () => gzipSync(Buffer.concat([u16(65_535), randomBytes(MIB)])),
      /do not tell the topic/
    ],
    ['a header that never ends', () => Buffer.concat([header(0x08), Buffer.alloc(8 * MIB, 'name')]), /do not tell/],
    [
      'members of nothing',
      () => Buffer.concat(new Array<Buffer>(50_000).fill(gzipSync(Buffer.alloc(0)))),
      /do not tell/
    ],
    ['a topic that ends too early', () => gzipSync(u16(500)), /ends inside topic/],
    [
      'a topic that is no UTF-8',
      () => gzipSync(Buffer.concat([u16(1), Buffer.from([0xff]), randomBytes(MIB)])),
      /UTF-8/
    ],
    ['a stream that is cut off', () => header(0), /unexpected end of file/]
  ]
  for (const [what, make, words] of endless) {
    test(`cannot be hidden: ${what}`, async t => {
      const { client, gateway, broker } = await startGuarded(t)
      client.send(encodeFrame(1, opcodes.produce, make()))
      assert.match(await plainErrorText(client, 1), words)
      assert.ok(gateway.probe.gzip.inCompressedBytes <= 2 * limits.gzipPrefixBytesMax)
      client.send(produce(2))
      assert.equal((await plainFrame(client)).opcode, opcodes.produced)
      assert.equal(broker.submitted, 1)
    })
  }
})
