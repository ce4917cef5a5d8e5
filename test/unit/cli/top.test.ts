/** What `millrace top` makes of pages of metrics. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonOf, lineOf, screenOf } from '../../../src/cli/top/format-top.ts'
import { quantileOf, readPage } from '../../../src/cli/top/metrics-page.ts'
import { readingOf, seriesRead, type Scrape } from '../../../src/cli/top/reading.ts'
import { readText } from '../../support/repository.ts'
import { paintFor } from '../../../src/cli/colours.ts'
import { Screen } from '../../../src/cli/top/screen.ts'
import { capture, freePort, run, startFakeBroker, type Asked, type Told } from './terminal.ts'

const scrape = (atMs: number, page: string): Scrape => ({ atMs, page: readPage(page, seriesRead), troubles: [] })

/** A page of a broker with two shards. */
function pageOf(produced: number, syncs: readonly number[]): string {
  const [fast = 0, slow = 0] = syncs
  return `# HELP es_topic_records_produced_total x
es_topic_records_produced_total{topic="a"} ${produced}
es_topic_records_produced_total{topic="b"} 5
es_topic_bytes_produced_total{topic="a"} ${produced * 100}
es_topic_records_consumed_total{topic="a"} 0
es_group_lag{group="g",topic="a",partition="0"} 3
es_group_lag{group="g",topic="a",partition="1"} 4
es_group_lag{group="h",topic="a",partition="1"} 40
millrace_journal_sync_seconds_bucket{shard="0",le="0.001"} ${fast}
millrace_journal_sync_seconds_bucket{shard="0",le="0.002"} ${fast + slow}
millrace_journal_sync_seconds_bucket{shard="0",le="+Inf"} ${fast + slow}
millrace_journal_sync_seconds_count{shard="0"} ${fast + slow}
millrace_group_records_sum{shard="0"} ${produced}
millrace_group_records_count{shard="0"} ${fast + slow}
millrace_shard_state{shard="0",state="ready"} 1
millrace_shard_state{shard="0",state="down"} 0
millrace_shard_state{shard="1",state="ready"} 0
millrace_shard_state{shard="1",state="down"} 1
millrace_shard_requests_in_progress{shard="0"} 7
millrace_ring_used_bytes{shard="0",ring="requests"} 1024
millrace_ring_used_bytes{shard="0",ring="replies"} 512
millrace_process_resident_memory_bytes 1.5e8
millrace_memory_budget_used_bytes{budget="requests"} 10
millrace_memory_budget_bytes{budget="requests"} 100
millrace_connections{protocol="http"} 2
millrace_connections{protocol="es01"} 1
millrace_http_streams 0
`
}

test('rates are what counters grew by in the time between two pages', () => {
  const reading = readingOf(scrape(1_000, pageOf(100, [10, 0])), scrape(3_000, pageOf(500, [60, 50])))
  assert.deepEqual([reading.recordsIn, reading.bytesIn, reading.recordsOut], [200, 20_000, 0])
  assert.deepEqual(reading.topics, [{ topic: 'a', recordsIn: 200, recordsOut: 0 }])
  assert.deepEqual([reading.syncs, reading.groupRecords], [50, 4])
  assert.equal(reading.syncP99Ms?.toFixed(2), '1.98')
  assert.equal(reading.lagRecords, 47)
  assert.deepEqual(reading.groups, [
    { group: 'h', lagRecords: 40 },
    { group: 'g', lagRecords: 7 }
  ])
  assert.deepEqual(reading.shards, [
    { shard: '0', state: 'ready', queue: 7, ringBytes: 1_536, turnP99Ms: null },
    { shard: '1', state: 'down', queue: 0, ringBytes: 0, turnP99Ms: null }
  ])
  assert.deepEqual(reading.connections, [
    { protocol: 'http', count: 2 },
    { protocol: 'es01', count: 1 }
  ])
})

test('counters that begin again, or are new, have grown by what they are', () => {
  const reading = readingOf(scrape(0, pageOf(1_000, [50, 0])), scrape(1_000, pageOf(20, [4, 0])))
  assert.deepEqual([reading.recordsIn, reading.syncs, reading.groupRecords], [20, 4, 5])
  const fresh = readingOf(scrape(0, ''), scrape(1_000, pageOf(20, [4, 0])))
  assert.equal(fresh.recordsIn, 25)
})

test('what a key may not see, and rates of a first page, are not known instead of 0', () => {
  const first = readingOf(null, scrape(0, pageOf(1, [1, 1])))
  assert.deepEqual([first.recordsIn, first.syncs, first.syncP99Ms, first.lagRecords], [null, null, null, 47])
  const page = '# TYPE millrace_connections gauge\nes_topic_records_produced_total{topic="a"} 4\n'
  const { syncs, connections, shards, residentBytes, recordsIn } = readingOf(scrape(0, page), scrape(1_000, page))
  assert.deepEqual([syncs, connections, shards, residentBytes, recordsIn], [null, [], [], null, 0])
  const line = lineOf(readingOf(null, scrape(0, '')))
  assert.match(line, /^records_in=- bytes_in=- .*lag=- syncs=- sync_p99_ms=- .*shards_ready=- queue=- /)
})

