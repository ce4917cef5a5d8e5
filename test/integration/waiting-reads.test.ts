/**
 * Reads that wait for records, on a real broker: they end when there is something, when their time is over, and when
 * nobody may or wants to have them any more; and nothing of them is left behind.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import { makeTestKey, revokeKey, startGuarded } from '../support/access.ts'
import { variants, waitFor, type TestBroker } from '../support/broker.ts'
import { HttpApi, assertRefused, onBothEngines, parse, type HttpAnswer, type ReadAnswer } from '../support/http-api.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'

/** Longer than any test lasts: whatever ends such a wait, it was not its time. */
const FOREVER = 'max_wait_ms=60000'

/** Reads that wait, all together. */
async function waitingCount(api: HttpApi): Promise<number> {
  const count = valueOf(parsePage((await api.get('/metrics')).text), 'millrace_watches')
  assert.ok(count !== undefined)
  return count
}

/** Requests that shards have in progress. */
function inProgress({ server }: TestBroker): number {
  return server.shardSet.links().reduce((sum, link) => sum + link.pending.count, 0)
}

/** Sends a read, and sees to it that it waits. @returns its answer to come. */
async function startWaiting(api: HttpApi, path: string, gauge = api): Promise<{ answer: Promise<HttpAnswer> }> {
  const before = await waitingCount(gauge)
  const answer = api.get(path)
  await waitFor('the read to wait', async () => (await waitingCount(gauge)) > before)
  return { answer }
}

const valuesOf = (answer: HttpAnswer): string[] => parse<ReadAnswer>(answer).records.map(({ value }) => value)

