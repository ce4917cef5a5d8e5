/** The pipelined client against a peer that loses, refuses and delays what the test says. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { describe, test, type TestContext } from 'node:test'
import {
  ClientError,
  PipelinedClient,
  type PipelinedOptions,
  type ProduceResult
} from '../../../../src/client/binary/index.ts'
import { fnv1a64Modulo } from '../../../../src/base/hash.ts'
import { features } from '../../../../src/wire/es01/handshake.ts'
import { diceOf } from '../../../support/log-random.ts'
import { waitFor } from '../../../support/broker.ts'
import { startFakeBroker, type FakeBroker, type Fate } from './fake-broker.ts'

function clientOf(t: TestContext, broker: FakeBroker, options: Partial<PipelinedOptions> = {}): PipelinedClient {
  const client = new PipelinedClient({
    ...broker.address,
    lingerMs: 0,
    reconnect: { initialMs: 1, maxMs: 5 },
    ...options
  })
  t.after(() => client.destroy())
  return client
}

/** Sends records to one partition at once. */
function sendMany(
  client: PipelinedClient,
  count: number,
  partition = 0
): Promise<PromiseSettledResult<ProduceResult>[]> {
  return Promise.allSettled(Array.from({ length: count }, (_, i) => client.send('t', { value: `${i}`, partition })))
}

function offsetsOf(settled: readonly PromiseSettledResult<ProduceResult>[]): (number | string)[] {
  return settled.map(result =>
    result.status === 'fulfilled' ? result.value.offset : (result.reason as ClientError).written
  )
}

function range(count: number, first = 0): number[] {
  return Array.from({ length: count }, (_, i) => first + i)
}

/** Fates of the first requests; the rest is written. */
function inTurn(...fates: readonly Fate[]): () => Fate {
  let next = 0
  return () => fates[next++] ?? 'write'
}