test('who sees all sees 0 where nothing was written and no group lags, and that the first interval is still to come', () => {
  const page = 'millrace_process_resident_memory_bytes 4096\n'
  const reading = readingOf(scrape(0, page), scrape(1_000, page))
  assert.deepEqual([reading.recordsIn, reading.bytesOut, reading.lagRecords], [0, 0, 0])
  assert.match(lineOf(reading), /^records_in=0 bytes_in=0 records_out=0 bytes_out=0 lag=0 /)
  const first = screenOf(readingOf(null, scrape(0, page)), true).map(({ text }) => text)
  assert.deepEqual(
    first.filter(text => text.includes('reading…')).map(text => text.split(' ', 1)[0]),
    ['in', 'out', 'sync']
  )
  assert.ok(!screenOf(reading, false).some(({ text }) => text.includes('reading…')))
})

test('a quantile lies where Prometheus has it, and behind the last bound at that', () => {
  const buckets = new Map([
    ['0.1', 0],
    ['0.2', 10],
    ['0.4', 20],
    ['+Inf', 20]
  ])
  assert.equal(quantileOf(buckets, 0.5), 0.2)
  assert.equal(quantileOf(buckets, 0.75)?.toFixed(3), '0.300')
  assert.equal(quantileOf(new Map([...buckets, ['+Inf', 1_000]]), 0.99), 0.4)
  assert.equal(quantileOf(new Map([['+Inf', 0]]), 0.99), null)
  assert.equal(quantileOf(new Map(), 0.99), null)
})

test('labels are read with their escapes, and numbers in every form', () => {
  const page = readPage('a{x="q\\"}\\\\\\n,y=",z="2"} 1.5e3\na{x="b"} +Inf\nab 1\nc 4\n', new Set(['a', 'c']))
  assert.deepEqual(
    page.samples('a').map(({ labels, value }) => [labels, value]),
    [
      [{ x: 'q"}\\\n,y=', z: '2' }, 1_500],
      [{ x: 'b' }, Number.POSITIVE_INFINITY]
    ]
  )
  assert.deepEqual([page.sum('ab'), page.sum('c')], [null, 4])
})

test('every series that top reads is one that the broker has', () => {
  const documented = new Set(
    [...readText('docs/metrics.md').matchAll(/^\| `([a-z0-9_]+)` \|/gm)].map(([, name]) => name)
  )
  const unknown = [...seriesRead].filter(name => !documented.has(name.replace(/_(bucket|sum|count)$/, '')))
  assert.deepEqual(
    unknown.filter(name => !documented.has(name)),
    []
  )
})

test('a screen says what is wrong in red', () => {
  const reading = { ...readingOf(null, scrape(0, pageOf(1, [1, 1]))), troubles: ['settling fails'] }
  const red = screenOf(reading, false).filter(({ colour }) => colour === 'red')
  assert.deepEqual(
    red.map(({ text }) => text.split(/ +/).slice(0, 3)),
    [
      ['trouble', 'settling', 'fails'],
      ['', '1', 'down']
    ]
  )
  assert.equal((JSON.parse(jsonOf(reading, 5, 2)) as { troubles: unknown }).troubles?.toString(), 'settling fails')
})

/** Answers health and metrics; from the nth page on by `page`. */
function pages(page: (n: number) => Told | null): (asked: Asked) => Told | null {
  let n = 0
  return ({ url }) => (url === '/healthz' ? { status: 200, body: '{"status":"ok"}' } : page(n++))
}

test('an outage is told, and rates go on after it', async t => {
  const answer = (n: number): Told | null => (n === 1 ? null : { status: 200, body: pageOf(100 * n, [n, 0]) })
  const broker = await startFakeBroker(t, pages(answer))
  const words = ['top', '--count', '2', '--interval', '10ms', '--json', '--broker', broker.url]
  const { code, stdout, stderr } = await run(words)
  assert.equal(code, 0)
  assert.match(stderr, /^millrace: no reading: .+\n$/)
  assert.equal(stdout.trim().split('\n').length, 2)
})

test('a refusal ends it, a broker that is not there too, and a bad interval asks none', async t => {
  const body = '{"error":"the key is revoked","code":"KEY_REVOKED"}'
  const broker = await startFakeBroker(
    t,
    pages(() => ({ status: 401, body }))
  )
  const refused = await run(['top', '--broker', broker.url])
  assert.equal(refused.code, 1)
  assert.match(refused.stderr, /GET .*\/metrics answered 401: the key is revoked/)
  assert.equal((await run(['top', '--broker', `http://127.0.0.1:${await freePort()}`])).code, 3)
  for (const interval of ['2', '5ms', '2h', 'soon']) {
    assert.equal((await run(['top', '--interval', interval, '--broker', broker.url])).code, 2, interval)
  }
})

test('a terminal that says 0 rows and 0 columns gets a screen of the usual size', async () => {
  const stdout = Object.assign(capture(true), { rows: 0, columns: 0 })
  await new Screen(stdout, paintFor({ stdout, env: { NO_COLOR: '1' } })).draw(
    Array.from({ length: 30 }, () => ({ text: '.'.repeat(100) }))
  )
  assert.deepEqual(
    stdout.text.match(/\.+/g),
    Array.from({ length: 23 }, () => '.'.repeat(80))
  )
})
