/** ES01 over gzip against the whole broker (spec 11.10, 12): every opcode, order, hostile streams, grants, and the counters. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test, type TestContext } from 'node:test'
import { gzipSync } from 'node:zlib'
import { decodeConsumed, encodeConsumeFrame, type ConsumeAnswer } from '../../src/wire/es01/consume.ts'
import { encodeFrame, opcodes } from '../../src/wire/es01/frame.ts'
import { decodeProduced, encodeProduceFrame, type ProduceRecord } from '../../src/wire/es01/produce-frame.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker, waitFor, type Es01Address } from '../support/broker.ts'
import { agreeOnGzip, plainErrorText, plainFrame, withPayload, zeros } from '../support/es01-gzip.ts'
import { openClient, openRaw, range, readAll, type RawClient } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'

const MIB = 1024 * 1024

const produce = (id: number, topic: string, records: readonly ProduceRecord[]): Buffer =>
  withPayload(encodeProduceFrame(id, topic, records))
const consume = (id: number, topic: string, offset: number, maxBytes = 8 * MIB): Buffer =>
  withPayload(encodeConsumeFrame(id, { topic, partition: 0, offset, maxRecords: 10_000, maxBytes }))
const ping = (id: number): Buffer => withPayload(encodeFrame(id, opcodes.ping, Buffer.alloc(0)))
const jsonOf = (bytes: number): Buffer =>
  Buffer.from(
    JSON.stringify(Array.from({ length: bytes / 20 }, (_, id) => ({ id, name: `user ${id}` }))).padEnd(bytes)
  ).subarray(0, bytes)

async function greet(t: TestContext, address: Es01Address, token = ''): Promise<RawClient> {
  return agreeOnGzip(await openRaw(t, address), token)
}

function consumedOf(payload: Buffer): ConsumeAnswer {
  const answer = decodeConsumed(payload)
  assert.ok(typeof answer !== 'string', String(answer))
  return answer
}

/** One number of the page of metrics. */
async function figure(api: HttpApi, name: string, labels: Readonly<Record<string, string>>): Promise<number> {
  return valueOf(parsePage((await api.get('/metrics')).text), name, labels) ?? 0
}

