/** Tiered storage of a running broker, over HTTP: what is moved stays readable, byte for byte, and nothing is lost on the way. */
import assert from 'node:assert/strict'
import { readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { startBroker, waitFor } from '../support/broker.ts'
import { filesBelow, localLogs } from '../support/files-below.ts'
import { HttpApi, onBothEngines, type ReadRecord } from '../support/http-api.ts'
import { startProxy, startS3rver } from '../support/s3-servers.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** Little is kept here. */
const config = { segment_bytes: 100_000, retention_bytes: 50_000 }
const graceless = { '--segment-delete-grace': '10ms' }

/** Values of many sizes, so that segments lie in packs as well as in files of their own. */
async function fill(api: HttpApi, topic: string, from: number, count: number, bytes = 20_000): Promise<void> {
  for (let i = from; i < from + count; i++) {
    await api.produce(topic, [{ key: `k${i % 5}`, value: `${i}:`.padEnd(bytes + (i % 7), 'x'), partition: 0 }])
  }
}

async function tieredOf(api: HttpApi, topic: string): Promise<number[]> {
  const answer = await api.get(`/admin/tiered/${topic}/0`)
  assert.equal(answer.status, 200, answer.text)
  return (JSON.parse(answer.text) as { segments: number[] }).segments
}

async function runRetention(api: HttpApi): Promise<void> {
  const answer = await api.post('/admin/run-retention', '')
  assert.equal(answer.status, 204, answer.text)
}

/** A broker with a topic whose old segments lie in cold storage, and what was written. */
async function tieredBroker(
  t: TestContext,
  flags: Readonly<Record<string, string | true>>
): Promise<{ api: HttpApi; dataDir: string; stop: () => Promise<void>; records: ReadRecord[] }> {
  const broker = await startBroker(t, { flags: { ...graceless, ...flags } })
  const api = new HttpApi(broker.url)
  await api.createTopic('events', 1, config)
  await fill(api, 'events', 0, 60)
  const records = await api.consumeAll('events', 0)
  assert.equal(records.length, 60)
  await runRetention(api)
  return { api, dataDir: broker.dataDir, stop: () => broker.stop(), records }
}

onBothEngines(
  'with cold storage retention moves segments instead of dropping them, and all stays readable',
  async t => {
    const cold = temporaryDirectory(t)
    const flags = { '--cold-storage-dir': cold }
    const { api, dataDir, stop, records } = await tieredBroker(t, flags)
    const segments = await tieredOf(api, 'events')
    assert.ok(segments.length > 8, `${segments.length} segments`)
    assert.deepEqual(
      segments,
      segments.toSorted((a, b) => a - b)
    )
    assert.equal(segments[0], 0)
    assert.equal(filesBelow(cold).filter(name => name.endsWith('.log')).length, segments.length)
    await waitFor('local files to go', () => localLogs(dataDir).length <= 2)
    const partition = (await api.describe('events')).partitions[0]
    assert.deepEqual([partition?.start_offset, partition?.end_offset], [0, 60])
    assert.ok((partition?.segment_count ?? 0) > segments.length, 'cold segments count')
    assert.ok((partition?.size_bytes ?? 0) > 60 * 20_000, 'and so do their bytes')
    assert.deepEqual(await api.consumeAll('events', 0), records)
    assert.ok(filesBelow(join(dataDir, 'cold-cache')).length > 0, 'read by way of copies')
    await fill(api, 'events', 60, 1)
    await stop()
    const again = new HttpApi((await startBroker(t, { dataDir, flags: { ...graceless, ...flags } })).url)
    assert.deepEqual(filesBelow(join(dataDir, 'cold-cache')), [], 'a start begins without copies')
    assert.deepEqual(await tieredOf(again, 'events'), segments)
    assert.deepEqual((await again.consumeAll('events', 0)).slice(0, 60), records)
    for (const record of [records[59], records[31], records[0], records[1]]) {
      const read = await again.consume('events', 0, `offset=${record?.offset}&max_records=1`)
      assert.deepEqual(read.records, [record])
    }
  }
)

test('a cache smaller than the data serves it all the same, to many readers at once, and stays small', async t => {
  const cold = temporaryDirectory(t)
  const flags = { '--cold-storage-dir': cold, '--cold-cache-bytes': '1MiB' }
  const broker = await startBroker(t, { flags: { ...graceless, ...flags } })
  const api = new HttpApi(broker.url)
  // Large enough for files of their own.
  await api.createTopic('events', 1, { segment_bytes: 700_000, retention_bytes: 0 })
  await fill(api, 'events', 0, 100, 80_000)
  const records = await api.consumeAll('events', 0)
  await runRetention(api)
  assert.ok((await tieredOf(api, 'events')).length >= 10)
  const reads = await Promise.all(Array.from({ length: 8 }, (_, i) => api.consumeAll('events', 0, i * 12)))
  reads.forEach((read, i) => assert.deepEqual(read, records.slice(i * 12)))
  const bytes = filesBelow(join(broker.dataDir, 'cold-cache')).reduce(
    (sum, name) => sum + readFileSync(join(broker.dataDir, 'cold-cache', name)).length,
    0
  )
  // Three are fetched at once at most; what goes beyond the bound for them goes with the next one.
  assert.ok(bytes > 0 && bytes <= 1024 * 1024 + 2 * 800_000, `${bytes} bytes of copies`)
})

test('a search by time finds records in cold storage, and fetches no more than the segment it is in', async t => {
  const { api, dataDir, records } = await tieredBroker(t, { '--cold-storage-dir': temporaryDirectory(t) })
  await waitFor('local files to go', () => localLogs(dataDir).length <= 2)
  const wanted = records[30]
  const first = records.find(record => record.timestamp_ms >= (wanted?.timestamp_ms ?? 0))
  const answer = await api.get(`/topics/events/offsets?partition=0&timestamp_ms=${wanted?.timestamp_ms}`)
  assert.equal((JSON.parse(answer.text) as { offset: number }).offset, first?.offset)
  assert.equal(filesBelow(join(dataDir, 'cold-cache')).filter(name => name.endsWith('.log')).length, 1)
})

test('what is not there has no cold segments, and names that cannot be are refused', async t => {
  const api = new HttpApi((await startBroker(t)).url)
  await api.createTopic('events', 1)
  for (const path of ['events/0', 'events/7', 'nothing/0']) {
    const answer = await api.get(`/admin/tiered/${path}`)
    assert.deepEqual([answer.status, answer.text], [200, '{"segments":[]}'])
  }
  for (const [path, code] of [
    ['events/x', 'FIELD_INVALID'],
    ['events/-1', 'FIELD_INVALID'],
    ['events/99999999999', 'FIELD_INVALID'],
    ['a%2fb/0', 'NAME_INVALID']
  ] as const) {
    const answer = await api.get(`/admin/tiered/${path}`)
    assert.deepEqual([answer.status, (JSON.parse(answer.text) as { code: string }).code], [400, code], path)
  }
})

test('objects of a deleted topic go, those of others stay', async t => {
  const cold = temporaryDirectory(t)
  const { api, records } = await tieredBroker(t, {
    '--cold-storage-dir': cold,
    '--retention-check-interval': '50ms'
  })
  await api.createTopic('gone', 1, config)
  await fill(api, 'gone', 0, 20)
  await runRetention(api)
  const of = (name: string): string[] => filesBelow(cold).filter(path => path.startsWith(`${name}~`))
  assert.ok(of('gone').length > 0)
  assert.equal((await api.call('DELETE', '/topics/gone')).status, 200)
  await waitFor('its objects to go', () => of('gone').length === 0)
  assert.deepEqual(await api.consumeAll('events', 0), records)
})

test('a directory that is away refuses cold reads in words, hinders nothing else, and heals by itself', async t => {
  const cold = temporaryDirectory(t)
  const flags = { '--cold-storage-dir': join(cold, 'store'), '--retention-check-interval': '50ms' }
  const { api, dataDir, records } = await tieredBroker(t, flags)
  await waitFor('local files to go', () => localLogs(dataDir).length <= 2)
  renameSync(join(cold, 'store'), join(cold, 'away'))
  writeFileSync(join(cold, 'store'), 'no directory')
  const refused = await api.get('/topics/events/consume?partition=0&offset=0')
  assert.equal(refused.status, 503, refused.text)
  const { code, error } = JSON.parse(refused.text) as { code: string; error: string }
  assert.equal(code, 'COLD_UNAVAILABLE')
  assert.match(error, /cold storage/)
  assert.ok(!error.includes(cold) && !error.includes('/'), `names no path: ${error}`)
  await fill(api, 'events', 60, 10)
  const hot = await api.consume('events', 0, 'offset=69')
  assert.equal(hot.records.length, 1)
  const before = (await tieredOf(api, 'events')).length
  const failed = await api.post('/admin/run-retention', '')
  assert.equal(failed.status, 503, 'a copy that fails keeps the segment here, and is said')
  assert.equal((await tieredOf(api, 'events')).length, before)
  const troubles = async (): Promise<string> => (await api.get('/healthz')).text
  assert.match(await troubles(), /moving segments of events\/0 to cold storage fails/)
  rmSync(join(cold, 'store'))
  renameSync(join(cold, 'away'), join(cold, 'store'))
  await waitFor('segments to be moved again', async () => (await tieredOf(api, 'events')).length > before)
  await waitFor('health to be well again', async () => !(await troubles()).includes('troubles'))
  const all = await api.consumeAll('events', 0)
  assert.deepEqual(all.slice(0, 60), records)
  assert.equal(all.length, 70)
})

test('an object that is damaged is never served', async t => {
  const cold = temporaryDirectory(t)
  const { api, dataDir, records } = await tieredBroker(t, { '--cold-storage-dir': cold })
  await waitFor('local files to go', () => localLogs(dataDir).length <= 2)
  const log = filesBelow(cold).find(name => name.endsWith('00000000000000000000.log')) ?? ''
  const bytes = readFileSync(join(cold, log))
  const whole = Buffer.from(bytes)
  bytes[5000]! ^= 1
  writeFileSync(join(cold, log), bytes)
  const refused = await api.get('/topics/events/consume?partition=0&offset=0')
  assert.equal(refused.status, 503, refused.text)
  const behind = await api.consume('events', 0, 'offset=30')
  assert.deepEqual(behind.records[0], records[30])
  writeFileSync(join(cold, log), whole)
  assert.deepEqual(await api.consumeAll('events', 0), records)
})

test('a copy that rots or is taken away is fetched anew', async t => {
  const { api, dataDir, records } = await tieredBroker(t, { '--cold-storage-dir': temporaryDirectory(t) })
  await waitFor('local files to go', () => localLogs(dataDir).length <= 2)
  await api.consumeAll('events', 0)
  const cache = join(dataDir, 'cold-cache')
  for (const name of filesBelow(cache)) {
    const bytes = readFileSync(join(cache, name))
    bytes[bytes.length >> 1]! ^= 1
    writeFileSync(join(cache, name), bytes)
  }
  assert.deepEqual(await api.consumeAll('events', 0), records)
})

test('compaction leaves what is in cold storage alone', async t => {
  const cold = temporaryDirectory(t)
  const broker = await startBroker(t, { flags: { ...graceless, '--cold-storage-dir': cold } })
  const api = new HttpApi(broker.url)
  await api.createTopic('both', 1, { ...config, cleanup_policy: 'compact,delete', tombstone_retention_ms: 0 })
  await fill(api, 'both', 0, 30)
  await runRetention(api)
  const segments = await tieredOf(api, 'both')
  assert.ok(segments.length > 3)
  await api.call('PUT', '/topics/both/config', JSON.stringify({ retention_bytes: 10_000_000 }))
  await fill(api, 'both', 30, 30)
  assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
  assert.deepEqual(await tieredOf(api, 'both'), segments)
  const offsets = (await api.consumeAll('both', 0)).map(({ offset }) => offset)
  const coldEnd = offsets.findIndex((offset, i) => offset !== i)
  assert.ok(coldEnd >= 20 && offsets.length < 60, 'what is cold is whole, what is here is compacted')
  assert.equal(offsets.at(-1), 59)
})

test('a broker that has lost its cold storage setting says so, and drops nothing', async t => {
  const cold = temporaryDirectory(t)
  const { dataDir, stop, records } = await tieredBroker(t, { '--cold-storage-dir': cold })
  await stop()
  const without = await startBroker(t, { dataDir, flags: graceless })
  const api = new HttpApi(without.url)
  await runRetention(api)
  assert.equal((await api.describe('events')).partitions[0]?.start_offset, 0)
  const refused = await api.get('/topics/events/consume?partition=0&offset=0')
  assert.equal(refused.status, 503)
  assert.match(refused.text, /no cold storage is configured/)
  await without.stop()
  const again = new HttpApi((await startBroker(t, { dataDir, flags: { '--cold-storage-dir': cold } })).url)
  assert.deepEqual(await again.consumeAll('events', 0), records)
})

test('cold segments go along when the number of shards changes', async t => {
  const cold = temporaryDirectory(t)
  const { api, dataDir, stop, records } = await tieredBroker(t, { '--cold-storage-dir': cold, '--shards': '1' })
  const segments = await tieredOf(api, 'events')
  await stop()
  const flags = { ...graceless, '--cold-storage-dir': cold, '--shards': '3' }
  const again = new HttpApi((await startBroker(t, { dataDir, flags })).url)
  assert.deepEqual(await tieredOf(again, 'events'), segments)
  assert.deepEqual(await again.consumeAll('events', 0), records)
})

test('a bucket does the same, through refusals and cut connections', async t => {
  const server = await startS3rver(t)
  const proxy = await startProxy(t, server)
  process.env['AWS_ACCESS_KEY_ID'] = server.accessKeyId
  process.env['AWS_SECRET_ACCESS_KEY'] = server.secretAccessKey
  const { api, dataDir, records } = await tieredBroker(t, {
    '--cold-storage': 's3://cold/broker-1',
    '--cold-storage-endpoint': proxy.endpoint,
    '--cold-storage-path-style': true
  })
  const segments = await tieredOf(api, 'events')
  assert.ok(segments.length > 8)
  await waitFor('local files to go', () => localLogs(dataDir).length <= 2)
  let count = 0
  proxy.fate = () => (count++ % 3 === 0 ? 503 : 'pass')
  assert.deepEqual(await api.consumeAll('events', 0), records)
  await fill(api, 'events', 60, 10)
  await runRetention(api)
  const all = await api.consumeAll('events', 0)
  assert.ok((await tieredOf(api, 'events')).length > segments.length)
  proxy.fate = () => 403
  rmSync(join(dataDir, 'cold-cache'), { recursive: true })
  await api.createTopic('other', 1, config)
  await fill(api, 'other', 0, 10)
  assert.equal((await api.consumeAll('other', 0)).length, 10, 'what is here is served')
  assert.equal((await api.post('/admin/run-retention', '')).status, 503)
  assert.deepEqual(await tieredOf(api, 'other'), [])
  proxy.fate = () => 'pass'
  await runRetention(api)
  assert.ok((await tieredOf(api, 'other')).length > 0)
  assert.deepEqual(await api.consumeAll('events', 0), all)
})