describe('records of an idempotent client', () => {
  test('are sent in one request a partition: the first of at most 128 records, because a broker takes any first sequence', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker)
    assert.deepEqual(offsetsOf(await sendMany(client, 1000)), range(1000))
    assert.deepEqual(
      broker.produced.map(({ first, count }) => [first, count]),
      [
        [0, 128],
        [128, 872]
      ]
    )
    assert.equal(broker.questions, 0, 'who names partitions need not know how many there are')
  })

  for (const [what, count, fate] of [
    ['few records that were written', 100, 'lose'],
    ['few records that were not', 100, 'drop'],
    ['many records that were written', 1000, 'lose'],
    ['many records that were not', 1000, 'drop']
  ] as const) {
    test(`are there once and in order after the answer was lost to ${what}`, async t => {
      const broker = await startFakeBroker(t)
      const client = clientOf(t, broker)
      await sendMany(client, 10)
      broker.fateOf = inTurn(fate)
      assert.deepEqual(offsetsOf(await sendMany(client, count)), range(count, 10))
      assert.deepEqual(offsetsOf(await sendMany(client, 5)), range(5, 10 + count))
      assert.equal(new Set(broker.produced.map(({ producerId }) => producerId)).size, 1)
      const again = broker.produced[2]
      assert.deepEqual([again?.first, again?.count], count > 128 ? [10 + count - 1, 1] : [10, count])
    })
  }

  test('leave one batch at a time per partition, and those of many partitions at once', async t => {
    const broker = await startFakeBroker(t, 10)
    broker.fateOf = () => 'silence'
    const client = clientOf(t, broker)
    const sent = range(10).map(partition => sendMany(client, 300, partition))
    await waitFor('a request of each partition', () => broker.produced.length === 10)
    assert.deepEqual(broker.produced.map(({ partition }) => partition).sort(), range(10))
    broker.fateOf = () => 'write'
    for (const produced of [...broker.produced]) broker.settle(produced, 'write')
    for (const settled of await Promise.all(sent)) assert.deepEqual(offsetsOf(settled), range(300))
  })

  test('are retried in place while a refusal may pass', async t => {
    const broker = await startFakeBroker(t)
    const passing = ['unavailable: the disk is full', 'unavailable: shard 0 stopped (written: unknown)']
    broker.fateOf = inTurn(...passing.map(refuse => ({ refuse })), 'drop')
    assert.deepEqual(offsetsOf(await sendMany(clientOf(t, broker), 50)), range(50))
    assert.deepEqual(
      broker.produced.map(({ first }) => first),
      [0, 0, 0, 0]
    )
  })

  test('come in smaller batches where a quota refuses many at once', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = ({ count }) => (count > 40 ? { refuse: 'rate limited: retry in 0.001s' } : 'write')
    assert.deepEqual(offsetsOf(await sendMany(clientOf(t, broker), 300)), range(300))
  })

  test('that are refused for good leave no gap behind them', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker)
    await sendMany(client, 3)
    broker.fateOf = inTurn({ refuse: 'bad request: record 0 has 9 bytes of key and value: over the limit of 8' })
    assert.deepEqual(offsetsOf(await sendMany(client, 2)), ['no', 'no'])
    assert.deepEqual(offsetsOf(await sendMany(client, 2)), [3, 4])
    assert.deepEqual(
      broker.produced.map(({ first }) => first),
      [0, 3, 3]
    )
  })

  test('that nobody answers end as unknown, and those behind them go under a new producer id', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = inTurn('silence')
    const client = clientOf(t, broker, { deliveryTimeoutMs: 60 })
    const [result] = await sendMany(client, 1)
    assert.ok(result?.status === 'rejected')
    const { kind, written, retryable } = result.reason as ClientError
    assert.deepEqual([kind, written, retryable], ['timeout', 'unknown', true])
    assert.deepEqual(offsetsOf(await sendMany(client, 1)), [0])
    const [first, second] = broker.produced
    assert.notEqual(first?.producerId, second?.producerId)
    assert.deepEqual([first?.first, second?.first], [0, 0])
  })

  test('go over another connection where one says nothing any more, though it stays open', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = ({ connection }) => (connection.index === 0 ? 'silence' : 'write')
    const client = clientOf(t, broker, { requestTimeoutMs: 50 })
    assert.deepEqual(offsetsOf(await sendMany(client, 200)), range(200))
    assert.deepEqual([...new Set(broker.produced.map(({ connection }) => connection.index))], [0, 1])
  })

  test('that never left end as not written', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker, { host: '127.0.0.1', port: 1, deliveryTimeoutMs: 30 })
    assert.deepEqual(offsetsOf(await sendMany(client, 3)), ['no', 'no', 'no'])
  })

  test('without a key share partitions in turn, a batch each, once the number of partitions is known', async t => {
    const broker = await startFakeBroker(t, 3)
    const client = clientOf(t, broker)
    const partitions: (number | undefined)[] = []
    for (let i = 0; i < 6; i++) {
      const results = await Promise.all(range(5).map(() => client.send('t', { value: 'v' })))
      assert.equal(new Set(results.map(({ partition }) => partition)).size, 1)
      partitions.push(results[0]?.partition)
    }
    assert.deepEqual(partitions, [0, 1, 2, 0, 1, 2])
  })

  test('keep the order of their key where the topic is made anew with fewer partitions', async t => {
    const broker = await startFakeBroker(t, 5)
    const client = clientOf(t, broker, { batchRecords: 1 })
    let key = ''
    for (let i = 0, partition = -1; partition !== 4; i++) {
      key = `key-${i}`
      partition = (await client.send('t', { key, value: '' })).partition
    }
    const before = broker.produced.length
    broker.partitionCount = 2
    const sent = range(6).map(() => client.send('t', { key, value: '' }))
    await waitFor('the first to be moved', () => broker.produced.length > before)
    for (let i = 0; i < 6; i++) sent.push(client.send('t', { key, value: '' }))
    const offsets = (await Promise.all(sent)).map(({ offset }) => offset)
    assert.deepEqual(
      offsets,
      offsets.toSorted((one, other) => one - other)
    )
  })

  test('are rejected where the number of partitions cannot be asked for', async t => {
    const broker = await startFakeBroker(t)
    broker.take = (frame, connection) => connection.refuse(frame.requestId, "not found: no topic named 't'")
    const client = clientOf(t, broker)
    await assert.rejects(client.send('t', { key: 'k', value: 'v' }), { kind: 'refused', written: 'no' })
  })
})