for (const shards of [1, 3] as const) {
  test(`gzip with ${shards} shard(s)`, async t => {
    const broker = await startBroker(t, { variant: { engine: shards === 1 ? 'uws' : 'node', shards } })
    const api = new HttpApi(broker.url)
    await api.createTopic('zipped', 1)

    await t.test('carries each kind of frame, from the smallest on', async t => {
      const client = await greet(t, broker.es01)
      client.send(Buffer.concat([ping(1), encodeFrame(2, opcodes.ping, Buffer.alloc(0))]))
      for (const id of [1, 2])
        assert.deepEqual(await plainFrame(client), { id, opcode: opcodes.pong, payload: Buffer.alloc(0) })
      client.send(produce(3, 'zipped', []))
      assert.deepEqual(await plainFrame(client), { id: 3, opcode: opcodes.produced, payload: Buffer.alloc(4) })
      client.send(produce(4, 'zipped', [{ value: '' }, { key: 'k', value: 'v' }]))
      assert.deepEqual(
        decodeProduced((await plainFrame(client)).payload),
        [0, 1].map(offset => ({ partition: 0, offset, duplicate: false }))
      )
      client.send(consume(5, 'zipped', 0))
      const { records } = consumedOf((await plainFrame(client)).payload)
      assert.deepEqual(
        records.map(({ key, value }) => [key?.toString(), value.toString()]),
        [
          [undefined, ''],
          ['k', 'v']
        ]
      )
      client.send(consume(6, 'zipped', 2))
      assert.deepEqual(consumedOf((await plainFrame(client)).payload).records, [])
      client.send(produce(7, 'none', [{ value: 'v' }]))
      assert.equal(await plainErrorText(client, 7), "not found: no topic named 'none'")
    })

    await t.test('changes no byte of what is stored: other clients read it, and it reads theirs', async t => {
      const zipped = await greet(t, broker.es01)
      const plain = await openClient(t, broker.es01)
      await api.createTopic('mixed', 1)
      const values = [randomBytes(100), jsonOf(50_000), randomBytes(3 * MIB), jsonOf(7 * MIB)]
      for (const [i, value] of values.entries()) {
        if (i % 2 === 0) await plain.produce('mixed', [{ value, partition: 0 }])
        else {
          zipped.send(produce(i, 'mixed', [{ value, partition: 0 }]))
          assert.equal((await plainFrame(zipped)).opcode, opcodes.produced)
        }
      }
      const read = await readAll(plain, 'mixed', 0)
      assert.ok(read.every((record, i) => record.value.equals(values[i] ?? Buffer.alloc(0))))
      for (let offset = 0; offset < values.length;) {
        zipped.send(consume(9, 'mixed', offset))
        const answer = consumedOf((await plainFrame(zipped)).payload)
        for (const record of answer.records) assert.ok(record.value.equals(values[record.offset] ?? Buffer.alloc(0)))
        offset = Number(answer.nextOffset)
      }
    })

    await t.test('a produce of 10 MiB is inflated while others are answered, and keeps its place', async t => {
      const client = await greet(t, broker.es01)
      const other = await greet(t, broker.es01)
      await api.createTopic('ordered', 1)
      const values = [jsonOf(5 * MIB), jsonOf(5 * MIB - 1000), ...range(20).map(i => Buffer.from(`small ${i}`))]
      client.send(
        Buffer.concat([
          produce(
            0,
            'ordered',
            values.slice(0, 2).map(value => ({ value, partition: 0 }))
          ),
          ...values.slice(2).map((value, i) => produce(1 + i, 'ordered', [{ value, partition: 0 }]))
        ])
      )
      let pongs = 0
      for (; client.restBytes === 0; pongs++) {
        other.send(ping(pongs))
        assert.equal((await plainFrame(other)).id, pongs)
      }
      t.diagnostic(`${pongs} pings were answered meanwhile`)
      assert.ok(pongs >= 3, `${pongs} pings`)
      for (const _ of range(21)) assert.equal((await plainFrame(client)).opcode, opcodes.produced)
      const read = await readAll(await openClient(t, broker.es01), 'ordered', 0)
      assert.deepEqual(
        read.map(record => record.value.length),
        values.map(value => value.length)
      )
    })

    await t.test('a client that half-closes hears every answer, large ones too', async t => {
      const client = await greet(t, broker.es01)
      client.socket.end(
        Buffer.concat([produce(1, 'zipped', [{ value: jsonOf(MIB) }]), consume(2, 'mixed', 3), ping(3)])
      )
      const frames = [await plainFrame(client), await plainFrame(client), await plainFrame(client)]
      assert.deepEqual(frames.map(frame => frame.id).sort(), [1, 2, 3])
      await client.closed()
      assert.ok(client.hasEnded)
    })

    await t.test('is refused by an error frame where it is no good, and the connection goes on', async t => {
      const client = await greet(t, broker.es01)
      const stream = gzipSync(encodeProduceFrame(0, 'zipped', [{ value: jsonOf(MIB) }]).subarray(9))
      const broken = Buffer.from(stream).fill(0xff, stream.length - 8, stream.length - 4)
      const bad: readonly (readonly [string, Buffer])[] = [
        ['not gzip', Buffer.from('plain')],
        ['cut off', stream.subarray(0, -20)],
        ['another checksum', broken],
        ['rubbish behind', Buffer.concat([stream, Buffer.from('rubbish')])],
        ['length 0', Buffer.concat([stream.subarray(0, -4), Buffer.alloc(4)])],
        ['length 2^32 − 1', Buffer.concat([stream.subarray(0, -4), Buffer.alloc(4, 0xff)])],
        ['1 GiB of zeros', zeros(16)]
      ]
      for (const [id, [what, payload]] of bad.entries()) {
        client.send(encodeFrame(id, opcodes.produce, payload))
        assert.match(
          await plainErrorText(client, id),
          /^decode: the payload (is not valid gzip|inflates to more)/,
          what
        )
      }
      client.send(
        encodeFrame(10, opcodes.produce, Buffer.concat([gzipSync(Buffer.from('\0')), gzipSync(Buffer.alloc(0))]))
      )
      assert.equal(await plainErrorText(client, 10), 'decode: the payload ends inside topic_len')
      const count = (code: string) => figure(api, 'millrace_es01_error_frames_total', { code })
      assert.deepEqual([await count('GZIP_INVALID'), await count('INFLATED_TOO_LARGE')], [bad.length - 1, 1])
      client.send(ping(11))
      assert.equal((await plainFrame(client)).id, 11)
    })

    await t.test('leaves no memory behind, whatever was sent and whoever went away amid it', async t => {
      const frame = produce(1, 'zipped', [{ value: jsonOf(6 * MIB) }])
      const clients = await Promise.all(range(6).map(() => greet(t, broker.es01)))
      for (const [i, client] of clients.entries()) {
        client.send(Buffer.concat([consume(2, 'mixed', 2), frame, frame]))
        if (i % 2 === 0) await plainFrame(client)
        client.socket.resetAndDestroy()
      }
      const used = (budget: string) => figure(api, 'millrace_memory_budget_used_bytes', { budget })
      await waitFor('all memory was given back', async () => (await used('requests')) + (await used('replies')) === 0)
    })
  })
}

test('a topic that the key does not cover is refused before its records are inflated', async t => {
  const guarded = await startGuarded(t)
  const { broker } = guarded
  const admin = guarded.admin.api
  await admin.createTopic('mine', 1)
  await admin.createTopic('theirs', 1)
  const key = await makeTestKey(admin, 'write:mine')
  const client = await greet(t, broker.es01, key.secret)
  const inflated = () => figure(admin, 'millrace_es01_gzip_bytes_total', { direction: 'in', form: 'plain' })
  client.send(produce(1, 'theirs', [{ value: randomBytes(7 * MIB) }]))
  assert.match(await plainErrorText(client, 1), /^forbidden: .*write on 'theirs'/)
  assert.ok((await inflated()) <= 512, `${await inflated()} bytes`)
  client.send(consume(2, 'theirs', 0))
  assert.match(await plainErrorText(client, 2), /^forbidden: .*read on 'theirs'/)
  client.send(produce(3, 'mine', [{ value: randomBytes(7 * MIB) }]))
  assert.equal((await plainFrame(client)).opcode, opcodes.produced)
  assert.ok((await inflated()) > 7 * MIB)
  assert.equal(await figure(admin, 'millrace_es01_error_frames_total', { code: 'FORBIDDEN' }), 2)
})
