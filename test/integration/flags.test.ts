/** Flags of the broker that no other test is about: what each promises, seen from outside. */
import assert from 'node:assert/strict'
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { encodeHello } from '../../src/wire/es01/handshake.ts'
import { startBroker, waitFor } from '../support/broker.ts'
import { greetRaw, openClient, openRaw } from '../support/es01-session.ts'
import { HttpApi, onBothEngines, parse } from '../support/http-api.ts'

test('a topic gets --segment-bytes and --default-tombstone-retention-ms unless it says otherwise', async t => {
  const flags = { '--segment-bytes': '1MiB', '--default-tombstone-retention-ms': '7' }
  const api = new HttpApi((await startBroker(t, { flags })).url)
  await api.createTopic('silent')
  await api.createTopic('outspoken', 1, { segment_bytes: 4096, tombstone_retention_ms: 8 })
  const { config: given } = await api.describe('silent')
  const { config: own } = await api.describe('outspoken')
  assert.deepEqual([given['segment_bytes'], given['tombstone_retention_ms']], [1024 * 1024, 7])
  assert.deepEqual([own['segment_bytes'], own['tombstone_retention_ms']], [4096, 8])
})

test('a compacted topic is compacted by itself at --compaction-check-interval', async t => {
  const broker = await startBroker(t, { flags: { '--compaction-check-interval': '50ms' } })
  const api = new HttpApi(broker.url)
  await api.createTopic('state', 1, { segment_bytes: 1000, cleanup_policy: 'compact' })
  for (let i = 0; i < 30; i++) await api.produce('state', [{ key: `k${i % 3}`, value: `${i}`.padEnd(200, 'x') }])
  await broker.server.shardSet.settleAll()
  const records = await waitFor('a compaction', async () => {
    const found = await api.consumeAll('state', 0)
    return found.length < 15 && found
  })
  assert.equal(records.at(-1)?.offset, 29)
})

test('--max-fetch-bytes and --max-fetch-records are the ceilings of a read, over both protocols', async t => {
  const broker = await startBroker(t, { flags: { '--max-fetch-bytes': '1000', '--max-fetch-records': '5' } })
  const api = new HttpApi(broker.url)
  const client = await openClient(t, broker.es01)
  await api.createTopic('large')
  await api.createTopic('small')
  await api.produce(
    'large',
    Array.from({ length: 9 }, () => ({ value: 'v'.repeat(300) }))
  )
  await api.produce(
    'small',
    Array.from({ length: 9 }, () => ({ value: 'v' }))
  )
  const counts = async (topic: string): Promise<number[]> => {
    const http = await api.consume(topic, 0, 'offset=0&max_records=100&max_bytes=100000')
    const es01 = await client.consume({ topic, partition: 0, offset: 0, maxRecords: 100, maxBytes: 100_000 })
    return [http.records.length, es01.records.length]
  }
  const [http = 0, es01 = 0] = await counts('large')
  assert.ok(http >= 1 && http <= 3 && es01 >= 1 && es01 <= 3, `${http} and ${es01} records of 332 bytes`)
  assert.deepEqual(await counts('small'), [5, 5])
})

test('one connection more than --binary-max-connections-per-ip is closed without a byte, until one ends', async t => {
  const broker = await startBroker(t, { flags: { '--binary-max-connections-per-ip': '2' } })
  const first = await greetRaw(t, broker.es01)
  await greetRaw(t, broker.es01)
  const third = await openRaw(t, broker.es01)
  await third.closed()
  assert.equal(third.socket.bytesRead, 0)
  first.socket.end()
  await first.closed()
  await waitFor('room for another', async () => {
    const next = await openRaw(t, broker.es01)
    next.send(encodeHello('', 0))
    await Promise.race([next.closed(), next.take(13)])
    return next.socket.bytesRead === 13
  })
})

test('a binary connection on which nothing is sent for --binary-idle-timeout is closed without a byte', async t => {
  const broker = await startBroker(t, { flags: { '--binary-idle-timeout': '1s' } })
  const client = await greetRaw(t, broker.es01)
  await client.closed()
  assert.equal(client.socket.bytesRead, 13, 'the answer to the hello, and nothing else')
})

