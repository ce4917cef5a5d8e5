/** Streams over sockets: their head, what is refused before it, clients that do not read or leave, and the end. Both engines alike. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import type { Clock } from '../../../../src/base/clock.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import { assertError, RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { EngineName, Fixture, FixtureOptions } from './http-harness.ts'

const RECORD_BYTES = 250_000
/** Together more than the system buffers for a connection whose client does not read. */
const RECORD_COUNT = 64
/** Nothing of 1.1 is needed beyond its Host. */
const get = (path: string, headers = '', version = '1.1'): string =>
  `GET ${path} HTTP/${version}\r\nHost: localhost\r\n${headers}\r\n`

async function start(t: TestContext, engine: EngineName, options?: FixtureOptions): Promise<Fixture> {
  const fixture = await startGateway(t, engine, options)
  await fixture.send('POST', '/topics', '{"name":"t","partitions":2}')
  return fixture
}

function append({ broker }: Fixture, partition: number, ...values: string[]): void {
  for (const value of values) {
    broker.recordsOf('t', partition).push({ key: null, value: Buffer.from(value), sequence: 0n })
  }
  broker.watches.answer()
}

async function openRaw(t: TestContext, { port, gateway }: Fixture, request: string): Promise<RawConnection> {
  const raw = new RawConnection(t, port)
  const before = gateway.probe.streams
  raw.socket.write(request)
  await waitFor(() => gateway.probe.streams > before && raw.received.includes('retry: 1000'), 'the stream to open')
  return raw
}

/** Nothing of any stream is left. */
async function untilNothingLeft({ broker, gateway, replyBudget }: Fixture): Promise<void> {
  const left = (): number => gateway.probe.streams + broker.watches.standing.size + replyBudget.usedBytes
  await waitFor(() => left() === 0 && broker.heldAnswerCount === 0, 'all streams to be gone')
}

