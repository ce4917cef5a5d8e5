/** Server-sent events of topics, on real brokers with both HTTP engines. */
import assert from 'node:assert/strict'
import { describe, it, type TestContext } from 'node:test'
import { HttpClient } from '../../src/client/http/http-client.ts'
import { makeTestKey, revokeKey, startGuarded } from '../support/access.ts'
import { startBroker, variants, waitFor, type TestBroker } from '../support/broker.ts'
import { makeCertificate, writeCertificate } from '../support/certificate.ts'
import { openStream, type EventStream, type StreamedRecord } from '../support/event-stream.ts'
import { HttpApi, onBothEngines, parse } from '../support/http-api.ts'
import { overTls } from '../support/https.ts'
import { parsePage, valueOf } from '../support/prometheus.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

const placeOf = ({ partition, offset }: StreamedRecord): string => `${partition}/${offset}`

/** Records 0 … count − 1 of a partition. */
const placesOf = (partition: number, count: number): string[] =>
  Array.from({ length: count }, (_, offset) => `${partition}/${offset}`)

async function produceTo(api: HttpApi, partition: number, ...values: string[]): Promise<void> {
  await api.produce(
    't',
    values.map(value => ({ value, partition }))
  )
}

/** Its gauges are at nothing. */
async function untilNothingLeft(api: HttpApi): Promise<void> {
  await waitFor('all streams and watches to be gone', async () => {
    const page = parsePage((await api.get('/metrics')).text)
    return valueOf(page, 'millrace_http_streams') === 0 && valueOf(page, 'millrace_watches') === 0
  })
}