onBothEngines(
  'what lies in --data-dir is for its owner alone: directories 0700, files 0600',
  async (_, api, broker) => {
    await api.createTopic('private', 1, { segment_bytes: 1_000_000 })
    for (let i = 0; i < 5; i++) await api.produce('private', [{ value: 'v'.repeat(600_000) }])
    await broker.server.shardSet.settleAll()
    const modes = new Map<string, string>()
    for (const entry of readdirSync(broker.dataDir, { recursive: true, withFileTypes: true })) {
      const path = join(entry.parentPath, entry.name)
      modes.set(path.slice(broker.dataDir.length), (statSync(path).mode & 0o777).toString(8))
      assert.equal(modes.get(path.slice(broker.dataDir.length)), entry.isDirectory() ? '700' : '600', path)
    }
    assert.ok(modes.size > 6 && [...modes.keys()].some(path => path.includes('/topics/')), [...modes.keys()].join())
  }
)

onBothEngines(
  'an empty value is a record, reads as empty, and is a tombstone to compaction',
  async (t, api, broker) => {
    await api.createTopic('state', 1, { segment_bytes: 1000, cleanup_policy: 'compact', tombstone_retention_ms: 0 })
    await api.produce('state', [{ key: 'gone', value: 'v' }])
    await api.produce('state', [{ key: 'gone', value: '' }])
    await api.produce('state', [{ key: 'kept', value: 'v' }])
    const client = await openClient(t, broker.es01)
    const read = await client.consume({ topic: 'state', partition: 0, offset: 1, maxRecords: 1, maxBytes: 1000 })
    assert.equal(read.records[0]?.value.length, 0)
    const answer = parse<{ records: { key: string; value: string }[] }>(
      await api.get('/topics/state/consume?partition=0&offset=1&max_records=1')
    )
    assert.deepEqual([answer.records[0]?.key, answer.records[0]?.value], ['gone', ''])
    // The active segment is left alone: these seal the one with the tombstone.
    for (let i = 0; i < 3; i++) await api.produce('state', [{ key: `f${i}`, value: 'x'.repeat(800) }])
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    const keys = (await api.consumeAll('state', 0)).map(({ key }) => key)
    assert.deepEqual(keys, ['kept', 'f0', 'f1', 'f2'])
  }
)

test('a retention pass is over when its segments cannot be read; their files stay for --segment-delete-grace', async t => {
  const flags = { '--segment-delete-grace': '1h' }
  const broker = await startBroker(t, { flags })
  const api = new HttpApi(broker.url)
  await api.createTopic('events', 1, { segment_bytes: 1_000_000, retention_bytes: 1_000_000 })
  for (let i = 0; i < 6; i++) await api.produce('events', [{ value: `${i}:`.padEnd(600_000, 'x') }])
  await broker.server.shardSet.settleAll()
  const logs = (): string[] =>
    readdirSync(join(broker.dataDir, 'topics'), { recursive: true, encoding: 'utf8' }).filter(name =>
      name.endsWith('.log')
    )
  const before = logs().length
  assert.ok(before > 2)
  assert.equal((await api.post('/admin/run-retention', '')).status, 204)
  const start = (await api.describe('events')).partitions[0]?.start_offset ?? 0
  assert.ok(start >= 4, `starts at ${start}`)
  assert.equal((await api.consume('events', 0, 'offset=0')).records[0]?.offset, start)
  assert.equal(logs().length, before)
  // Ended inside the grace: what was dropped does not come back.
  await broker.stop()
  const again = new HttpApi((await startBroker(t, { dataDir: broker.dataDir, flags })).url)
  assert.equal((await again.describe('events')).partitions[0]?.start_offset, start)
  assert.equal((await again.consume('events', 0, 'offset=0')).records[0]?.offset, start)
})

test('with --flush-every-records above 1 an acknowledgement waits for no sync, which follows after --flush-interval', async t => {
  const syncsOf = async (interval: string): Promise<() => number> => {
    const flags = { '--flush-every-records': '1000', '--flush-interval': interval, '--shards': '1' }
    const broker = await startBroker(t, { flags })
    const api = new HttpApi(broker.url)
    await api.createTopic('events')
    const syncs = (): number => broker.server.shardSet.counters()[0]?.counters.syncs ?? 0
    const before = syncs()
    await api.produce('events', [{ value: 'v' }])
    return () => syncs() - before
  }
  const soon = await syncsOf('20ms')
  const late = await syncsOf('1h')
  await waitFor('the sync', () => soon() > 0)
  assert.equal(late(), 0)
})
