/**
 * How often record bytes are copied on their way in (architecture 1): once from the socket's buffer into the ring, once
 * from the ring into a batch. Counted by base/copy.ts; the clients here run in the same thread and never count.
 */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { test } from 'node:test'
import { copied } from '../../src/base/copy.ts'
import { RECORD_FIXED_BYTES } from '../../src/wire/produce/ring-layout.ts'
import { startBroker, type TestBroker } from '../support/broker.ts'
import { openClient, range } from '../support/es01-session.ts'
import { HttpApi, onBothEngines } from '../support/http-api.ts'

const VALUE_BYTES = 256

interface Copies {
  readonly main: number
  readonly shards: number
}

/** Bytes copied by the main thread and by the shards while `work` ran, which must end with a produce to every shard. */
async function countCopies(broker: TestBroker, work: () => Promise<void>): Promise<Copies> {
  const inShards = (): number =>
    broker.server.shardSet.counters().reduce((sum, { counters }) => sum + counters.copiedBytes, 0)
  const before = { main: copied.bytes, shards: inShards() }
  await work()
  return { main: copied.bytes - before.main, shards: inShards() - before.shards }
}

for (const shards of [1, 3] as const) {
  test(`over ES01 each byte is copied once into a ring and once into a batch, with ${shards} shard(s)`, async t => {
    const broker = await startBroker(t, { variant: { engine: 'node', shards } })
    await new HttpApi(broker.url).createTopic('copies', 3)
    const client = await openClient(t, broker.es01)
    const send = (count: number, value: Buffer, records: number): Promise<unknown> =>
      Promise.all(
        range(count).map(() =>
          client.produce(
            'copies',
            range(records).map(i => ({ value, partition: i % 3 }))
          )
        )
      )
    await send(5, Buffer.alloc(VALUE_BYTES, 1), 500)

    await t.test('in many small records', async () => {
      const copies = await countCopies(broker, async () => void (await send(60, Buffer.alloc(VALUE_BYTES, 2), 500)))
      const records = 60 * 500
      assert.deepEqual(copies, { main: records * (VALUE_BYTES + RECORD_FIXED_BYTES), shards: records * VALUE_BYTES })
    })
    await t.test('in records too large for a ring', async () => {
      const value = Buffer.alloc(4 * 1024 * 1024, 3)
      const copies = await countCopies(broker, async () => void (await send(3, value, 3)))
      assert.deepEqual(copies, { main: 9 * (value.length + RECORD_FIXED_BYTES), shards: 9 * value.length })
    })
  })
}

onBothEngines(
  'over HTTP each decoded byte is copied once into a ring and once into a batch',
  async (t, api, broker) => {
    await api.createTopic('copies', 3)
    const value = 'x'.repeat(VALUE_BYTES)
    const body = (records: number): string =>
      JSON.stringify({ records: range(records).map(i => ({ key: 'k'.repeat(16), value, partition: i % 3 })) })
    const payloadOf = (records: number): number => records * (VALUE_BYTES + 16)
    await postWhole(api, body(60), 2)

    await t.test('when the body comes in one piece', async () => {
      const copies = await countCopies(broker, () => postWhole(api, body(60), 40))
      assert.deepEqual(copies, { main: 40 * payloadOf(60), shards: 40 * payloadOf(60) })
    })
    await t.test('and is gathered before when it comes in pieces', async () => {
      const text = body(20_000)
      const copies = await countCopies(broker, async () => {
        assert.equal((await api.post('/topics/copies/produce', text)).status, 200)
      })
      assert.equal(copies.shards, payloadOf(20_000))
      // Gathered once, and moved each time the gathering buffer doubles: in sum less than twice its last size.
      const bound = payloadOf(20_000) + 3 * text.length
      assert.ok(copies.main <= bound, `${copies.main} of at most ${bound}`)
    })
  }
)

/** Produces one after the other on one connection, each request written as a whole, which fetch does not promise. */
async function postWhole(api: HttpApi, body: string, count: number): Promise<void> {
  const { hostname, port } = new URL(api.url)
  const head = `POST /topics/copies/produce HTTP/1.1\r\nhost: ${hostname}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`
  const socket = connect({ host: hostname, port: Number(port), noDelay: true })
  try {
    for (let i = 0; i < count; i++) {
      const answered = new Promise<string>((resolve, reject) => {
        let text = ''
        socket.removeAllListeners()
        socket.on('data', chunk => {
          text += chunk.toString()
          if (text.endsWith('}]}')) resolve(text)
        })
        socket.on('close', () => reject(new Error(`closed after: ${text}`)))
        socket.on('error', reject)
      })
      socket.write(head + body)
      assert.match(await answered, /^HTTP\/1\.1 200 /)
    }
  } finally {
    socket.removeAllListeners().destroy()
  }
}
