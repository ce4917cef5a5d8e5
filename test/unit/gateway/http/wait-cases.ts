/** Reads that wait for records: what they hold meanwhile, what ends them, and what their client is told. Both engines alike. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { BrokerError } from '../../../../src/model/errors.ts'
import { limits } from '../../../../src/model/limits.ts'
import {
  assertError,
  RawConnection,
  startGateway,
  waitFor,
  type Answer,
  type EngineName,
  type Fixture,
  type FixtureOptions
} from './http-harness.ts'

const FOREVER = 'max_wait_ms=60000'
const path = (query: string): string => `/topics/t/consume?partition=0&${query}`

async function start(t: TestContext, engine: EngineName, options?: FixtureOptions): Promise<Fixture> {
  const fixture = await startGateway(t, engine, options)
  await fixture.send('POST', '/topics', '{"name":"t"}')
  return fixture
}

/** Sends a read that waits. @returns when it does: its answer to come. */
async function startWaiting(
  { broker, send }: Fixture,
  query = `offset=0&${FOREVER}`
): Promise<{ answer: Promise<Answer> }> {
  const before = broker.watches.standing.size
  const answer = send('GET', path(query))
  await Promise.race([answer, waitFor(() => broker.watches.standing.size > before, 'the read to wait')])
  return { answer }
}

/** Registers the claims for one engine. */
export function waitCases(engine: EngineName): void {
  test('a read that may wait reserves and reads nothing until there is something, then is a read like any other', async t => {
    const fixture = await start(t, engine)
    const { broker, replyBudget, send } = fixture
    const { answer } = await startWaiting(fixture, `offset=4294967299&${FOREVER}&min_bytes=77`)
    assert.deepEqual(broker.watches.requests, [{ topic: 't', partition: 0, offsetHigh: 1, offsetLow: 3, minBytes: 77 }])
    assert.deepEqual([broker.reads.length, replyBudget.usedBytes], [0, 0])
    await send('POST', '/topics/t/produce', '{"records":[{"value":"v"}]}')
    broker.watches.answer()
    assert.deepEqual((await answer).json(), { records: [], next_offset: 4294967299, high_watermark: 1 })
    assert.equal(broker.reads.length, 1)
  })

  test('a read that does not ask to wait never does', async t => {
    const { broker, send } = await start(t, engine)
    for (const query of ['offset=0', 'offset=0&max_wait_ms=0', 'offset=0&min_bytes=1000000']) {
      assert.equal((await send('GET', path(query))).status, 200)
    }
    assert.deepEqual([broker.watches.standing.size, broker.reads.length], [0, 3])
  })

  test('at the end of its time a read is made whatever is there', async t => {
    const { broker, send } = await start(t, engine)
    const answer = await send('GET', path('offset=0&max_wait_ms=1'))
    assert.deepEqual([answer.status, answer.text], [200, '{"records":[],"next_offset":0,"high_watermark":0}'])
    assert.deepEqual([broker.watches.standing.size, broker.reads.length], [0, 1])
  })

  test('what a read waits for is brought into its bounds, silently', async t => {
    const fixture = await start(t, engine)
    const cases = [
      ['min_bytes=0', 1],
      ['min_bytes=18446744073709551615', 1024 * 1024],
      ['min_bytes=500&max_bytes=100', 100],
      ['max_wait_ms=18446744073709551615', 1]
    ] as const
    for (const [query, minBytes] of cases) {
      const { answer } = await startWaiting(
        fixture,
        `offset=0&${query}${query.startsWith('max_wait') ? '' : `&${FOREVER}`}`
      )
      assert.deepEqual(
        fixture.broker.watches.requests.map(request => request.minBytes),
        [minBytes],
        query
      )
      fixture.broker.watches.answer()
      assert.equal((await answer).status, 200)
    }
  })

  test('a read that would be refused is refused at once, not after its wait', async t => {
    const fixture = await start(t, engine)
    const { broker } = fixture
    broker.readFailure = new BrokerError('PARTITION_RANGE', { partition: 0, topic: 't', count: 0 })
    const { answer } = await startWaiting(fixture)
    assertError(await answer, 400, 'PARTITION_RANGE', /partition 0/)
    assert.deepEqual([broker.watches.standing.size, broker.reads.length], [0, 0])
    for (const [query, words] of [
      [`offset=0&max_wait_ms=-1`, /max_wait_ms/],
      [`offset=0&max_wait_ms=1.5`, /max_wait_ms/],
      [`offset=0&${FOREVER}&min_bytes=x`, /min_bytes/],
      [FOREVER, /offset/]
    ] as const)
      assertError(await fixture.send('GET', path(query)), 400, 'FIELD_INVALID', words)
  })

  test('a wait that its key, its topic or the number of others ends is refused, and nothing is read', async t => {
    const fixture = await start(t, engine)
    const refusals = [
      [new BrokerError('KEY_REVOKED'), 401],
      [new BrokerError('TOPIC_NOT_FOUND', { topic: 't' }), 404],
      [new BrokerError('OVERLOADED', { what: 'x', limit: limits.watchesMax }), 503]
    ] as const
    for (const [error, status] of refusals) {
      const { answer } = await startWaiting(fixture)
      fixture.broker.watches.answer(error)
      assertError(await answer, status, error.code, /./)
    }
    assert.equal(fixture.broker.reads.length, 0)
  })

  test('a wait whose shard dies is answered what a read is answered then', async t => {
    const fixture = await start(t, engine)
    const { broker } = fixture
    for (const code of ['SHARD_DOWN', 'SHARD_DIED'] as const) {
      const { answer } = await startWaiting(fixture)
      broker.readFailure = new BrokerError('NOT_READY', { problem: 'it starts' })
      broker.watches.answer(new BrokerError(code, { shard: 0 }))
      assertError(await answer, 503, 'NOT_READY', /it starts/)
      broker.readFailure = null
    }
    assert.equal(broker.reads.length, 2)
  })

  test('a client that leaves takes its wait with it', async t => {
    const fixture = await start(t, engine)
    const { broker, port, send } = fixture
    const raw = new RawConnection(t, port)
    raw.socket.write(`GET ${path(`offset=0&${FOREVER}`)} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await waitFor(() => broker.watches.standing.size === 1, 'the read to wait')
    raw.socket.destroy()
    await waitFor(() => broker.watches.standing.size === 0, 'the wait to end')
    assert.equal((await send('GET', '/healthz')).status, 200)
    assert.equal(broker.reads.length, 0)
  })

  test('stopping answers those who wait, at once', async t => {
    const fixture = await start(t, engine)
    const answers = [await startWaiting(fixture), await startWaiting(fixture, `offset=7&${FOREVER}`)]
    const stopped = fixture.gateway.stop(10_000)
    for (const { answer } of answers) assert.equal((await answer).status, 200)
    await stopped
    assert.equal(fixture.broker.watches.standing.size, 0)
  })

  test('who waits for an answer is neither idle nor slow to read, however long it takes', async t => {
    const timeouts = { idleMs: 1000, responseMs: 1000, writeMs: 100, stalledMs: 100 }
    const fixture = await start(t, engine, { timeouts })
    const { answer } = await startWaiting(fixture)
    // Idle for less long than the other one waits: when it is cut, that one would have been.
    const idle = new RawConnection(t, fixture.port)
    idle.socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor(() => idle.received.includes('topics_count'), 'an idle connection')
    await waitFor(() => idle.isClosed, 'the idle connection to be cut')
    fixture.broker.watches.answer()
    assert.equal((await answer).status, 200)
  })
}