onBothEngines('a read that waits', async (t, api, broker) => {
  await api.createTopic('orders', 3)
  const path = (query: string, partition = 0): string => `/topics/orders/consume?partition=${partition}&${query}`

  await t.test('is answered with the record that it waited for, and nothing of it is left', async () => {
    const { answer } = await startWaiting(api, path(`offset=0&${FOREVER}`))
    await api.produce('orders', [{ value: 'elsewhere', partition: 1 }])
    assert.equal(await waitingCount(api), 1, 'a record of another partition is none of its business')
    await api.produce('orders', [{ value: 'first', partition: 0 }])
    assert.deepEqual(valuesOf(await answer), ['first'])
    assert.deepEqual([await waitingCount(api), inProgress(broker)], [0, 0])
  })

  await t.test('does not wait when there is something already', async () => {
    assert.deepEqual(valuesOf(await api.get(path(`offset=0&${FOREVER}`))), ['first'])
  })

  await t.test('gets what other reads get when its time is over', async () => {
    const waited = await api.get(path('offset=1&max_wait_ms=20'))
    assert.deepEqual([waited.status, waited.text], [200, '{"records":[],"next_offset":1,"high_watermark":1}'])
  })

  await t.test('waits for as many bytes as it asks for, while others get what there is', async () => {
    const { answer } = await startWaiting(api, path(`offset=1&${FOREVER}&min_bytes=2500`))
    for (const size of [1000, 1000]) {
      const other = await startWaiting(api, path(`offset=${(await api.ends('orders'))[0]}&${FOREVER}`))
      await api.produce('orders', [{ value: 'x'.repeat(size), partition: 0 }])
      assert.equal(valuesOf(await other.answer).length, 1)
      assert.equal(await waitingCount(api), 1)
    }
    await api.produce('orders', [{ value: 'y'.repeat(1000), partition: 0 }])
    assert.deepEqual(
      valuesOf(await answer).map(value => value.length),
      [1000, 1000, 1000]
    )
  })

  await t.test('beyond the end waits until the end has passed it', async () => {
    const [end = 0] = await api.ends('orders')
    const { answer } = await startWaiting(api, path(`offset=${end + 1}&${FOREVER}`))
    await api.produce('orders', [{ value: 'before', partition: 0 }])
    assert.equal(await waitingCount(api), 1)
    await api.produce('orders', [{ value: 'there', partition: 0 }])
    assert.deepEqual(valuesOf(await answer), ['there'])
  })

  await t.test('shares what it waits for with all others: many of them cost a shard one request', async () => {
    const [, , end = 0] = await api.ends('orders')
    const answers = Array.from({ length: 50 }, () => api.get(path(`offset=${end}&${FOREVER}`, 2)))
    await waitFor('all to wait', async () => (await waitingCount(api)) === 50)
    assert.equal(inProgress(broker), 1)
    await api.produce('orders', [{ value: 'for all', partition: 2 }])
    for (const answer of await Promise.all(answers)) assert.deepEqual(valuesOf(answer), ['for all'])
  })

  await t.test('meets every record, whatever the size of the groups', async () => {
    await api.createTopic('large')
    const value = 'v'.repeat(300_000)
    for (let offset = 0; offset < 40; offset++) {
      const { answer } = await startWaiting(api, `/topics/large/consume?partition=0&offset=${offset}&${FOREVER}`)
      await api.produce('large', [{ value }])
      assert.equal(parse<ReadAnswer>(await answer).next_offset, offset + 1)
    }
  })

  await t.test('is refused at once for what it would be refused for later', async () => {
    assertRefused(await api.get(path(`offset=0&${FOREVER}`, 3)), 400, 'PARTITION_RANGE', [3])
    assertRefused(await api.get(`/topics/none/consume?partition=0&offset=0&${FOREVER}`), 404, 'TOPIC_NOT_FOUND')
    assertRefused(await api.get(`/groups/g/consume?topic=none&partition=0&${FOREVER}`), 404, 'TOPIC_NOT_FOUND')
  })

  await t.test('of a group waits at the offset that was committed when it began', async () => {
    const [end = 0] = await api.ends('orders')
    const commit = { topic: 'orders', partition: 0, offset: end }
    assert.equal((await api.post('/groups/g/commit', commit)).status, 204)
    const { answer } = await startWaiting(api, `/groups/g/consume?topic=orders&partition=0&${FOREVER}`)
    assert.equal((await api.post('/groups/g/commit', { ...commit, offset: 0 })).status, 204)
    await api.produce('orders', [{ value: 'of the group', partition: 0 }])
    assert.deepEqual(valuesOf(await answer), ['of the group'])
  })

  await t.test('ends with its client', async () => {
    const { hostname, port } = new URL(broker.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const [end = 0] = await api.ends('orders')
    socket.write(`GET ${path(`offset=${end}&${FOREVER}`)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await waitFor('the read to wait', async () => (await waitingCount(api)) === 1)
    socket.destroy()
    await waitFor('nobody to wait', async () => (await waitingCount(api)) === 0)
    await waitFor('the shard to have forgotten it', () => inProgress(broker) === 0)
  })

  await t.test('ends with its topic', async () => {
    await api.createTopic('short', 2)
    const { answer } = await startWaiting(api, `/topics/short/consume?partition=1&offset=0&${FOREVER}`)
    assert.equal((await api.call('DELETE', '/topics/short')).status, 200)
    assertRefused(await answer, 404, 'TOPIC_NOT_FOUND', ['short'])
    assert.deepEqual([await waitingCount(api), inProgress(broker)], [0, 0])
  })

  await t.test('whose shard dies is answered what other reads are answered, and the next one waits again', async () => {
    const [end = 0] = await api.ends('orders')
    const { answer } = await startWaiting(api, path(`offset=${end}&${FOREVER}`))
    await Promise.all(broker.server.shardSet.links().map(link => link.terminate()))
    assertRefused(await answer, 503, 'SHARD_DOWN')
    await waitFor('the shards to be back', async () => (await api.get('/readyz')).status === 200)
    const again = await startWaiting(api, path(`offset=${end}&${FOREVER}`))
    await api.produce('orders', [{ value: 'after', partition: 0 }])
    assert.deepEqual(valuesOf(await again.answer), ['after'])
  })

  await t.test('is answered with what there is by a broker that stops', async () => {
    const [end = 0] = await api.ends('orders')
    const { answer } = await startWaiting(api, path(`offset=${end}&${FOREVER}`))
    const stopped = broker.stop()
    assert.deepEqual(valuesOf(await answer), [])
    await stopped
  })
})

for (const variant of variants.filter(({ shards }) => shards === 1)) {
  test(`a read that waits ends with its key, and with no other, on ${variant.engine}`, async t => {
    const { admin } = await startGuarded(t, { variant })
    await admin.api.createTopic('orders')
    const [one, other] = [await makeTestKey(admin.api, 'read:orders'), await makeTestKey(admin.api, 'read:orders')]
    const path = `/topics/orders/consume?partition=0&offset=0&${FOREVER}`
    const revoked = await startWaiting(one.api, path, admin.api)
    const kept = await startWaiting(other.api, path, admin.api)
    const stranger = await makeTestKey(admin.api, 'read:others')
    assertRefused(await stranger.api.get(path), 403, 'FORBIDDEN')
    await revokeKey(admin.api, one.id)
    assertRefused(await revoked.answer, 401, 'KEY_REVOKED')
    await admin.api.produce('orders', [{ value: 'v' }])
    assert.deepEqual(valuesOf(await kept.answer), ['v'])
  })
}