/** Registers the claims for one engine. */
export function streamCases(engine: EngineName): void {
  test('a stream shows that it is open at once, and how proxies are to treat it', async t => {
    const fixture = await start(t, engine)
    const raw = await openRaw(t, fixture, get('/topics/t/stream'))
    const head = raw.received.slice(0, raw.received.indexOf('\r\n\r\n')).toLowerCase()
    assert.match(head, /^http\/1\.1 200 ok\r\n/)
    assert.match(head, /\r\ncontent-type: text\/event-stream; charset=utf-8\r\n/)
    assert.match(head, /\r\ncache-control: no-store\r\n/)
    assert.match(head, /\r\nx-accel-buffering: no\r\n/)
    assert.match(head, /\r\ntransfer-encoding: chunked/)
    assert.match(head, /\r\nconnection: close/)
    assert.ok(!head.includes('content-length'))
    append(fixture, 1, 'v')
    await waitFor(() => raw.received.includes('"value":"v"'), 'the record')
    assert.match(raw.received, /id: 0,1\ndata: \{"partition":1,"offset":0,/)
  })

  test('HEAD gets the head alone, and opens no stream', async t => {
    const fixture = await start(t, engine)
    const answer = await fixture.send('HEAD', '/topics/t/stream')
    assert.deepEqual([answer.status, answer.text], [200, ''])
    assert.equal(answer.headers['content-type'], 'text/event-stream; charset=utf-8')
    assert.equal(answer.headers['content-length'], undefined)
    assert.equal(fixture.gateway.probe.streams, 0)
    assert.equal((await fixture.send('GET', '/healthz')).status, 200)
  })

  test('what is wrong with the request is told before there is a stream', async t => {
    const fixture = await start(t, engine)
    const { send, broker } = fixture
    const cases: [string, Record<string, string>, RegExp][] = [
      ['?partition=x', {}, /^partition: /],
      ['?offset=5', {}, /^offset: must be earliest or latest where no partition is named/],
      ['?partition=0&offset=soon', {}, /^offset: must be earliest, latest, or a whole number/],
      ['?partition=0&offset=1&timestamp_ms=1', {}, /^timestamp_ms: must not come with offset/],
      ['?timestamp_ms=noon', {}, /^timestamp_ms: /],
      ['?encoding=hex', {}, /^encoding: must be utf8 or base64/],
      ['?max_bytes=-1', {}, /^max_bytes: /],
      ['?partition=0', { 'last-event-id': 'nonsense' }, /^Last-Event-ID: its number 1 is not a whole number/],
      ['?partition=0', { 'last-event-id': '1,2' }, /^Last-Event-ID: has 2 numbers, and the stream has 1 partition/],
      ['', { 'last-event-id': '1,2,3' }, /^Last-Event-ID: has 3 numbers, and the stream has 2 partition/],
      ['', { 'last-event-id': '1'.repeat(6000) }, /^Last-Event-ID: is longer than/],
      ['?partition=0&last_event_id=x', {}, /^last_event_id: its number 1 is not a whole number/],
      ['?last_event_id=', {}, /^last_event_id: its number 1 is not a whole number/],
      ['?last_event_id=1&last_event_id=1', {}, /^last_event_id: is given twice/],
      ['?last_event_id=1,2,3', {}, /^last_event_id: has 3 numbers, and the stream has 2 partition/],
      [`?last_event_id=${'1'.repeat(6000)}`, {}, /^last_event_id: is longer than/],
      ['?last_event_id=1', { 'last-event-id': 'x' }, /^Last-Event-ID: its number 1/]
    ]
    for (const [query, headers, words] of cases) {
      assertError(await send('GET', `/topics/t/stream${query}`, undefined, headers), 400, 'FIELD_INVALID', words)
    }
    assertError(await send('GET', '/topics/nope/stream'), 404, 'TOPIC_NOT_FOUND', /nope/)
    broker.readFailure = new BrokerError('PARTITION_RANGE', { partition: 9, topic: 't', count: 2 })
    assertError(await send('GET', '/topics/t/stream?partition=9'), 400, 'PARTITION_RANGE', /numbered from 0/)
    broker.readFailure = null
    await send('POST', '/topics', '{"name":"wide","partitions":257}')
    assertError(
      await send('GET', '/topics/wide/stream'),
      400,
      'FIELD_INVALID',
      /^partition: is missing.* 257.*256 at most/
    )
    assertError(await send('GET', '/groups/g/stream'), 400, 'FIELD_INVALID', /^member_id: is missing/)
    assertError(await send('GET', '/groups/g/stream?member_id=m'), 404, 'GROUP_NOT_FOUND', /none/)
    await untilNothingLeft(fixture)
  })

  test('a stream goes on behind the id of the last event, and begins partitions that it does not name at 0', async t => {
    const fixture = await start(t, engine)
    append(fixture, 0, 'a', 'b', 'c')
    append(fixture, 1, 'x')
    const raw = await openRaw(t, fixture, get('/topics/t/stream?offset=latest', 'Last-Event-ID: 2\r\n'))
    fixture.broker.watches.answer()
    await waitFor(() => raw.received.includes('"value":"c"') && raw.received.includes('"value":"x"'), 'what is new')
    assert.ok(!raw.received.includes('"value":"b"'))
  })

  test('a silent stream sends a comment now and then', async t => {
    const fixture = await start(t, engine, { timeouts: { heartbeatMs: 15 } })
    const raw = await openRaw(t, fixture, get('/topics/t/stream'))
    await waitFor(() => raw.received.split(': \n\n').length > 3, 'three comments')
    assert.equal(raw.isClosed, false)
  })

  test('a silent stream is not cut by what cuts clients that do not read', async t => {
    let nowMs = 0
    const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
    const fixture = await start(t, engine, { timeouts: { writeMs: 20, stalledMs: 20 }, clock })
    const raw = await openRaw(t, fixture, get('/topics/t/stream'))
    // A client that does not read shows, by its end, that the clients were looked at.
    fixture.broker.cannedAnswer = { bytes: Buffer.alloc(8 * 1024 * 1024, 'a'), chunkBytes: 256 * 1024 }
    const stuck = new RawConnection(t, fixture.port)
    stuck.socket.pause()
    stuck.socket.write(get('/topics/t/consume?partition=0&offset=0&max_bytes=8388608'))
    await waitFor(() => fixture.broker.reads.length === 1 && fixture.broker.heldAnswerCount === 0, 'its answer')
    nowMs += 10_000
    await waitFor(() => fixture.replyBudget.usedBytes === 0, 'the stuck one to be cut')
    fixture.broker.cannedAnswer = null
    append(fixture, 0, 'v')
    await waitFor(() => raw.received.includes('"value":"v"'), 'the record')
  })

  test('for a client that reads nothing one read is kept, and then it is cut off', async t => {
    let nowMs = 0
    const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
    const settings = { maxFetchRecords: 1 }
    const fixture = await start(t, engine, { timeouts: { writeMs: 100, stalledMs: 100_000 }, clock, settings })
    const { broker, replyBudget, gateway } = fixture
    const value = 'v'.repeat(RECORD_BYTES)
    append(fixture, 0, ...Array.from({ length: RECORD_COUNT }, () => value))
    const raw = await openRaw(t, fixture, get('/topics/t/stream?partition=0&offset=earliest'))
    raw.socket.pause()
    broker.watches.answer()
    const isStuck = (): boolean => replyBudget.usedBytes > RECORD_BYTES && broker.heldAnswerCount === 0
    let readCount = -1
    // Stuck is what stays so while the loop turns.
    await waitFor(() => {
      const isQuiet = isStuck() && broker.reads.length === readCount
      readCount = broker.reads.length
      return isQuiet
    }, 'the stream to wait for its client')
    assert.ok(broker.reads.length < RECORD_COUNT, `${broker.reads.length} reads`)
    assert.ok(replyBudget.usedBytes < RECORD_BYTES + 200, `${replyBudget.usedBytes}`)
    nowMs += 101
    await waitFor(() => gateway.probe.streams === 0, 'it to be cut off')
    await untilNothingLeft(fixture)
    raw.socket.resume()
    await waitFor(() => raw.isClosed, 'the end of the connection')
  })

  test('a client that reads slowly gets every record, in order and whole', async t => {
    const settings = { maxFetchRecords: 3 }
    const fixture = await start(t, engine, { settings })
    const count = RECORD_COUNT
    append(fixture, 0, ...Array.from({ length: count }, (_, i) => `${i}:${'v'.repeat(RECORD_BYTES)}`))
    const raw = await openRaw(t, fixture, get('/topics/t/stream?partition=0&offset=earliest'))
    raw.socket.on('data', () => {
      raw.socket.pause()
      setImmediate(() => raw.socket.resume())
    })
    fixture.broker.watches.answer()
    // Cheap to look at: all of it is some sixteen megabytes.
    const isWhole = (): boolean =>
      raw.received.length > count * RECORD_BYTES && raw.received.slice(-100).includes('v"}\n\n')
    await waitFor(() => isWhole() && raw.received.includes(`id: ${count}\n`), 'the last record')
    // The chunks of HTTP, and fillers between events, are taken out.
    const text = raw.received
      .slice(raw.received.indexOf('\r\n\r\n'))
      .replace(/\r\n[0-9a-f]+\r\n/g, '')
      .replaceAll('\r\n', '')
    const found = [
      ...text.matchAll(
        /id: (\d+)\ndata: \{"partition":0,"offset":(\d+),"timestamp_ms":1,"key":null,"value":"(\d+):(v+)"\}\n\n/g
      )
    ]
    assert.deepEqual(
      found.map(([, id, offset, value, rest]) => [Number(id), Number(offset), Number(value), rest?.length]),
      Array.from({ length: count }, (_, i) => [i + 1, i, i, RECORD_BYTES])
    )
    await waitFor(() => fixture.replyBudget.usedBytes === 0, 'the memory to be given back')
  })

  test('thousands of streams that open and close, in whatever way, leave nothing', async t => {
    const fixture = await start(t, engine, { timeouts: { retryMs: 1000 } })
    const { gateway, port } = fixture
    for (let round = 0; round < 20; round++) {
      const all = Array.from({ length: 100 }, () => new RawConnection(t, port))
      for (const [i, { socket }] of all.entries())
        socket.write(get(`/topics/t/stream${i % 2 === 0 ? '?partition=0' : ''}`))
      // Some leave before they are open.
      for (const [i, { socket }] of all.entries()) if (i % 5 === 0) socket.destroy()
      await waitFor(
        () => all.every(({ received, socket }) => socket.destroyed || received.includes('retry')),
        'the others'
      )
      append(fixture, 0, `v${round}`)
      for (const [i, { socket }] of all.entries()) {
        if (i % 5 === 1) socket.resetAndDestroy()
        else if (i % 5 === 2) socket.end()
        else socket.destroy()
      }
      await waitFor(() => gateway.probe.streams === 0, 'all of a round to be gone')
    }
    await untilNothingLeft(fixture)
    await waitFor(() => gateway.probe.connections === 0, 'their connections to be gone')
  })

  test('a request behind a stream is not carried out, and closes the connection', async t => {
    const fixture = await start(t, engine)
    const { broker } = fixture
    const raw = await openRaw(t, fixture, get('/topics/t/stream'))
    const body = '{"records":[{"value":"v"}]}'
    const type = `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
    raw.socket.write(`POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\n${type}\r\n${body}`)
    await waitFor(() => raw.isClosed, 'the connection to be closed')
    await untilNothingLeft(fixture)
    assert.deepEqual([broker.recordsOf('t', 0).length, broker.recordsOf('t', 1).length], [0, 0])
    // Also where it came before the stream was open: its answer would be kept for as long as the stream is.
    broker.cannedAnswer = { bytes: Buffer.alloc(200_000, 'a'), chunkBytes: 200_000 }
    const both = new RawConnection(t, fixture.port)
    both.socket.write(get('/topics/t/stream') + get('/topics/t/consume?partition=0&offset=0'))
    await waitFor(() => both.isClosed, 'that connection to be closed')
    await untilNothingLeft(fixture)
  })

  test('a stop ends streams at once with their reason, and the connection is closed', async t => {
    const fixture = await start(t, engine)
    const raw = await openRaw(t, fixture, get('/topics/t/stream'))
    const stopping = fixture.gateway.stop(60_000)
    await waitFor(() => raw.isClosed, 'the end')
    assert.match(
      raw.received,
      /event: end\ndata: \{"code":"STOPPING","error":"the broker is shutting down"\}\n\n\r\n0\r\n\r\n$/
    )
    await stopping
  })
}