for (const variant of variants) {
  describe(`streams of a topic on ${variant.engine} with ${variant.shards} shard(s)`, () => {
    it('send what is produced from then on, as records of a consume', async t => {
      const { url } = await startBroker(t, { variant })
      const api = new HttpApi(url)
      await api.createTopic('t', 2)
      await produceTo(api, 1, 'before')
      const stream = await openStream(t, `${url}/topics/t/stream?partition=1`)
      assert.equal(stream.status, 200)
      await api.post('/topics/t/produce', { records: [{ key: 'k', value: 'v\n"', partition: 1 }] })
      const [record] = await stream.untilRecords(1)
      const consumed = await (await fetch(`${url}/topics/t/consume?partition=1&offset=1`)).text()
      assert.ok(consumed.includes(`"records":[${stream.events[0]?.data}]`), consumed)
      assert.deepEqual([record?.offset, record?.value, stream.lastId], [1, 'v\n"', '2'])
      assert.match(stream.text, /^retry: 1000\nid: 1\n\nid: 2\ndata: \{"partition":1,"offset":1,/)
      stream.close()
      await untilNothingLeft(api)
    })

    it('of the end that break before their first event go on from where they began', async t => {
      const { url } = await startBroker(t, { variant })
      const api = new HttpApi(url)
      await api.createTopic('t', 2)
      await produceTo(api, 0, 'before')
      const first = await openStream(t, `${url}/topics/t/stream`)
      await waitFor('the id of the beginning', () => first.lastId !== '')
      assert.deepEqual([first.lastId, first.events.length], ['1,0', 0])
      first.close()
      await produceTo(api, 0, 'meanwhile')
      const next = await openStream(t, `${url}/topics/t/stream`, { headers: { 'last-event-id': first.lastId } })
      const [record] = await next.untilRecords(1)
      assert.deepEqual([record?.offset, record?.value], [1, 'meanwhile'])
      next.close()
      await untilNothingLeft(api)
    })

    it('of all partitions go on behind any event whose id is sent back, without loss or repetition', async t => {
      const { url } = await startBroker(t, { variant })
      const api = new HttpApi(url)
      await api.createTopic('t', 3)
      const seen: string[] = []
      let lastId = ''
      let produced = 0
      const produceSome = async (): Promise<void> => {
        for (const partition of [0, 1, 2]) await produceTo(api, partition, `${produced}`, `${produced}`)
        produced += 2
      }
      for (let round = 0; round < 8; round++) {
        const headers = lastId === '' ? {} : { 'last-event-id': lastId }
        const stream = await openStream(t, `${url}/topics/t/stream?offset=earliest`, { headers })
        await produceSome()
        // Left somewhere in the middle of what there is.
        const records = await stream.untilRecords(round % 2 === 0 ? 4 : 5)
        const taken = records.slice(0, round % 2 === 0 ? 4 : 5)
        seen.push(...taken.map(placeOf))
        lastId = stream.ofType('message')[taken.length - 1]?.lastId ?? ''
        assert.equal(lastId.split(',').length, 3)
        stream.close()
      }
      const headers = { 'last-event-id': lastId }
      const rest = await openStream(t, `${url}/topics/t/stream`, { headers })
      seen.push(...(await rest.untilRecords(3 * produced - seen.length)).map(placeOf))
      await produceTo(api, 0, 'last')
      await rest.untilRecords(3 * produced - seen.length + rest.records.length + 1)
      assert.deepEqual(seen.toSorted(), [0, 1, 2].flatMap(partition => placesOf(partition, produced)).toSorted())
      assert.equal(rest.records.at(-1)?.value, 'last')
    })
  })
}

onBothEngines('a stream begins where it is asked to', async (t: TestContext, api) => {
  await api.createTopic('t', 2)
  await produceTo(api, 0, 'a', 'b', 'c')
  await produceTo(api, 1, 'x')
  const { records } = await api.consume('t', 0, 'offset=0')
  const open = (query: string, headers = {}): Promise<EventStream> =>
    openStream(t, `${api.url}/topics/t/stream?${query}`, { headers })
  const cases = [
    [await open('partition=0&offset=1'), ['0/1', '0/2', '0/3']],
    [await open('partition=0&offset=earliest'), ['0/0', '0/1', '0/2', '0/3']],
    [await open('partition=0&offset=latest'), ['0/3']],
    [await open('partition=0'), ['0/3']],
    [await open(`partition=0&timestamp_ms=${records[0]?.timestamp_ms}`), ['0/0', '0/1', '0/2', '0/3']],
    [await open('partition=0&timestamp_ms=99999999999999'), ['0/3']],
    [await open('offset=latest', { 'last-event-id': '2' }), ['0/2', '0/3', '1/0']],
    [await open('partition=0&offset=earliest', { 'last-event-id': '3' }), ['0/3']],
    [await open('partition=0&offset=earliest&last_event_id=3'), ['0/3']],
    [await open('last_event_id=1%2C1'), ['0/1', '0/2', '0/3']],
    // The header counts where both are.
    [await open('partition=0&last_event_id=0', { 'last-event-id': '3' }), ['0/3']],
    [await open('offset=earliest'), ['0/0', '0/1', '0/2', '0/3', '1/0']],
    // An offset that is not there yet is waited for.
    [await open('partition=0&offset=4'), []]
  ] as const
  await produceTo(api, 0, 'd')
  for (const [stream, expected] of cases) {
    assert.deepEqual((await stream.untilRecords(expected.length)).map(placeOf).toSorted(), expected)
  }
  await produceTo(api, 0, 'e')
  const last = cases.at(-1)?.[0]
  assert.deepEqual((await last?.untilRecords(1))?.map(placeOf), ['0/4'])
  const bytes = await open('partition=1&offset=earliest&encoding=base64&max_bytes=1')
  assert.equal((await bytes.untilRecords(1))[0]?.value, 'eA==')
})

onBothEngines('a stream that asks for what is gone is told what was skipped, once', async (t, api) => {
  await api.createTopic('t', 1)
  await produceTo(api, 0, 'a', 'b', 'c', 'd')
  assert.equal((await api.post('/topics/t/delete-records', { partition: 0, offset: 2 })).status, 200)
  const stream = await openStream(t, `${api.url}/topics/t/stream?partition=0&offset=1`)
  assert.deepEqual((await stream.untilRecords(2)).map(placeOf), ['0/2', '0/3'])
  const [skipped, first] = stream.events
  assert.deepEqual(
    [skipped?.type, skipped?.lastId, JSON.parse(skipped?.data ?? '')],
    ['skipped', '2', { partition: 0, requested: 1, earliest: 2, latest: 4 }]
  )
  assert.equal(first?.lastId, '3')
  const again = await openStream(t, `${api.url}/topics/t/stream?partition=0`, { headers: { 'last-event-id': '2' } })
  await again.untilRecords(2)
  assert.equal(again.ofType('skipped').length, 0)
})

for (const variant of variants.filter(({ shards }) => shards === 1)) {
  it(`a stream that waits out a quota ends when its topic is made anew meanwhile, on ${variant.engine}`, async t => {
    const { admin } = await startGuarded(t, { variant })
    const key = { name: 'k', acls: [{ action: 'read', topic_prefix: 't' }], consume_bytes_per_sec: 1000 }
    const { secret } = parse<{ secret: string }>(await admin.api.post('/admin/keys', key))
    await admin.api.createTopic('t')
    const headers = { authorization: `Bearer ${secret}` }
    const stream = await openStream(t, `${admin.api.url}/topics/t/stream?offset=earliest`, { headers })
    await admin.api.produce('t', [{ value: 'v'.repeat(2500) }])
    await stream.untilRecords(1)
    // It has something to read, and may not.
    await admin.api.produce('t', [{ value: 'v' }])
    await admin.api.call('DELETE', '/topics/t')
    await admin.api.createTopic('t')
    await admin.api.produce('t', [{ value: 'other' }, { value: 'other' }, { value: 'other' }])
    assert.equal((JSON.parse((await stream.untilType('end')).data) as { code: string }).code, 'TOPIC_NOT_FOUND')
    assert.ok(!stream.text.includes('other'))
  })
}

onBothEngines('a large backlog comes whole and in order, read by read', async (t, api) => {
  await api.createTopic('t', 1)
  const value = 'v'.repeat(30_000)
  for (let i = 0; i < 10; i++) await produceTo(api, 0, ...Array.from({ length: 10 }, () => value))
  const stream = await openStream(t, `${api.url}/topics/t/stream?partition=0&offset=earliest`)
  const records = await stream.untilRecords(100)
  assert.deepEqual(records.map(placeOf), placesOf(0, 100))
  assert.ok(records.every(record => record.value === value))
})

for (const engine of ['uws', 'node'] as const) {
  it(`a stream comes whole over TLS too, also to a client that pauses, on ${engine}`, async t => {
    const made = makeCertificate('first')
    const files = writeCertificate(temporaryDirectory(t), made)
    const flags = { '--tls-cert': files.cert, '--tls-key': files.key, '--http-engine': engine }
    const { server } = await startBroker(t, { flags })
    const broker = `https://${server.httpAddress}`
    const http = new HttpClient({ broker, timeoutMs: 10_000, tls: { ca: made.cert } })
    await http.createTopic('t', 1, {})
    const value = 'v'.repeat(200_000)
    for (let i = 0; i < 40; i++) await http.produce('t', [{ value, partition: 0 }])
    const url = `${broker}/topics/t/stream?partition=0&offset=earliest`
    const stream = await openStream(t, url, { ca: made.cert })
    stream.response.pause()
    await waitFor('events that the client has not taken', async () => {
      const page = parsePage((await overTls(`${broker}/metrics`, made.cert)).text)
      return (valueOf(page, 'millrace_http_stream_events_total') ?? 0) > 5
    })
    stream.response.resume()
    const records = await stream.untilRecords(40)
    assert.deepEqual(records.map(placeOf), placesOf(0, 40))
    assert.ok(records.every(record => record.value === value))
    await http.produce('t', [{ value: 'last', partition: 0 }])
    assert.equal((await stream.untilRecords(41)).at(-1)?.value, 'last')
  })
}

async function guarded(t: TestContext, engine: 'uws' | 'node'): Promise<{ broker: TestBroker; admin: HttpApi }> {
  const { broker, admin } = await startGuarded(t, { variant: { engine, shards: 1 } })
  await admin.api.createTopic('t', 2)
  return { broker, admin: admin.api }
}

for (const engine of ['uws', 'node'] as const) {
  describe(`streams end with their reason, on ${engine}`, () => {
    it('when the topic is deleted', async t => {
      const { url } = await startBroker(t, { variant: { engine, shards: 1 } })
      const api = new HttpApi(url)
      await api.createTopic('t', 2)
      const streams = [
        await openStream(t, `${url}/topics/t/stream`),
        await openStream(t, `${url}/topics/t/stream?partition=1`)
      ]
      assert.equal((await api.call('DELETE', '/topics/t')).status, 200)
      for (const stream of streams) {
        const { data } = await stream.untilType('end')
        assert.deepEqual(JSON.parse(data), { code: 'TOPIC_NOT_FOUND', error: "no topic named 't'" })
        await stream.untilClosed()
        assert.ok(stream.isWhole)
        assert.equal(stream.ofType('end').length, 1)
      }
      await untilNothingLeft(api)
    })

    it('when the key is revoked, and those of other keys go on', async t => {
      const { broker, admin } = await guarded(t, engine)
      const reader = await makeTestKey(admin, 'read:t')
      const other = await makeTestKey(admin, 'read:t')
      const open = (secret: string): Promise<EventStream> =>
        openStream(t, `${broker.url}/topics/t/stream`, { headers: { authorization: `Bearer ${secret}` } })
      const [lost, kept] = [await open(reader.secret), await open(other.secret)]
      await revokeKey(admin, reader.id)
      const { data } = await lost.untilType('end')
      assert.deepEqual(JSON.parse(data), { code: 'KEY_REVOKED', error: 'key revoked' })
      await lost.untilClosed()
      await produceTo(admin, 0, 'after')
      await kept.untilRecords(1)
      assert.deepEqual([lost.records, kept.isClosed], [[], false])
    })

    it('when the broker stops, which does not wait for them', async t => {
      const { url, stop } = await startBroker(t, { variant: { engine, shards: 1 } })
      await new HttpApi(url).createTopic('t', 1)
      const stream = await openStream(t, `${url}/topics/t/stream`)
      await stop()
      const { data } = await stream.untilType('end')
      assert.deepEqual(JSON.parse(data), { code: 'STOPPING', error: 'the broker is shutting down' })
      await stream.untilClosed()
      assert.ok(stream.isWhole)
    })
  })

  it(`a stream that is over its quota waits, and is not cut, on ${engine}`, async t => {
    const { broker, admin } = await guarded(t, engine)
    const request = { name: 'slow', acls: [{ action: 'read', topic_prefix: 't' }], consume_bytes_per_sec: 2000 }
    const { secret } = parse<{ secret: string }>(await admin.post('/admin/keys', request))
    const headers = { authorization: `Bearer ${secret}` }
    const stream = await openStream(t, `${broker.url}/topics/t/stream?partition=0&max_bytes=1`, { headers })
    const startMs = performance.now()
    // The second leaves a debt of a second and a half; the third waits that out.
    for (let i = 0; i < 3; i++) await produceTo(admin, 0, 'v'.repeat(2500))
    await stream.untilRecords(3)
    assert.ok(performance.now() - startMs > 1000, 'two records are more than a second may have')
    assert.equal(stream.isClosed, false)
    // A consume of the same key is refused meanwhile: they draw on the same.
    const api = new HttpApi(broker.url, secret)
    assert.equal((await api.get('/topics/t/consume?partition=0&offset=0')).status, 429)
  })
}
