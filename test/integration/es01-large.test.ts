/** Frames beyond a quarter of a ring, and requests over several shards: the long ways through the broker. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeConsumeFrame } from '../../src/wire/es01/consume.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { greetRaw, offsetsOf, openClient, range, readAll } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'

const MIB = 1024 * 1024
/** Bytes that differ from record to record and within one. */
const pattern = (seed: number, bytes: number): Buffer =>
  Buffer.alloc(bytes, `${seed}:the quick brown fox ${seed * 7919};`)

for (const shards of [1, 3] as const) {
  test(`large requests, with ${shards} shard(s)`, async t => {
    const broker = await startBroker(t, { variant: { engine: 'node', shards } })
    const api = new HttpApi(broker.url)
    const client = await openClient(t, broker.es01)

    await t.test('records of exactly 8 MiB, two in a frame of nearly 16 MiB, come back byte for byte', async () => {
      await api.createTopic('large', 3)
      const [a, b] = [pattern(1, 8 * MIB), pattern(2, 8 * MIB - 200)]
      const results = await client.produce('large', [
        { value: a, partition: 0 },
        { value: b, partition: 0 }
      ])
      assert.deepEqual(offsetsOf(results), [0, 1])
      const read = await readAll(client, 'large', 0)
      assert.deepEqual(
        read.map(record => record.value.length),
        [8 * MIB, 8 * MIB - 200]
      )
      assert.ok(read[0]?.value.equals(a) && read[1]?.value.equals(b))
    })

    await t.test('large and small requests of one connection keep their order in the log', async () => {
      await api.createTopic('mixed', 3)
      const sizes = range(16).map(i => (i % 4 === 0 ? 3 * MIB : 10 + i))
      const results = await Promise.all(
        sizes.map((size, i) => client.produce('mixed', [{ value: pattern(i, size), partition: 1 }]))
      )
      assert.deepEqual(offsetsOf(results.flat()), range(16))
      const read = await readAll(client, 'mixed', 1)
      for (const [i, record] of read.entries()) assert.ok(record.value.equals(pattern(i, sizes[i] ?? 0)), `record ${i}`)
    })

    await t.test('a request that scatters over all shards is answered in its own order', async () => {
      await api.createTopic('scatter', 7)
      const next = range(7).map(() => 0)
      for (const round of range(5)) {
        const records = range(997).map(i => ({
          key: `${round}.${i}`,
          value: pattern(i, 100),
          partition: (i * i + round) % 7
        }))
        const results = await client.produce('scatter', records)
        const expected = records.map(({ partition }) => ({ partition, offset: next[partition]!++, duplicate: false }))
        assert.deepEqual(results, expected)
      }
      assert.deepEqual(await api.ends('scatter'), next)
      const read = await readAll(client, 'scatter', 3)
      const keys = range(5).flatMap(round =>
        range(997)
          .filter(i => (i * i + round) % 7 === 3)
          .map(i => `${round}.${i}`)
      )
      assert.deepEqual(
        read.map(record => record.key?.toString()),
        keys
      )
    })

    await t.test('a large request that scatters goes whole', async () => {
      await api.createTopic('sheets', 6)
      const records = range(12).map(i => ({ value: pattern(i, MIB), partition: i % 6 }))
      const results = await client.produce('sheets', records)
      assert.deepEqual(
        results,
        range(12).map(i => ({ partition: i % 6, offset: Math.floor(i / 6), duplicate: false }))
      )
      for (const partition of range(6)) {
        const read = await readAll(client, 'sheets', partition)
        assert.ok(read.length === 2 && read.every((record, i) => record.value.equals(pattern(partition + 6 * i, MIB))))
      }
    })

    await t.test('many large requests at once are all written, each once', async t => {
      await api.createTopic('flood', 3)
      const clients = await Promise.all(range(4).map(() => openClient(t, broker.es01)))
      const results = await Promise.all(
        range(24).map(i =>
          (clients[i % 4] ?? client).produce('flood', [{ value: pattern(i, 5 * MIB), partition: i % 3 }])
        )
      )
      for (const partition of range(3)) {
        const offsets = offsetsOf(results.flat().filter(result => result.partition === partition))
        assert.deepEqual(
          offsets.sort((a, b) => a - b),
          range(8)
        )
      }
    })
  })
}

test('a client that does not read its answers holds up nobody else', async t => {
  const broker = await startBroker(t, {
    variant: { engine: 'node', shards: 1 },
    flags: { '--reply-memory-bytes': '64MiB' }
  })
  const api = new HttpApi(broker.url)
  await api.createTopic('busy')
  const client = await openClient(t, broker.es01)
  for (const i of range(8)) await client.produce('busy', [{ value: pattern(i, MIB) }])

  const sleeper = await greetRaw(t, broker.es01)
  sleeper.socket.pause()
  const read = (id: number): Buffer =>
    encodeConsumeFrame(id, { topic: 'busy', partition: 0, offset: 0, maxRecords: 8, maxBytes: 8 * MIB })
  sleeper.send(Buffer.concat(range(32).map(read)))

  await t.test('requests of others are answered meanwhile', async () => {
    for (const i of range(50)) {
      const [result] = await client.produce('busy', [{ value: `after ${i}` }])
      assert.equal(result?.offset, 8 + i)
      const answer = await client.consume({ topic: 'busy', partition: 0, offset: 8 + i, maxRecords: 1, maxBytes: 100 })
      assert.equal(answer.records[0]?.value.toString(), `after ${i}`)
    }
  })
  await t.test('and it is given every answer once it reads', async () => {
    sleeper.socket.resume()
    const answers = await sleeper.frames(32)
    assert.deepEqual(
      answers.map(answer => answer.id).sort((a, b) => a - b),
      range(32)
    )
    assert.ok(
      answers.every(answer => answer.payload.readUInt32BE(16) === 7),
      'eight records would pass 8 MiB'
    )
  })
  // The protocol gives a reader 30 s; the clock is not for a test of the whole broker to move.
  await t.test('if it never reads it is dropped', { skip: process.env['MILLRACE_LONG'] !== '1' }, async t => {
    const stubborn = await greetRaw(t, broker.es01)
    stubborn.socket.pause()
    stubborn.send(Buffer.concat(range(32).map(read)))
    await waitFor(
      'the broker to close the connection',
      async () => {
        await client.ping()
        stubborn.send(Buffer.alloc(1))
        return stubborn.isClosed
      },
      60_000
    )
  })
})

test('a request with large parts for several shards is taken although they are above the memory for large frames', async t => {
  const flags = { '--shards': '2', '--request-memory-bytes': '18MiB' }
  const broker = await startBroker(t, { flags })
  const api = new HttpApi(broker.url)
  await api.createTopic('wide', 2)
  const value = 'v'.repeat(4.7 * MIB)
  const results = await api.produce('wide', [
    { value, partition: 0 },
    { value, partition: 1 }
  ])
  assert.deepEqual(results, [
    { partition: 0, offset: 0 },
    { partition: 1, offset: 0 }
  ])
})
