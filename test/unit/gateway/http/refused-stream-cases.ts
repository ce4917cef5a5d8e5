/** Streams that are refused: what EventSource is told so that it comes again, and what keeps its status. Both engines alike. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BrokerError, type ErrorCode } from '../../../../src/model/errors.ts'
import { assertError, one, RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { Answer, EngineName, Fixture } from './http-harness.ts'

const paths = ['/topics/t/stream', '/groups/g/stream?member_id=m'] as const
/** As EventSource sends it. */
const asEvents = { accept: 'text/event-stream' }

/** What such an answer consists of. */
function assertEvents(answer: Answer, retryMs: number, code: ErrorCode, words: RegExp): void {
  const { status, headers, text } = answer
  assert.deepEqual(
    [status, headers['content-type'], headers['cache-control'], headers['x-accel-buffering']],
    [200, 'text/event-stream; charset=utf-8', 'no-store', 'no'],
    text
  )
  assert.match(String(headers['x-request-id']), /^[0-9a-f]{8}$/)
  const [, retry, data = ''] = /^retry: (\d+)\n\nevent: end\ndata: (.*)\n\n$/.exec(text) ?? assert.fail(text)
  const told = JSON.parse(data) as { code: string; error: string }
  assert.deepEqual([Object.keys(told), Number(retry), told.code], [['code', 'error'], retryMs, code])
  assert.match(told.error, words)
}

function refusalsOf({ gateway }: Fixture, code: ErrorCode): number {
  return gateway.probe.refusals.get(code) ?? 0
}

/** One that has not started: nothing was asked of it. */
async function startStarting(...[t, engine]: Parameters<typeof startGateway>): Promise<Fixture> {
  const fixture = await startGateway(t, engine)
  const progress = { status: 'starting', progress: 0.5, message: 'shard 0: scanning', durability: 'synced' } as const
  fixture.broker.ready = { ...fixture.broker.ready, ...progress, ready: false }
  return fixture
}