describe('records of an idempotent client that wait for the number of partitions', () => {
  test('are not overtaken by those that name one', async t => {
    const broker = await startFakeBroker(t, 2)
    const key = range(100).find(i => fnv1a64Modulo(Buffer.from(`${i}`), 0, `${i}`.length, 2) === 0)
    const take = broker.take.bind(broker)
    let ask = (): void => {}
    broker.take = (frame, connection) => {
      ask = () => take(frame, connection)
      broker.take = take
    }
    const client = clientOf(t, broker)
    const keyed = client.send('t', { key: `${key}`, value: 'first' })
    const named = client.send('t', { value: 'second', partition: 0 })
    // Whatever the client may send without knowing it would be here by then.
    await client.send('other', { value: 'v', partition: 1 })
    assert.equal(broker.produced.length, 1)
    ask()
    const offsets = (await Promise.all([keyed, named])).map(({ offset }) => offset)
    assert.deepEqual(offsets, [0, 1])
  })

  test('may be more than a call can have arguments, also when the broker cannot say it at once', async t => {
    const broker = await startFakeBroker(t)
    const take = broker.take.bind(broker)
    broker.take = (frame, connection) => {
      broker.take = take
      connection.refuse(frame.requestId, 'unavailable: shard 0 is starting')
    }
    const client = clientOf(t, broker, { batchRecords: 100_000 })
    const sent = range(400_000).map(() => client.send('t', { value: '' }))
    assert.equal((await Promise.all(sent)).length, 400_000)
  })

  test('reject when there will be none, and those that name a partition hear of that', async t => {
    const broker = await startFakeBroker(t)
    broker.take = (frame, connection) => connection.refuse(frame.requestId, 'forbidden: this key may not')
    const client = clientOf(t, broker)
    const sent = [{ key: 'k' }, { partition: 0 }, {}].map(rest => client.send('t', { value: 'v', ...rest }))
    const refused = { kind: 'refused', written: 'no', retryable: false }
    await Promise.all(sent.map(promise => assert.rejects(promise, refused)))
  })
})

describe('records without idempotence', () => {
  test('leave in the order of the calls, many requests in flight', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = () => 'silence'
    const client = clientOf(t, broker, { idempotent: false, batchRecords: 10 })
    const sent = sendMany(client, 100)
    await waitFor('all requests', () => broker.produced.length === 10)
    for (const produced of broker.produced) broker.settle(produced, 'write')
    assert.deepEqual(offsetsOf(await sent), range(100))
    assert.equal(broker.produced[0]?.producerId, null)
  })

  test('are never sent again once they may have left, and go on behind those', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = inTurn('write', 'lose')
    const client = clientOf(t, broker, { idempotent: false, batchRecords: 10 })
    await sendMany(client, 10)
    const offsets = offsetsOf(await sendMany(client, 10))
    assert.deepEqual(
      offsets,
      range(10).map(() => 'unknown')
    )
    assert.deepEqual(offsetsOf(await sendMany(client, 10)), range(10, 20))
    assert.equal(broker.produced.length, 3)
  })

  test('keep their order where some were still being deflated when the connection was lost', async t => {
    const broker = await startFakeBroker(t, 3, features.gzip)
    const client = clientOf(t, broker, { idempotent: false, batchRecords: 1, gzip: true })
    await client.send('t', { value: 'first', partition: 0 })
    broker.fateOf = inTurn('drop')
    const value = diceOf(1).bytes(500_000)
    // The first is small, leaves at once and takes the connection with it, while the large ones are being deflated.
    const sent = range(60).map(i =>
      client.send('t', { value: i === 0 ? 'small' : i < 40 ? value : `${i}`, partition: 0 })
    )
    const offsets = offsetsOf(await Promise.allSettled(sent)).filter(offset => typeof offset === 'number')
    assert.ok(offsets.length > 0)
    assert.deepEqual(offsets, range(offsets.length, 1))
  })

  test('reject with what the broker says, and how long to wait', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = inTurn({ refuse: 'rate limited: retry in 1.5s' })
    const client = clientOf(t, broker, { idempotent: false })
    await assert.rejects(client.send('t', { value: 'v' }), { kind: 'refused', retryable: true, retryAfterMs: 1500 })
    assert.equal((await client.send('t', { value: 'v' })).offset, 0)
  })
})

