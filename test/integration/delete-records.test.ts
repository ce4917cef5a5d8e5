/** Deleting records of a running broker: what is below the start is gone for every reader, for good, wherever it lies. */
import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { test } from 'node:test'
import { runMillrace, startBroker, waitFor } from '../support/broker.ts'
import { HttpApi, assertRefused, onBothEngines, parse } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

async function deleteRecords(api: HttpApi, topic: string, partition: number, offset: number): Promise<number> {
  const answer = parse<{ partition: number; start_offset: number }>(
    await api.post(`/topics/${topic}/delete-records`, { partition, offset })
  )
  assert.equal(answer.partition, partition)
  return answer.start_offset
}

/** Offsets that can be read from 0 on. */
async function readable(api: HttpApi, topic: string, partition: number): Promise<number[]> {
  return (await api.consumeAll(topic, partition)).map(({ offset }) => offset)
}

async function startOf(api: HttpApi, topic: string, partition: number): Promise<number | undefined> {
  return (await api.describe(topic)).partitions[partition]?.start_offset
}

const upTo = (first: number, end: number): number[] => Array.from({ length: end - first }, (_, i) => first + i)

onBothEngines('records that were deleted are gone for readers, and the start never goes back', async (t, api) => {
  await api.createTopic('orders', 2)
  await api.produce(
    'orders',
    upTo(0, 20).map(i => ({ value: `v${i}`, partition: 1 }))
  )
  await t.test('also in the middle of a batch', async () => {
    assert.equal(await deleteRecords(api, 'orders', 1, 7), 7)
    assert.deepEqual(await readable(api, 'orders', 1), upTo(7, 20))
    assert.equal(await startOf(api, 'orders', 1), 7)
  })
  await t.test('a read below the start begins at it, and answers as one from there', async () => {
    const below = await api.consume('orders', 1, 'offset=0&max_records=2')
    assert.deepEqual([below.records.map(({ value }) => value), below.next_offset], [['v7', 'v8'], 9])
  })
  await t.test('offsets and searches by time begin at the start', async () => {
    const first = (await api.consume('orders', 1, 'offset=7&max_records=1')).records[0]
    const answer = parse<unknown>(await api.get('/topics/orders/offsets?partition=1&timestamp_ms=0'))
    const found = { offset: 7, timestamp_ms: first?.timestamp_ms }
    assert.deepEqual(answer, { partition: 1, earliest: 7, latest: 20, ...found })
  })
  await t.test('a lower offset changes nothing, and is answered with the start', async () => {
    assert.deepEqual([await deleteRecords(api, 'orders', 1, 3), await deleteRecords(api, 'orders', 1, 7)], [7, 7])
  })
  await t.test('an offset beyond the end is refused with the end, digit for digit', async () => {
    for (const offset of ['21', '9007199254740993', '18446744073709551615']) {
      const answer = await api.post('/topics/orders/delete-records', `{"partition":1,"offset":${offset}}`)
      assertRefused(answer, 400, 'FIELD_RANGE', [offset, 'to 20'])
    }
    assertRefused(await api.post('/topics/orders/delete-records', { partition: 0, offset: 1 }), 400, 'FIELD_RANGE', [
      'to 0'
    ])
    assert.equal(await startOf(api, 'orders', 1), 7)
  })
  await t.test('what is no offset, no partition or no topic is refused', async () => {
    for (const offset of ['-1', '"latest"', 'null', '1.5', '18446744073709551616'])
      assertRefused(
        await api.post('/topics/orders/delete-records', `{"partition":1,"offset":${offset}}`),
        400,
        'FIELD_INVALID',
        ['offset']
      )
    const far = await api.post('/topics/orders/delete-records', { partition: 2, offset: 0 })
    assertRefused(far, 400, 'PARTITION_RANGE', ['orders', 2])
    assertRefused(await api.post('/topics/none/delete-records', { partition: 0, offset: 0 }), 404, 'TOPIC_NOT_FOUND')
  })
  await t.test('the end as the offset deletes all, and the next record follows on', async () => {
    assert.equal(await deleteRecords(api, 'orders', 1, 20), 20)
    assert.deepEqual(await readable(api, 'orders', 1), [])
    const partition = (await api.describe('orders')).partitions[1]
    assert.deepEqual([partition?.start_offset, partition?.end_offset, partition?.size_bytes], [20, 20, 0])
    assert.deepEqual(await api.produce('orders', [{ value: 'next', partition: 1 }]), [{ partition: 1, offset: 20 }])
    assert.deepEqual(await readable(api, 'orders', 1), [20])
  })
  await t.test('many at once, each answered with the highest start so far or a later one', async () => {
    await api.produce(
      'orders',
      upTo(0, 50).map(() => ({ value: 'w', partition: 0 }))
    )
    const starts = await Promise.all(upTo(0, 50).map(offset => deleteRecords(api, 'orders', 0, offset)))
    starts.forEach((start, offset) => assert.ok(start >= offset && start < 50))
    assert.equal(await startOf(api, 'orders', 0), 49)
  })
})

