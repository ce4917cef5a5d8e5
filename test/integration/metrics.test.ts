/** `GET /metrics`: the page is Prometheus' text format, and its numbers are those of describe and of what was done (spec 8). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { processSeries, topicSeries } from '../../src/observe/series.ts'
import { makeTestKey, revokeKey, startGuarded } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'
import { assertRefused, onBothEngines, HttpApi } from '../support/http-api.ts'
import { longestTurnMs } from '../support/main-thread.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'

async function scrape(api: HttpApi) {
  const answer = await api.get('/metrics')
  assert.equal(answer.status, 200, answer.text.slice(0, 500))
  assert.equal(answer.headers.get('content-type'), 'text/plain; version=0.0.4')
  return parsePage(answer.text)
}

onBothEngines('the page of metrics', async (t, api) => {
  await t.test('has HELP and TYPE of every series before anything happened, and no other', async () => {
    const page = await scrape(api)
    const expected = Object.entries({ ...topicSeries, ...processSeries }).map(([name, { type, help }]) => [
      name,
      type,
      help
    ])
    assert.deepEqual(
      [...page].map(([name, { type, help }]) => [name, type, help]),
      expected
    )
    for (const name of Object.keys(topicSeries)) assert.deepEqual(page.get(name)?.samples, [], name)
  })

  await t.test('has labels in the order of the table, and none that is not there', async () => {
    await api.createTopic('labelled', 2, { retention_ms: 1000, cleanup_policy: 'compact,delete' })
    await api.produce('labelled', [{ value: 'v' }])
    for (const [name, { samples }] of await scrape(api)) {
      const spec = Object.entries({ ...topicSeries, ...processSeries }).find(([known]) => known === name)?.[1]
      for (const { labels } of samples)
        assert.deepEqual(
          Object.keys(labels).filter(label => label !== 'le'),
          spec?.labels,
          name
        )
    }
  })

  await t.test('tells of each partition what describe tells', async () => {
    await api.createTopic('counted', 5, { segment_bytes: 2000 })
    for (let i = 0; i < 20; i++)
      await api.produce('counted', [
        { partition: i % 3, value: 'x'.repeat(100 * i) },
        { partition: 1, value: 'y' }
      ])
    const { partitions } = await api.describe('counted')
    const page = await scrape(api)
    const told = partitions.map(({ id }) => {
      const of = (name: string) => valueOf(page, `es_partition_${name}`, { topic: 'counted', partition: String(id) })
      return {
        id,
        start_offset: of('start_offset'),
        end_offset: of('end_offset'),
        segment_count: of('segment_count'),
        size_bytes: of('size_bytes')
      }
    })
    assert.deepEqual(told, partitions)
    assert.ok((partitions[1]?.segment_count ?? 0) > 2, 'the test has segments')
  })

  await t.test('tells what was produced and consumed, by topic', async () => {
    await api.createTopic('traffic')
    await api.produce('traffic', [{ key: 'k', value: 'four' }, { value: '' }])
    await api.consume('traffic', 0, 'offset=0&max_records=1')
    const page = await scrape(api)
    const told = ['records_produced', 'bytes_produced', 'records_consumed', 'bytes_consumed'].map(what =>
      valueOf(page, `es_topic_${what}_total`, { topic: 'traffic' })
    )
    assert.deepEqual(told, [2, 5, 1, 5])
  })

  await t.test('counts what retention dropped, by partition', async () => {
    const labels = { topic: 'dropped', partition: '1' }
    await api.createTopic('dropped', 2, { segment_bytes: 1000, retention_bytes: 1000 })
    assert.equal(valueOf(await scrape(api), 'es_retention_segments_deleted_total', labels), 0)
    for (let i = 0; i < 10; i++) await api.produce('dropped', [{ partition: 1, value: 'x'.repeat(500) }])
    const before = (await api.describe('dropped')).partitions[1]
    assert.equal((await api.call('POST', '/admin/run-retention')).status, 204)
    const after = (await api.describe('dropped')).partitions[1]
    assert.ok(before !== undefined && after !== undefined && after.start_offset > 0)
    const page = await scrape(api)
    const segments = valueOf(page, 'es_retention_segments_deleted_total', labels)
    assert.equal(segments, before.segment_count - after.segment_count)
    const bytes = valueOf(page, 'es_retention_bytes_reclaimed_total', labels)
    assert.equal(bytes, before.size_bytes - after.size_bytes)
    assert.equal(valueOf(page, 'es_retention_segments_deleted_total', { ...labels, partition: '0' }), 0)
    assert.ok((valueOf(page, 'millrace_cleaner_passes_total', { cleaner: 'retention' }) ?? 0) >= 1)
    const age = valueOf(page, 'millrace_cleaner_last_success_age_seconds', { cleaner: 'retention' })
    assert.ok(age !== undefined && age < 60, String(age))
  })

  await t.test('counts what compactions dropped, by partition', async () => {
    const labels = { topic: 'compacted', partition: '0' }
    await api.createTopic('compacted', 1, { segment_bytes: 1000, cleanup_policy: 'compact' })
    for (let i = 0; i < 10; i++) await api.produce('compacted', [{ key: 'k', value: 'x'.repeat(500) }])
    assert.equal((await api.call('POST', '/admin/run-compaction')).status, 204)
    const left = (await api.consumeAll('compacted', 0)).length
    assert.ok(left < 10)
    const page = await scrape(api)
    assert.equal(valueOf(page, 'es_compaction_records_dropped_total', labels), 10 - left)
    assert.equal(valueOf(page, 'es_compaction_runs_total', labels), 1)
    assert.equal(valueOf(page, 'millrace_compaction_records_dropped_total'), 10 - left)
    assert.equal((await api.call('POST', '/admin/run-compaction')).status, 204)
    assert.equal(valueOf(await scrape(api), 'es_compaction_runs_total', labels), 1, 'a pass that drops nothing is none')
  })

  await t.test('tells what a group committed, and how far it is behind', async () => {
    await api.createTopic('read', 2)
    await api.produce(
      'read',
      [0, 0, 0, 1].map(partition => ({ partition, value: 'v' }))
    )
    const commit = { topic: 'read', partition: 0, offset: 1 }
    assert.equal((await api.post('/groups/readers/commit', commit)).status, 204)
    const page = await scrape(api)
    const labels = { group: 'readers', topic: 'read', partition: '0' }
    assert.equal(valueOf(page, 'es_group_committed_offset', labels), 1)
    assert.equal(valueOf(page, 'es_group_lag', labels), 2)
    assert.equal(page.get('es_group_lag')?.samples.length, 1)
    assert.equal(valueOf(page, 'millrace_consumer_groups'), 1)
    assert.equal(valueOf(page, 'millrace_consumer_group_offsets'), 1)
    assert.equal((await api.call('DELETE', '/topics/read')).status, 200)
    assert.deepEqual((await scrape(api)).get('es_group_lag')?.samples, [])
  })

  await t.test('forgets a topic that is deleted', async () => {
    await api.createTopic('deleted', 3)
    assert.equal(valueOf(await scrape(api), 'es_partition_end_offset', { topic: 'deleted', partition: '2' }), 0)
    await api.call('DELETE', '/topics/deleted')
    const page = await scrape(api)
    assert.equal(valueOf(page, 'es_partition_end_offset', { topic: 'deleted', partition: '2' }), undefined)
  })

  await t.test('counts requests by route, answers by status, and refusals by code', async () => {
    const before = await scrape(api)
    assert.equal((await api.get('/topics/missing')).status, 404)
    assert.equal((await api.get('/nowhere')).status, 404)
    const page = await scrape(api)
    const grown = (name: string, labels: Record<string, string>) =>
      (valueOf(page, name, labels) ?? 0) - (valueOf(before, name, labels) ?? 0)
    const count = 'millrace_request_duration_seconds_count'
    assert.equal(grown(count, { protocol: 'http', route: 'GET /topics/:name' }), 1)
    assert.equal(grown(count, { protocol: 'http', route: 'none' }), 1)
    assert.equal(grown('millrace_http_responses_total', { status: '404' }), 2)
    assert.equal(grown('millrace_http_refusals_total', { code: 'TOPIC_NOT_FOUND' }), 1)
    assert.equal(grown('millrace_http_refusals_total', { code: 'ROUTE_NOT_FOUND' }), 1)
    assert.ok((valueOf(page, 'millrace_connections', { protocol: 'http' }) ?? 0) >= 1)
  })

  await t.test('shows that each produce was synced, in groups', async () => {
    const sum = (page: Awaited<ReturnType<typeof scrape>>, name: string): number => {
      const base = name.replace(/_(sum|count)$/, '')
      const samples = page.get(base)?.samples.filter(sample => sample.name === name) ?? []
      return samples.reduce((total, { value }) => total + value, 0)
    }
    await api.createTopic('synced')
    const before = await scrape(api)
    await api.produce('synced', [{ value: 'a' }, { value: 'b' }])
    const page = await scrape(api)
    const grown = (name: string): number => sum(page, name) - sum(before, name)
    assert.equal(grown('millrace_group_records_count'), 1)
    assert.equal(grown('millrace_group_records_sum'), 2)
    assert.ok(grown('millrace_group_bytes_sum') > 0)
    assert.ok(grown('millrace_journal_sync_seconds_count') >= 1)
    assert.ok(grown('millrace_journal_sync_seconds_sum') > 0)
    assert.ok(grown('millrace_shard_turn_seconds_count') >= 1)
    assert.equal(grown('millrace_journal_records_total'), 2)
  })

  await t.test('has no body for HEAD, but its length', async () => {
    const { status, text, headers } = await api.call('HEAD', '/metrics')
    assert.deepEqual([status, text], [200, ''])
    assert.ok(Number(headers.get('content-length')) > 1000)
  })
})

test('the page of metrics tells of the process what is so', async t => {
  const broker = await startBroker(t, { variant: { engine: 'node', shards: 3 } })
  const api = new HttpApi(broker.url)
  const page = await scrape(api)
  assert.equal(valueOf(page, 'millrace_http_engine', { engine: 'node' }), 1)
  assert.equal(valueOf(page, 'millrace_http_engine_fallback'), 0, 'it was asked for')
  assert.equal(valueOf(page, 'millrace_durability_synced'), 1)
  assert.equal(valueOf(page, 'millrace_shards'), 3)
  for (const shard of ['0', '1', '2']) {
    assert.equal(valueOf(page, 'millrace_shard_state', { shard, state: 'ready' }), 1)
    assert.equal(valueOf(page, 'millrace_shard_restarts_total', { shard }), 0)
    assert.equal(valueOf(page, 'millrace_ring_used_bytes', { shard, ring: 'requests' }), 0)
    assert.equal(valueOf(page, 'millrace_journal_budget_left_seconds', { shard }), Infinity)
  }
  const resident = valueOf(page, 'millrace_process_resident_memory_bytes') ?? 0
  assert.ok(Math.abs(resident - process.memoryUsage.rss()) < resident / 2)
  const started = valueOf(page, 'millrace_process_start_time_seconds') ?? 0
  assert.ok(Math.abs(started - (Date.now() / 1000 - process.uptime())) < 5)
  assert.equal(page.get('millrace_build_info')?.samples[0]?.labels['node'], process.version)
})

test('with authentication the page shows what the key may see', async t => {
  const { broker, admin } = await startGuarded(t)
  for (const topic of ['orders', 'orders.eu', 'users']) {
    await admin.api.createTopic(topic)
    await admin.api.produce(topic, [{ value: 'v' }])
  }
  const topicsOf = (page: Awaited<ReturnType<typeof scrape>>): (string | undefined)[] =>
    page.get('es_partition_end_offset')?.samples.map(({ labels }) => labels['topic']) ?? []
  const reader = await makeTestKey(admin.api, 'read:orders')

  await t.test('no key, none', async () => {
    assertRefused(await new HttpApi(broker.url).get('/metrics'), 401, 'UNAUTHENTICATED')
  })
  await t.test('a reader, the topics that it may read, and nothing of the process', async () => {
    const page = await scrape(reader.api)
    assert.deepEqual(topicsOf(page), ['orders', 'orders.eu'])
    assert.deepEqual(
      page.get('es_topic_records_produced_total')?.samples.map(({ labels }) => labels['topic']),
      ['orders', 'orders.eu']
    )
    for (const name of Object.keys(processSeries)) assert.deepEqual(page.get(name)?.samples, [], name)
  })
  await t.test('an admin of a prefix, no more than a writer', async () => {
    const page = await scrape((await makeTestKey(admin.api, 'admin:users')).api)
    assert.deepEqual(topicsOf(page), ['users'])
    assert.deepEqual(page.get('millrace_topics')?.samples, [])
  })
  await t.test('the owner of a group, what that committed on topics that it may read; an admin, all', async () => {
    const other = await makeTestKey(admin.api, 'read:orders')
    const commit = (topic: string) => ({ topic, partition: 0, offset: 1 })
    assert.equal((await reader.api.post('/groups/mine/commit', commit('orders'))).status, 204)
    assert.equal((await admin.api.post('/groups/mine/commit', commit('users'))).status, 204)
    assert.equal((await other.api.post('/groups/theirs/commit', commit('orders'))).status, 204)
    const committedOf = async (api: HttpApi, name: string): Promise<string[]> =>
      ((await scrape(api)).get(name)?.samples ?? []).map(({ labels }) => `${labels['group']} ${labels['topic']}`).sort()
    for (const name of ['es_group_committed_offset', 'es_group_lag']) {
      assert.deepEqual(await committedOf(reader.api, name), ['mine orders'])
      assert.deepEqual(await committedOf(other.api, name), ['theirs orders'])
      assert.deepEqual(await committedOf(admin.api, name), ['mine orders', 'mine users', 'theirs orders'])
    }
  })
  await t.test('an admin, everything', async () => {
    const page = await scrape(admin.api)
    assert.deepEqual(topicsOf(page), ['orders', 'orders.eu', 'users'])
    assert.equal(valueOf(page, 'millrace_topics'), 3)
  })
  await t.test('no secret and no key id, anybody', async () => {
    const { text } = await admin.api.get('/metrics')
    assert.ok(!text.includes(reader.secret) && !text.includes(reader.id) && !text.includes(admin.secret))
  })
  await t.test('a revoked key, nothing any more', async () => {
    await revokeKey(admin.api, reader.id)
    assertRefused(await reader.api.get('/metrics'), 401, 'KEY_REVOKED')
  })
})

test('a scrape of 10,000 partitions never holds the main thread for 20 ms', async t => {
  const broker = await startBroker(t)
  const api = new HttpApi(broker.url)
  await api.createTopic('wide', 10_000, { retention_ms: 1_000_000_000 })
  for (let from = 0; from < 10_000; from += 1000)
    await api.produce(
      'wide',
      Array.from({ length: 1000 }, (_, i) => ({ partition: from + i, value: 'v' }))
    )
  const { turnMs, texts } = await longestTurnMs(t, `${broker.url}/metrics`, 4)
  for (const text of texts) {
    const ends = parsePage(text).get('es_partition_end_offset')?.samples ?? []
    assert.deepEqual([ends.length, ends.every(({ value }) => value === 1)], [10_000, true])
  }
  assert.ok(turnMs < 20, `a turn of the main thread took ${turnMs} ms of processor time`)
})