describe('a pipelined client', () => {
  test('refuses records beyond its buffer, and says when there is room', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = () => 'silence'
    const client = clientOf(t, broker, { bufferBytes: 1000, batchRecords: 1 })
    const value = Buffer.alloc(580)
    const sent = [0, 1].map(partition => client.send('t', { value, partition }))
    assert.equal(client.bufferedBytes, 1200)
    await assert.rejects(client.send('t', { value, partition: 0 }), { kind: 'buffer-full', written: 'no' })
    let hasRoom = false
    const ready = client.ready().then(() => (hasRoom = true))
    await waitFor('the requests', () => broker.produced.length === 2)
    assert.equal(hasRoom, false)
    broker.fateOf = () => 'write'
    for (const produced of broker.produced) broker.settle(produced, 'write')
    await ready
    await Promise.all(sent)
    assert.equal(client.bufferedBytes, 0)
    await client.send('t', { value, partition: 0 })
  })

  test('sends what waits for more when it is flushed, and waits for all of it', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker, { lingerMs: 60_000 })
    const sent = [client.send('t', { value: 'a', partition: 0 }), client.send('t', { key: 'k', value: 'b' })]
    await client.flush()
    assert.equal(client.bufferedBytes, 0)
    assert.equal((await Promise.all(sent)).length, 2)
    await client.flush()
  })

  test('sends a batch when it is full, before its time', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker, { lingerMs: 60_000, batchRecords: 5 })
    assert.deepEqual(offsetsOf(await sendMany(client, 5)), range(5))
  })

  test('settles all records before it is closed, and takes none after', async t => {
    const broker = await startFakeBroker(t)
    const client = clientOf(t, broker, { lingerMs: 60_000 })
    const sent = sendMany(client, 200)
    await client.close()
    assert.deepEqual(offsetsOf(await sent), range(200))
    await assert.rejects(client.send('t', { value: 'v' }), { kind: 'closed', written: 'no' })
    await assert.rejects(
      Promise.resolve().then(() => clientOf(t, broker, { lingerMs: -1 })),
      { kind: 'invalid' }
    )
  })

  test('does not try on where something else listens', async t => {
    const server = createServer(socket => socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    for (const options of [{}, { idempotent: false }]) {
      const client = clientOf(t, await startFakeBroker(t), { port, ...options })
      for (const rest of [{ partition: 0 }, { key: 'k' }]) {
        await assert.rejects(client.send('t', { value: 'v', ...rest }), { kind: 'protocol', written: 'no' })
      }
    }
  })

  test('that is destroyed rejects at once what waits for others to share its request', async t => {
    const broker = await startFakeBroker(t)
    for (const idempotent of [true, false]) {
      const client = clientOf(t, broker, { lingerMs: 100_000, idempotent })
      const sent = sendMany(client, 3)
      await client.ready()
      client.destroy()
      assert.deepEqual(offsetsOf(await sent), ['no', 'no', 'no'])
    }
  })

  test('that is destroyed rejects what is open: unknown what may have left, else no', async t => {
    const broker = await startFakeBroker(t)
    broker.fateOf = () => 'silence'
    const client = clientOf(t, broker)
    const sent = sendMany(client, 200)
    await waitFor('the request', () => broker.produced.length === 1)
    client.destroy()
    const kinds = (await sent).map(result => result.status === 'rejected' && (result.reason as ClientError).kind)
    assert.deepEqual(new Set(kinds), new Set(['closed']))
    assert.deepEqual(offsetsOf(await sent), [...range(128).map(() => 'unknown'), ...range(72).map(() => 'no')])
  })

  test('refuses what cannot be a record', async t => {
    const client = clientOf(t, await startFakeBroker(t))
    for (const record of [
      { value: 5 },
      { value: 'v', key: 5 },
      { value: 'v', partition: -1 },
      { value: 'v', partition: 2 ** 31 - 1 },
      {}
    ]) {
      await assert.rejects(client.send('t', record as never), { kind: 'invalid', written: 'no' })
    }
    await assert.rejects(client.send('', { value: 'v' }), { kind: 'invalid' })
  })
})