onBothEngines('a start that was moved is kept by settling, restarts and verification', async (t, api, broker) => {
  await api.createTopic('big', 1, { segment_bytes: 100_000 })
  for (let i = 0; i < 30; i++)
    await api.produce(
      'big',
      [0, 1, 2].map(j => ({ value: `${i}.${j}`.padEnd(10_000, 'x'), partition: 0 }))
    )
  assert.equal(await deleteRecords(api, 'big', 0, 31), 31)
  await broker.server.shardSet.settleAll()
  assert.deepEqual(await readable(api, 'big', 0), upTo(31, 90))
  // Now in settled files: inside a batch, then all but the last segment.
  assert.equal(await deleteRecords(api, 'big', 0, 43), 43)
  const sizes = async (): Promise<number | undefined> => (await api.describe('big')).partitions[0]?.size_bytes
  const before = (await sizes()) ?? 0
  assert.equal(await deleteRecords(api, 'big', 0, 76), 76)
  assert.ok(((await sizes()) ?? 0) < before / 2)
  await broker.stop()
  const verified = await runMillrace(['verify', '--data-dir', broker.dataDir])
  assert.equal(verified.code, 0, verified.stdout + verified.stderr)
  const again = new HttpApi((await startBroker(t, { dataDir: broker.dataDir })).url)
  assert.equal(await startOf(again, 'big', 0), 76)
  assert.deepEqual(await readable(again, 'big', 0), upTo(76, 90))
})

test('segments in cold storage below the start are not listed any more, and their objects go', async t => {
  const cold = temporaryDirectory(t)
  const flags = { '--cold-storage-dir': cold, '--segment-delete-grace': '10ms' }
  const broker = await startBroker(t, { flags })
  const api = new HttpApi(broker.url)
  await api.createTopic('events', 1, { segment_bytes: 100_000, retention_bytes: 50_000 })
  for (let i = 0; i < 40; i++) await api.produce('events', [{ value: `${i}:`.padEnd(20_000, 'x'), partition: 0 }])
  assert.equal((await api.post('/admin/run-retention', '')).status, 204)
  const tiered = async (): Promise<number[]> =>
    parse<{ segments: number[] }>(await api.get('/admin/tiered/events/0')).segments
  const segments = await tiered()
  const [first = 0, second = 0, third = 0] = segments
  assert.ok(segments.length > 4 && first === 0)
  await deleteRecords(api, 'events', 0, second - 1)
  assert.deepEqual(await tiered(), segments, 'one record of the first is left')
  await deleteRecords(api, 'events', 0, third + 1)
  assert.deepEqual(await tiered(), segments.slice(2), 'at once, whatever the settler knows')
  assert.deepEqual(await readable(api, 'events', 0), upTo(third + 1, 40))
  const objects = (): number =>
    readdirSync(cold, { recursive: true, encoding: 'utf8' }).filter(name => name.endsWith('.log')).length
  await waitFor('the objects to go', async () => {
    await api.post('/admin/run-retention', '')
    return objects() === segments.length - 2
  })
  assert.deepEqual(await readable(api, 'events', 0), upTo(third + 1, 40))
})

onBothEngines('a broker alone says that nothing is replicated', async (_, api) => {
  const answer = await api.get('/raft')
  const text = '{"node_id":null,"members":[],"partitions":[],"replicating":false}'
  assert.deepEqual([answer.status, answer.text], [200, text])
})
