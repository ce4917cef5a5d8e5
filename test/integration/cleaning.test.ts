/** Retention and compaction of a running broker, over HTTP: what goes, what stays, and that it stays gone. */
import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync } from 'node:fs'
import { connect } from 'node:net'
import { DatabaseSync } from 'node:sqlite'
import type { TestContext } from 'node:test'
import { startBroker, waitFor, type TestBroker } from '../support/broker.ts'
import { HttpApi, assertRefused, onBothEngines, onEveryVariant, parse } from '../support/http-api.ts'

const flags = { '--segment-delete-grace': '10ms' }

async function fill(api: HttpApi, topic: string, from: number, count: number, bytes = 200): Promise<void> {
  for (let i = from; i < from + count; i++) {
    await api.produce(topic, [{ key: `k${i % 5}`, value: `${i}:`.padEnd(bytes, 'x'), partition: 0 }])
  }
}

async function restarted(t: TestContext, broker: TestBroker): Promise<HttpApi> {
  await broker.stop()
  const { dataDir } = broker
  return new HttpApi((await startBroker(t, { dataDir, flags })).url)
}

/** What the manifests of all shards say: another text after each commit. */
function manifestsOf(dataDir: string): string {
  const paths = readdirSync(`${dataDir}/journal`).map(shard => `${dataDir}/journal/${shard}/manifest`)
  return paths.map(path => (existsSync(path) ? readFileSync(path, 'latin1') : '')).join()
}

function numbersOf(records: readonly { value: string }[]): number[] {
  return records.map(({ value }) => Number(value.split(':')[0]))
}

onEveryVariant(
  'segments beyond retention_bytes go when they are asked to, at once and for good',
  async (t, api, broker) => {
    await api.createTopic('events', 2, { segment_bytes: 1000, retention_bytes: 2500 })
    await fill(api, 'events', 0, 40)
    const before = (await api.describe('events')).partitions[0]
    assert.ok(before !== undefined && before.segment_count > 5)
    assert.equal((await api.post('/admin/run-retention', '')).status, 204)
    const after = (await api.describe('events')).partitions[0]
    assert.ok(after !== undefined)
    assert.ok(after.size_bytes <= 2500 && after.size_bytes > 1000, String(after.size_bytes))
    assert.equal(after.end_offset, 40)
    assert.ok(after.start_offset > 25)
    const read = await api.consume('events', 0, 'offset=0')
    assert.equal(read.records[0]?.offset, after.start_offset)
    await fill(api, 'events', 40, 1)
    const again = await restarted(t, broker)
    assert.equal((await again.describe('events')).partitions[0]?.start_offset, after.start_offset)
    assert.deepEqual(
      numbersOf(await again.consumeAll('events', 0)),
      Array.from({ length: 41 - after.start_offset }, (_, i) => after.start_offset + i)
    )
  },
  { flags }
)

onBothEngines(
  'records older than retention_ms go by themselves, the active segment stays, and a live change counts',
  async (_t, api) => {
    await api.createTopic('old', 1, { segment_bytes: 1000 })
    await fill(api, 'old', 0, 20)
    await api.post('/admin/run-retention', '')
    assert.equal((await api.describe('old')).partitions[0]?.start_offset, 0, 'no limit is set')
    await api.call('PUT', '/topics/old/config', JSON.stringify({ retention_ms: 1 }))
    const start = await waitFor('retention by itself', async () => {
      const offset = (await api.describe('old')).partitions[0]?.start_offset ?? 0
      return offset > 10 && offset
    })
    assert.ok(start < 20)
    assert.equal((await api.describe('old')).partitions[0]?.segment_count, 1)
    const huge = await api.call('PUT', '/topics/old/config', '{"retention_ms":18446744073709551615}')
    assert.equal(huge.status, 200)
    await fill(api, 'old', 20, 10)
    await api.post('/admin/run-retention', '')
    assert.equal((await api.describe('old')).partitions[0]?.start_offset, start, 'practically for ever')
  },
  { flags: { ...flags, '--retention-check-interval': '20ms' } }
)

onBothEngines(
  'a quiet topic ages out: its active segment is sealed by age, then dropped',
  async (_t, api) => {
    await api.createTopic('quiet', 1, { retention_ms: 1 })
    await fill(api, 'quiet', 0, 3)
    const partition = await waitFor('the topic to be empty', async () => {
      const found = (await api.describe('quiet')).partitions[0]
      return found?.start_offset === 3 && found
    })
    assert.deepEqual([partition.end_offset, partition.size_bytes, partition.segment_count], [3, 0, 1])
    await fill(api, 'quiet', 3, 1)
    assert.equal((await api.describe('quiet')).partitions[0]?.end_offset, 4)
  },
  { flags: { ...flags, '--retention-check-interval': '20ms', '--segment-ms': '100ms' } }
)

onEveryVariant(
  'compaction keeps the newest record of each key among sealed segments, with its offset',
  async (t, api, broker) => {
    await api.createTopic('state', 1, { segment_bytes: 1000, cleanup_policy: 'compact', tombstone_retention_ms: 0 })
    await fill(api, 'state', 0, 40)
    await api.produce('state', [{ key: 'k1', value: '', partition: 0 }])
    await fill(api, 'state', 42, 3)
    const before = await api.consumeAll('state', 0)
    assert.equal(before.length, 44)
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    const after = await api.consumeAll('state', 0)
    assert.ok(after.length < 16, `${after.length} records`)
    const kept = new Map(after.map(record => [record.offset, record.value]))
    for (const record of before) if (kept.has(record.offset)) assert.equal(kept.get(record.offset), record.value)
    for (const key of ['k0', 'k2', 'k3', 'k4']) {
      const newest = before.filter(record => record.key === key).at(-1)
      assert.ok(newest !== undefined && kept.has(newest.offset), `the newest of ${key}`)
    }
    const { partitions } = await api.describe('state')
    assert.deepEqual([partitions[0]?.start_offset, partitions[0]?.end_offset], [0, 44])
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    assert.deepEqual(await api.consumeAll('state', 0), after, 'a second pass changes nothing')
    await fill(api, 'state', 44, 1)
    const again = await restarted(t, broker)
    assert.deepEqual((await again.consumeAll('state', 0)).slice(0, -1), after)
  },
  { flags }
)

