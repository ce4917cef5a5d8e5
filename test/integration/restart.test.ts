/** A clean stop and a start on the same directory: nothing is lost, nothing comes back (durability V1 to V7). */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startBroker, type TestBroker, type Variant } from '../support/broker.ts'
import { openClient, range } from '../support/es01-session.ts'
import { HttpApi } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** What a client can see of a broker: descriptions and every record. */
async function snapshot(api: HttpApi): Promise<unknown> {
  const { topics } = JSON.parse((await api.get('/topics')).text) as { topics: string[] }
  return await Promise.all(
    topics.map(async topic => {
      const description = await api.describe(topic)
      const records = await Promise.all(description.partitions.map(({ id }) => api.consumeAll(topic, id)))
      return { description, records }
    })
  )
}

async function fill(t: TestContext, broker: TestBroker, round: number): Promise<void> {
  const api = new HttpApi(broker.url)
  const client = await openClient(t, broker.es01)
  for (const i of range(5)) {
    await api.produce(
      'orders',
      range(40).map(j => ({ key: `k${j % 7}`, value: `http ${round}.${i}.${j}` }))
    )
    await client.produce(
      'orders',
      range(40).map(j => ({ value: `es01 ${round}.${i}.${j}` }))
    )
    await client.produce('audit', [{ value: Buffer.alloc(200_000, `${round}.${i}`), key: null }])
  }
  await client.close()
}

for (const variant of [
  { engine: 'uws', shards: 1 },
  { engine: 'node', shards: 3 }
] as const satisfies readonly Variant[]) {
  test(`a broker that is stopped and started again, on ${variant.engine} with ${variant.shards} shard(s)`, async t => {
    const dataDir = temporaryDirectory(t)
    const start = (): Promise<TestBroker> => startBroker(t, { dataDir, variant })
    const first = await start()
    assert.ok(first.server.firstStart)
    const firstApi = new HttpApi(first.url)
    await firstApi.createTopic('orders', 5, { retention_ms: 1000, segment_bytes: 4096 })
    await firstApi.createTopic('audit', 2, { cleanup_policy: 'compact' })
    await firstApi.createTopic('doomed', 3)
    await firstApi.produce(
      'doomed',
      range(9).map(i => ({ value: `${i}` }))
    )
    await firstApi.call('DELETE', '/topics/doomed')
    await fill(t, first, 1)
    const before = await snapshot(firstApi)
    await first.stop()

    const second = await start()
    const api = new HttpApi(second.url)
    await t.test('has its topics, configurations, records and offsets as they were', async () => {
      assert.ok(!second.server.firstStart)
      assert.deepEqual(await snapshot(api), before)
    })
    await t.test('goes on at the next offset of each partition', async () => {
      const ends = await api.ends('orders')
      const results = await api.produce(
        'orders',
        range(5).map(partition => ({ partition, value: 'after' }))
      )
      assert.deepEqual(
        results,
        range(5).map(partition => ({ partition, offset: ends[partition] }))
      )
    })
    await t.test('has nothing of a topic that was deleted, also under its name made anew', async () => {
      assert.equal((await api.get('/topics/doomed')).status, 404)
      await api.createTopic('doomed', 3)
      assert.deepEqual(await api.ends('doomed'), [0, 0, 0])
      assert.deepEqual(await api.produce('doomed', [{ value: 'new life' }]), [{ partition: 0, offset: 0 }])
    })
    await t.test('keeps all of it over many more starts', async () => {
      let running = second
      for (const round of range(3, 2)) {
        await fill(t, running, round)
        const seen = await snapshot(new HttpApi(running.url))
        await running.stop()
        running = await start()
        assert.deepEqual(await snapshot(new HttpApi(running.url)), seen, `after round ${round}`)
      }
      assert.deepEqual(
        (await new HttpApi(running.url).consumeAll('doomed', 0)).map(record => record.value),
        ['new life']
      )
      await running.stop()
    })
  })
}

test('the number of shards belongs to the data directory', async t => {
  const dataDir = temporaryDirectory(t)
  const first = await startBroker(t, { dataDir, flags: { '--shards': '2' } })
  await new HttpApi(first.url).createTopic('kept', 4)
  await new HttpApi(first.url).produce(
    'kept',
    range(8).map(i => ({ value: `${i}` }))
  )
  await first.stop()
  await t.test('it is kept where none is named, and the records are there', async () => {
    const again = await startBroker(t, { dataDir })
    assert.equal(again.server.shards, 2)
    assert.deepEqual(await new HttpApi(again.url).ends('kept'), [2, 2, 2, 2])
    await again.stop()
  })
  await t.test('another number that is asked for becomes its own', async () => {
    await (await startBroker(t, { dataDir, flags: { '--shards': '3' } })).stop()
    const again = await startBroker(t, { dataDir })
    assert.equal(again.server.shards, 3)
    assert.deepEqual(await new HttpApi(again.url).ends('kept'), [2, 2, 2, 2])
  })
})

test('a stop answers what is in progress, and what was answered is there after the start', async t => {
  const dataDir = temporaryDirectory(t)
  const variant = { engine: 'uws', shards: 3 } as const
  const first = await startBroker(t, { dataDir, variant })
  await new HttpApi(first.url).createTopic('load', 6)
  const client = await openClient(t, first.es01)
  const acknowledged: { partition: number; offset: number; value: string }[] = []
  let sent = 0
  let isStopping = false
  const writer = async (): Promise<void> => {
    for (;;) {
      const value = `v${sent++}`
      try {
        const [result] = await client.produce('load', [{ value }])
        if (result !== undefined) acknowledged.push({ partition: result.partition, offset: result.offset, value })
      } catch (error) {
        assert.ok(isStopping, String(error))
        return
      }
      if (acknowledged.length === 300) {
        isStopping = true
        stopped = first.stop()
      }
    }
  }
  let stopped: Promise<void> = Promise.resolve()
  await Promise.all(range(16).map(writer))
  await stopped
  assert.ok(acknowledged.length >= 300)

  const second = await startBroker(t, { dataDir, variant })
  const api = new HttpApi(second.url)
  const logs = await Promise.all(range(6).map(partition => api.consumeAll('load', partition)))
  for (const { partition, offset, value } of acknowledged) assert.equal(logs[partition]?.[offset]?.value, value)
  assert.ok(logs.flat().length <= sent)
})