/** Registers the claims for one engine. */
export function refusedStreamCases(engine: EngineName): void {
  test('while the broker starts, who asks for events by name gets a stream that ends, and all others the status', async t => {
    const fixture = await startStarting(t, engine)
    const { send } = fixture
    for (const path of paths) {
      assertEvents(await send('GET', path, undefined, asEvents), 1000, 'NOT_READY', /scanning/)
      const listed = { accept: 'application/json, Text/Event-Stream;q=0.5' }
      assertEvents(await send('GET', path, undefined, listed), 1000, 'NOT_READY', /scanning/)
      for (const accept of ['*/*', 'text/*', '', 'text/event-stream;q=0', 'application/json']) {
        const answer = await send('GET', path, undefined, { accept })
        assertError(answer, 503, 'NOT_READY', /scanning/)
        assert.equal(answer.headers['retry-after'], '1')
      }
      assert.equal((await send('HEAD', path, undefined, asEvents)).status, 503)
    }
    // It is for streams alone.
    assertError(await send('GET', '/topics', undefined, asEvents), 503, 'NOT_READY', /scanning/)
    assertError(await send('GET', '/nowhere', undefined, asEvents), 503, 'NOT_READY', /scanning/)
    assertError(await send('POST', paths[0], undefined, asEvents), 503, 'NOT_READY', /scanning/)
    assert.equal(fixture.gateway.probe.streams, 0)
  })

  test('what is told as events is counted as the refusal that it is, and logged', async t => {
    const fixture = await startStarting(t, engine)
    const answer = await fixture.send('GET', paths[0], undefined, asEvents)
    assert.equal(refusalsOf(fixture, 'NOT_READY'), 1)
    assert.deepEqual([...fixture.gateway.probe.statuses], [[200, 1]])
    const line = fixture.log.find(({ message }) => message === 'a request was refused')
    const wanted = { request_id: answer.headers['x-request-id'], method: 'GET', path: paths[0], code: 'NOT_READY' }
    const { text, ...fields } = { text: '', ...line?.fields }
    assert.match(text, /scanning/)
    assert.deepEqual(fields, wanted)
  })

  test('a stream that is refused for now by its route is told so as events, with the time of Retry-After', async t => {
    const fixture = await startGateway(t, engine)
    const { send, broker } = fixture
    await send('POST', '/topics', '{"name":"t","partitions":2}')
    broker.readFailure = new BrokerError('OVERLOADED', { what: 'the number of streams', limit: 1 })
    assertEvents(await send('GET', paths[0], undefined, asEvents), 1000, 'OVERLOADED', /the number of streams/)
    assertError(await send('GET', paths[0]), 503, 'OVERLOADED', /the number of streams/)
    broker.readFailure = null
    const details = { problem: 'requests', seconds: 6.5, retryAfterSeconds: 7 }
    broker.bug = new BrokerError('RATE_LIMITED', details)
    assertEvents(await send('GET', paths[0], undefined, asEvents), 7000, 'RATE_LIMITED', /retry in 6.5s/)
    broker.bug = new BrokerError('RATE_LIMITED', details)
    const plain = await send('GET', paths[0])
    assertError(plain, 429, 'RATE_LIMITED', /retry in 6.5s/)
    assert.equal(plain.headers['retry-after'], '7')
    // Of one that may be tried again, but has no Retry-After.
    broker.bug = new BrokerError('DISK_FULL')
    assertEvents(await send('GET', paths[0], undefined, asEvents), 1000, 'DISK_FULL', /is full/)
    assert.deepEqual([refusalsOf(fixture, 'OVERLOADED'), refusalsOf(fixture, 'RATE_LIMITED')], [2, 2])
  })

  test('what does not pass by itself keeps its status, however it is asked for', async t => {
    const { send, broker } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t","partitions":2}')
    const ask = (path: string): Promise<Answer> => send('GET', path, undefined, asEvents)
    assertError(await ask('/topics/nope/stream'), 404, 'TOPIC_NOT_FOUND', /nope/)
    assertError(await ask('/topics/t/stream?offset=soon'), 400, 'FIELD_INVALID', /^offset/)
    assertError(await ask('/topics/%zz/stream'), 400, 'FIELD_INVALID', /percent escape/)
    assertError(await ask('/groups/g/stream?member_id=m'), 404, 'GROUP_NOT_FOUND', /none/)
    broker.bug = new Error('a secret')
    assertError(await ask('/topics/t/stream'), 500, 'INTERNAL', /^internal error \(id [0-9a-f]{8}\)$/)
    broker.bug = null
    assertError(await send('POST', '/topics/t/stream', undefined, asEvents), 405, 'METHOD_NOT_ALLOWED', /GET/)
  })

  test('a page of another origin may read what it is told', async t => {
    const fixture = await startGateway(t, engine, { settings: { corsOrigin: ['https://page.example'] } })
    fixture.broker.ready = { ...fixture.broker.ready, ready: false, message: 'starting' }
    const headers = { ...asEvents, origin: 'https://page.example' }
    const answer = await fixture.send('GET', paths[0], undefined, headers)
    assertEvents(answer, 1000, 'NOT_READY', /starting/)
    assert.equal(answer.headers['access-control-allow-origin'], 'https://page.example')
  })

  test('without a key nothing is told but that, also to who asks for events', async t => {
    const fixture = await startGateway(t, engine, { settings: { auth: 'required' } })
    fixture.broker.ready = { ...fixture.broker.ready, ready: false, message: 'starting' }
    for (const path of paths) {
      assertError(await fixture.send('GET', path, undefined, asEvents), 401, 'UNAUTHENTICATED', /no valid key/)
    }
  })

  test('a broker that stops tells it as events, and closes the connection', async t => {
    const { broker, gateway, port, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.holdsAnswers = true
    const held = send('POST', '/topics/t/produce', one)
    const raw = new RawConnection(t, port)
    raw.socket.write('GET /topics/t/stream HTTP/1.1\r\nHost: localhost\r\n')
    await waitFor(() => broker.heldAnswerCount === 1 && gateway.probe.connections === 2, 'a request in progress')
    const stopping = gateway.stop(60_000)
    raw.socket.write('Accept: text/event-stream\r\n\r\n')
    await waitFor(() => raw.isClosed, 'the end of the connection')
    assert.match(raw.received, /^HTTP\/1\.1 200 OK\r\n/)
    assert.ok(
      raw.received.endsWith(
        'retry: 1000\n\nevent: end\ndata: {"code":"STOPPING","error":"the broker is shutting down"}\n\n'
      ),
      raw.received
    )
    broker.holdsAnswers = false
    broker.flush()
    assert.equal((await held).status, 200)
    await stopping
    assert.equal(gateway.probe.refusals.get('STOPPING'), 1)
  })
}