onBothEngines(
  'a topic with both policies loses old segments and old values',
  async (_t, api) => {
    await api.createTopic('both', 1, { segment_bytes: 1000, cleanup_policy: 'compact,delete', retention_bytes: 3000 })
    await fill(api, 'both', 0, 60)
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    await fill(api, 'both', 60, 30)
    assert.equal((await api.post('/admin/run-retention', '')).status, 204)
    const partition = (await api.describe('both')).partitions[0]
    assert.ok(partition !== undefined && partition.size_bytes <= 3000 && partition.start_offset > 0)
    const numbers = numbersOf(await api.consumeAll('both', 0))
    assert.equal(numbers.at(-1), 89)
  },
  { flags }
)

onBothEngines(
  'the files of a deleted topic go, those of others stay',
  async (_t, api, { dataDir }) => {
    for (const name of ['gone', 'kept']) {
      await api.createTopic(name, 1, { cleanup_policy: 'compact', segment_bytes: 1000 })
      await fill(api, name, 0, 20)
    }
    await api.post('/admin/run-compaction', '')
    const directories = (): string[] => (existsSync(`${dataDir}/topics`) ? readdirSync(`${dataDir}/topics`) : [])
    assert.equal(directories().length, 2, 'compacted segments have files of their own')
    assert.equal((await api.call('DELETE', '/topics/gone')).status, 200)
    await waitFor('its files to go', () => directories().length === 1)
    assert.ok((await api.consumeAll('kept', 0)).length > 4)
    await api.createTopic('gone', 1)
    assert.deepEqual(await api.consumeAll('gone', 0), [])
  },
  { flags }
)

onBothEngines(
  'below the disk reserve produce gets 507 and writes nothing; reads, changes, cleaning and settling go on',
  async (t, api, broker) => {
    await api.createTopic('events', 1, { segment_bytes: 1000, retention_bytes: 2000 })
    await fill(api, 'events', 0, 30)
    await broker.stop()
    const { dataDir } = broker
    const before = manifestsOf(dataDir)
    // More than any disk has free.
    const reserved = { ...flags, '--disk-reserve-bytes': '1TiB' }
    const full = new HttpApi((await startBroker(t, { dataDir, flags: reserved })).url)
    assertRefused(await full.post('/topics/events/produce', { records: [{ value: 'x' }] }), 507, 'DISK_FULL')
    const health = parse<{ troubles: string[] }>(await full.get('/healthz'))
    assert.match(health.troubles[0] ?? '', /less room than its reserve/)
    assert.equal((await full.consumeAll('events', 0)).length, 30)
    assert.equal((await full.post('/admin/run-retention', '')).status, 204)
    const partition = (await full.describe('events')).partitions[0]
    assert.ok(partition !== undefined && partition.start_offset > 0 && partition.end_offset === 30)
    await waitFor('a settle job to commit', () => manifestsOf(dataDir) !== before)
    await full.createTopic('more', 1)
    assert.equal((await full.call('DELETE', '/topics/more')).status, 200)
  },
  { flags }
)

onBothEngines(
  'topics that are made, filled and deleted over and over leave nothing in the store or on the disk',
  async (_t, api, broker) => {
    for (let round = 0; round < 12; round++) {
      await api.createTopic('brief', 3, { segment_bytes: 1000, cleanup_policy: 'compact' })
      await fill(api, 'brief', 0, 5)
      assert.equal((await api.call('DELETE', '/topics/brief')).status, 200)
    }
    await api.createTopic('lasting', 1, { cleanup_policy: 'compact' })
    await fill(api, 'lasting', 0, 5)
    assert.equal((await api.post('/admin/run-compaction', '')).status, 204)
    const { dataDir } = broker
    const rows = (): unknown[] => {
      const database = new DatabaseSync(`${dataDir}/store.db`, { readOnly: true })
      try {
        return database.prepare('SELECT id FROM tombstones').all()
      } finally {
        database.close()
      }
    }
    await waitFor('the deleted topics to be forgotten', () => rows().length === 0)
    const topics = existsSync(`${dataDir}/topics`) ? readdirSync(`${dataDir}/topics`) : []
    assert.ok(
      topics.every(name => name.startsWith('lasting')),
      topics.join()
    )
    assert.equal((await api.consumeAll('lasting', 0)).length, 5)
  },
  { flags }
)

onBothEngines(
  'an answer without a body says no length, as a 204 must not',
  async (_t, api) => {
    const { hostname, port } = new URL(api.url)
    const socket = connect(Number(port), hostname)
    const received: Buffer[] = []
    socket.on('data', (chunk: Buffer) => received.push(chunk))
    socket.write(`POST /admin/run-retention HTTP/1.1\r\nHost: ${hostname}\r\nContent-Length: 0\r\n\r\n`)
    const text = (): string => Buffer.concat(received).toString('latin1')
    await waitFor('the answer', () => text().includes('\r\n\r\n'))
    socket.destroy()
    assert.match(text(), /^HTTP\/1.1 204 /)
    assert.doesNotMatch(text(), /content-length/i)
  },
  { flags }
)
