/** The smallest rings and budgets under far more work than they hold: all is answered, in order, and memory stays small. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { once } from 'node:events'
import { test, type TestContext } from 'node:test'
import type { Es01Client, ProduceResult } from '../../src/client/es01/client.ts'
import { encodeConsumeFrame } from '../../src/wire/es01/consume.ts'
import { spawnBroker, startBroker, variants, waitFor } from '../support/broker.ts'
import { greetRaw, offsetsOf, openClient, range, readAll } from '../support/es01-session.ts'
import { HttpApi, assertRefused, onBothEngines, type HttpAnswer } from '../support/http-api.ts'

const MIB = 1024 * 1024
const tiny = {
  '--request-ring-bytes': '1MiB',
  '--read-ring-bytes': '64KiB',
  '--request-memory-bytes': '24MiB',
  '--reply-memory-bytes': '16MiB'
}

for (const variant of variants.filter(({ engine, shards }) => engine === 'uws' || shards === 3)) {
  test(`a storm of writes through rings of 1 MiB, on ${variant.engine} with ${variant.shards} shard(s)`, async t => {
    const broker = await startBroker(t, { variant, flags: tiny })
    const api = new HttpApi(broker.url)
    const topics = ['left', 'right']
    for (const topic of topics) await api.createTopic(topic, 3)
    const clients = await Promise.all(range(6).map(() => openClient(t, broker.es01)))

    // 6 connections × 30 requests × 128 KiB at once, half of them over all shards, and HTTP between them.
    const value = Buffer.alloc(4096, 'v')
    const produce = (client: Es01Client, writer: number, i: number): Promise<ProduceResult[]> => {
      const topic = topics[i % 2] ?? ''
      const records = range(32).map(j => ({ key: `${writer}.${i}`, value, partition: i % 4 < 2 ? writer % 3 : j % 3 }))
      return client.produce(topic, records)
    }
    const overEs01 = clients.map((client, writer) => Promise.all(range(30).map(i => produce(client, writer, i))))
    const overHttp = range(24).map(i =>
      api.produce(
        'left',
        range(20).map(j => ({ key: `http.${i}`, value: 'h'.repeat(2_000), partition: j % 3 }))
      )
    )
    assert.equal(
      clients.reduce((sum, client) => sum + client.inFlight, 0),
      180
    )
    const [results, httpResults] = await Promise.all([Promise.all(overEs01), Promise.all(overHttp)])

    await t.test('answers every request, and writes each record once at the offset it answered', async () => {
      const seen = new Map<string, string>()
      const note = (topic: string, key: string, written: readonly { partition: number; offset: number }[]): void => {
        for (const { partition, offset } of written) {
          const place = `${topic}/${partition}/${offset}`
          assert.ok(!seen.has(place), `${place} is answered twice`)
          seen.set(place, key)
        }
      }
      results.forEach((ofWriter, writer) =>
        ofWriter.forEach((written, i) => note(topics[i % 2] ?? '', `${writer}.${i}`, written))
      )
      httpResults.forEach((written, i) => note('left', `http.${i}`, written))
      assert.equal(seen.size, 180 * 32 + 24 * 20)
      const client = await openClient(t, broker.es01)
      let count = 0
      for (const topic of topics) {
        for (const partition of range(3)) {
          for (const { offset, key } of await readAll(client, topic, partition)) {
            assert.equal(seen.get(`${topic}/${partition}/${offset}`), key?.toString())
            count++
          }
        }
      }
      assert.equal(count, seen.size)
    })
    await t.test('keeps the order of each connection in each topic', () => {
      for (const ofWriter of results) {
        for (const [t, partition] of [0, 1].flatMap(t => range(3).map(partition => [t, partition] as const))) {
          const offsets = ofWriter
            .filter((_, i) => i % 2 === t)
            .flat()
            .filter(result => result.partition === partition)
          const inOrder = offsetsOf(offsets)
          assert.deepEqual(
            inOrder,
            inOrder.toSorted((a, b) => a - b)
          )
        }
      }
    })
    await t.test('leaves the broker ready', async () => {
      assert.equal((await api.get('/readyz')).status, 200)
    })
  })
}

onBothEngines(
  'a storm of reads larger than the budget for answers ends with every answer',
  async (t, api, broker) => {
    await api.createTopic('wide', 3)
    const writer = await openClient(t, broker.es01)
    await writer.produce(
      'wide',
      range(24).map(i => ({ value: Buffer.alloc(128 * 1024, `${i};`), partition: i % 3 }))
    )
    const overEs01 = range(6).map(async () => {
      const client = await openClient(t, broker.es01)
      const reads = range(16).map(i =>
        client.consume({ topic: 'wide', partition: i % 3, offset: 0, maxRecords: 100, maxBytes: 4 * MIB })
      )
      return (await Promise.all(reads)).map(answer => answer.records.length)
    })
    // An answer over HTTP has fewer records while memory is short: the rest comes with the next.
    const overHttp = range(24).map(async i => {
      const offsets: number[] = []
      for (let next = 0, end = 1; next < end;) {
        const answer = await api.consume('wide', i % 3, `offset=${next}&max_bytes=4194304`)
        assert.ok(answer.records.length > 0)
        offsets.push(...answer.records.map(({ offset }) => offset))
        next = answer.next_offset
        end = answer.high_watermark
      }
      return offsets
    })
    assert.deepEqual(
      await Promise.all(overEs01),
      range(6).map(() => range(16).map(() => 8))
    )
    assert.deepEqual(
      await Promise.all(overHttp),
      range(24).map(() => range(8))
    )
  },
  { flags: tiny }
)

test('clients that ask for much and read nothing do not fill the memory', async t => {
  const broker = await spawnBroker(t, { flags: { ...tiny, '--shards': '1', '--encode-buffer-bytes': '8MiB' } })
  await new HttpApi(broker.url).createTopic('heavy')
  const client = await openClient(t, broker.es01)
  for (const i of range(4)) await client.produce('heavy', [{ value: Buffer.alloc(MIB, `${i}`) }])
  const ask = Buffer.concat(
    range(32).map(id =>
      encodeConsumeFrame(id, { topic: 'heavy', partition: 0, offset: 0, maxRecords: 4, maxBytes: 4 * MIB })
    )
  )
  // 64 × 32 answers of 3 to 4 MiB: 6 GiB if they were all fetched.
  const sleepers = await Promise.all(range(64).map(() => greetRaw(t, broker.es01)))
  for (const sleeper of sleepers) {
    sleeper.socket.pause()
    sleeper.send(ask)
  }
  await t.test('writes of others go on', async () => {
    for (const i of range(20)) {
      const [result] = await client.produce('heavy', [{ value: `after ${i}` }])
      assert.equal(result?.offset, 4 + i)
    }
  })
  await t.test('the broker stays small', () => {
    const status = readFileSync(`/proc/${broker.child.pid}/status`, 'utf8')
    const peakMib = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024
    assert.ok(peakMib < 400, `${peakMib} MiB at its peak`)
  })
  await t.test('reads of others go on once the sleepers are gone', async () => {
    for (const sleeper of sleepers) sleeper.socket.destroy()
    const answer = await client.consume({ topic: 'heavy', partition: 0, offset: 4, maxRecords: 1, maxBytes: 100 })
    assert.equal(answer.records[0]?.value.toString(), 'after 0')
  })
})

onBothEngines(
  'bodies beyond the memory for requests',
  async (t, api) => {
    await api.createTopic('full')
    const record = JSON.stringify({ value: 'x'.repeat(7_999_980) })
    const body = Buffer.from(`{"records":[${record}]}`)
    const holders = await Promise.all(range(3).map(() => holdBody(t, api, body)))
    await t.test('are refused with 503, Retry-After and the reason, and nothing is written', async () => {
      const refused = await waitFor('the memory to be taken', async () => {
        const answer = await api.call('POST', '/topics/full/produce', body)
        return answer.status === 503 && answer
      })
      assertRefused(refused, 503, 'OVERLOADED', ['memory', 24 * MIB])
      assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d*$/)
    })
    await t.test('while small requests are served', async () => {
      assert.equal((await api.produce('full', [{ value: 'small' }])).length, 1)
      assert.equal((await api.get('/readyz')).status, 200)
    })
    await t.test('and those that were let in are carried out', async () => {
      for (const holder of holders) assert.match(await holder.finish(), /^HTTP\/1\.1 200 /)
    })
    await t.test('then there is room again', async () => {
      const [before = 0] = await api.ends('full')
      const answer: HttpAnswer = await api.call('POST', '/topics/full/produce', body)
      assert.deepEqual([answer.status, await api.ends('full')], [200, [before + 1]])
    })
  },
  { flags: tiny }
)

interface HeldBody {
  readonly socket: Socket
  /** Sends the last byte. @returns the answer. */
  finish(): Promise<string>
}

/** A request whose body is sent but for its last byte. */
async function holdBody(t: TestContext, api: HttpApi, body: Buffer): Promise<HeldBody> {
  const { hostname, port } = new URL(api.url)
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  t.after(() => socket.destroy())
  await once(socket, 'connect')
  let text = ''
  socket.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
  socket.write(
    `POST /topics/full/produce HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  )
  await new Promise(resolve => socket.write(body.subarray(0, -1), resolve))
  return {
    socket,
    finish: async () => {
      socket.write(body.subarray(-1))
      return await waitFor('the answer to a held body', () => text.endsWith('}') && text)
    }
  }
}
