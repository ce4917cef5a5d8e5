/** What both HTTP engines must do alike beside their routes. Run, with route-cases.ts, by uws-engine.test.ts and node-engine.test.ts. */
import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { describe, test } from 'node:test'
import { ByteBudget } from '../../../../src/base/byte-budget.ts'
import { silentLogger } from '../../../../src/base/logger.ts'
import { createHttpGateway } from '../../../../src/gateway/http/gateway.ts'
import { BrokerError } from '../../../../src/model/errors.ts'
import { accessCases } from './access-cases.ts'
import { consumeFormCases } from './consume-cases.ts'
import { FakeBroker } from './fake-broker.ts'
import { framingCases } from './framing-cases.ts'
import { assertError, errorOf, metrics, one, RawConnection, settings, startGateway, waitFor } from './http-harness.ts'
import type { Answer, EngineName } from './http-harness.ts'
import { metricsCases } from './metrics-cases.ts'
import { readerCases } from './reader-cases.ts'
import { offsetCases } from './offset-cases.ts'
import { consumeCases, produceCases, topicCases } from './route-cases.ts'
import { refusedStreamCases } from './refused-stream-cases.ts'
import { streamCases } from './stream-cases.ts'
import { waitCases } from './wait-cases.ts'

function refusalCases(engine: EngineName): void {
  test('unknown routes and methods are refused in JSON, with Allow', async t => {
    const { send } = await startGateway(t, engine)
    for (const path of ['/', '/nope', '/topics/', '/topics//config', '/topics/a/b/c', '/topics/t/produce/']) {
      assertError(await send('GET', path), 404, 'ROUTE_NOT_FOUND', /no route GET/)
    }
    const cases: [string, string, string][] = [
      ['DELETE', '/topics', 'GET, HEAD, POST'],
      ['PATCH', '/topics/t', 'DELETE, GET, HEAD'],
      ['GET', '/topics/t/produce', 'POST'],
      ['OPTIONS', '/topics/t/config', 'GET, HEAD, PUT'],
      ['POST', '/healthz', 'GET, HEAD']
    ]
    for (const [method, path, allow] of cases) {
      const answer = await send(method, path)
      assertError(answer, 405, 'METHOD_NOT_ALLOWED', new RegExp(`allowed is ${allow}$`))
      assert.equal(answer.headers.allow, allow)
    }
    assertError(await send('GET', '/topics/%zz'), 400, 'FIELD_INVALID', /percent escape/)
  })

  test('a percent escape in a topic name is decoded once', async t => {
    const { send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"a.b"}')
    assert.equal((await send('GET', '/topics/a%2Eb')).status, 200)
    assertError(await send('GET', '/topics/a%252Eb'), 404, 'TOPIC_NOT_FOUND', /a%2Eb/)
  })

  test('a connection goes on after an error', async t => {
    const { port } = await startGateway(t, engine)
    const raw = new RawConnection(t, port)
    const body = 'x'.repeat(100_000)
    raw.socket.write(`POST /nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${body.length}\r\n\r\n${body}`)
    await waitFor(() => raw.received.includes('ROUTE_NOT_FOUND'), 'the refusal')
    raw.socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor(() => raw.received.includes('topics_count'), 'the next answer')
  })

  test('an announced body too long to skip closes the connection after the refusal', async t => {
    const { port } = await startGateway(t, engine)
    const raw = new RawConnection(t, port)
    raw.socket.write(
      'POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99999999999\r\n\r\n{'
    )
    await waitFor(() => raw.isClosed, 'the connection to close')
    assert.match(raw.received, /^HTTP\/1\.1 413 [\s\S]*BODY_TOO_LARGE/)
  })

  test('a request whose length is not a number is refused once, not carried out, and its connection closed', async t => {
    const { port, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const raw = new RawConnection(t, port)
    raw.socket.write('DELETE /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Length: abc\r\n\r\n')
    await waitFor(() => raw.isClosed, 'the connection to close')
    assert.match(raw.received, /^HTTP\/1\.1 4\d\d /)
    assert.equal(raw.received.match(/HTTP\/1\.1/g)?.length, 1)
    assert.equal((await send('GET', '/topics/t')).status, 200)
  })

  test('a foreign Host is refused on every route, and a name that only looks like loopback too', async t => {
    const { send } = await startGateway(t, engine, { settings: { allowedHost: ['broker.example'] } })
    for (const host of ['evil.example', '127.evil.example', '127.0.0.1.evil.example', '10.0.0.1:9000']) {
      assertError(await send('GET', '/healthz', undefined, { host }), 403, 'HOST_REFUSED', /is not served/)
    }
    for (const host of ['LOCALHOST:1', '127.9.9.9', '[::1]:9000', 'Broker.Example:80']) {
      assert.equal((await send('GET', '/healthz', undefined, { host })).status, 200, host)
    }
  })

  test('before the broker is ready only its health is served', async t => {
    const { broker, send } = await startGateway(t, engine)
    const message = 'shard 1 is recovering'
    broker.ready = { ready: false, status: 'starting', progress: 0.25, message, durability: 'synced' }
    assert.equal((await send('GET', '/healthz')).text, '{"status":"ok","topics_count":0}')
    for (const path of ['/readyz', '/topics', '/topics/t/consume', '/nope']) {
      const answer = await send('GET', path)
      assertError(answer, 503, 'NOT_READY', /shard 1 is recovering/)
      assert.equal(answer.headers['retry-after'], '1')
    }
    const { status, progress } = JSON.parse((await send('GET', '/readyz')).text) as Record<string, unknown>
    assert.deepEqual([status, progress], ['starting', 0.25])
    broker.ready = { ready: true, status: 'ready', progress: null, message: '', durability: 'synced' }
    assert.equal((await send('GET', '/readyz')).text, '{"status":"ready","message":"accepting traffic"}')
  })

  test('a bug becomes a 500 with an id, and the detail stands in the log under that id', async t => {
    const { broker, send, log } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.bug = new TypeError('secret detail')
    const requests: [string, string, string?][] = [
      ['POST', '/topics/t/produce', one],
      ['GET', '/topics/t/consume?partition=0&offset=0'],
      ['GET', '/topics/t']
    ]
    for (const [method, path, body] of requests) {
      log.length = 0
      const answer = await send(method, path, body)
      const found = errorOf(answer)
      const id = /^internal error \(id ([0-9a-f]{8})\)$/.exec(found.error)?.[1]
      assert.deepEqual([found.status, found.code, typeof id], [500, 'INTERNAL', 'string'])
      assert(!answer.text.includes('secret'))
      const line = JSON.stringify(log)
      assert(id !== undefined && line.includes(id) && line.includes('secret detail'), line)
    }
    broker.bug = null
    assert.equal((await send('POST', '/topics/t/produce', one)).status, 200)
  })

  test('an internal failure keeps its code and hides its text', async t => {
    const { broker, send, log } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.produceFailure = new BrokerError('WRITE_FAILED', { shard: 3 })
    const answer = await send('POST', '/topics/t/produce', one)
    assertError(answer, 500, 'WRITE_FAILED', /^internal error \(id [0-9a-f]{8}\)$/)
    assert.match(answer.text, /"written":"unknown"/)
    assert.match(JSON.stringify(log), /shard 3/)
  })
}

function pressureCases(engine: EngineName): void {
  test('a produce that finds the rings full waits, keeps its order, and its memory is given back', async t => {
    const { broker, send, requestBudget } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.areRingsFull = true
    const answers: Promise<Answer>[] = []
    for (let i = 0; i < 5; i++) {
      const before = requestBudget.usedBytes
      answers.push(send('POST', '/topics/t/produce', `{"records":[{"value":"${i}"}]}`))
      await waitFor(() => requestBudget.usedBytes > before, 'the body to be kept')
    }
    assert.equal(broker.roomWaiterCount, 1, 'one wake-up is asked for, not one per request')
    broker.makeRoom()
    for (const answer of await Promise.all(answers)) assert.equal(answer.status, 200)
    assert.deepEqual(
      broker.recordsOf('t', 0).map(record => record.value.toString()),
      ['0', '1', '2', '3', '4']
    )
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('a waiting produce whose client left is not written', async t => {
    const { broker, send, port, requestBudget } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.areRingsFull = true
    const raw = new RawConnection(t, port)
    raw.socket.write(
      `POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${one.length}\r\n\r\n${one}`
    )
    await waitFor(() => requestBudget.usedBytes > 0, 'the body to be kept')
    raw.socket.destroy()
    await waitFor(() => requestBudget.usedBytes === 0, 'its memory to be given back')
    broker.makeRoom()
    assert.equal((await send('POST', '/topics/t/produce', '{"records":[{"value":"next"}]}')).status, 200)
    assert.deepEqual(
      broker.recordsOf('t', 0).map(record => record.value.toString()),
      ['next']
    )
  })

  test('bodies over the memory for requests are refused with 503 and Retry-After', async t => {
    const { broker, send, port, requestBudget } = await startGateway(t, engine, { requestBudgetBytes: 1000 })
    await send('POST', '/topics', '{"name":"t"}')
    const held = new RawConnection(t, port)
    held.socket.write(
      `POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 900\r\n\r\n${one.padEnd(800)}`
    )
    await waitFor(() => requestBudget.usedBytes > 0, 'the first body to be held')
    broker.areRingsFull = true
    const answer = await send('POST', '/topics/t/produce', one.padEnd(400))
    assertError(answer, 503, 'OVERLOADED', /1000 bytes/)
    assert.equal(answer.headers['retry-after'], '1')
    broker.areRingsFull = false
    held.socket.write(' '.repeat(100))
    await waitFor(() => held.received.includes('results'), 'the first answer')
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('an announced length allocates nothing before bytes come', async t => {
    const { port, requestBudget, send } = await startGateway(t, engine)
    const raw = new RawConnection(t, port)
    raw.socket.write(
      'POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 9000000\r\n\r\n{"name":'
    )
    raw.socket.write('"')
    // A few round trips later the engine has read both pieces.
    for (let i = 0; i < 5; i++) await send('GET', '/healthz')
    assert(requestBudget.usedBytes <= 64, `${requestBudget.usedBytes} bytes are held for 9`)
    raw.socket.destroy()
    await waitFor(() => requestBudget.usedBytes === 0, 'the memory to be given back')
  })

  test('reads over the reply memory wait, go one by one as it frees, and all are answered', async t => {
    const { broker, send, replyBudget } = await startGateway(t, engine, { replyBudgetBytes: 1_200_000 })
    await send('POST', '/topics', '{"name":"t"}')
    broker.holdsAnswers = true
    const reads = Array.from({ length: 4 }, (_, i) => send('GET', `/topics/t/consume?partition=0&offset=${i}`))
    await waitFor(() => broker.heldAnswerCount === 1, 'the first read to be submitted')
    await send('GET', '/healthz')
    assert.equal(broker.reads.length, 1, 'the others wait: the budget holds one')
    broker.holdsAnswers = false
    broker.flush()
    for (const answer of await Promise.all(reads)) assert.equal(answer.status, 200)
    assert.equal(broker.reads.length, 4)
    await waitFor(() => replyBudget.usedBytes === 0, 'every reservation to be given back')
  })

  test('a read whose client left keeps its reservation until the broker is done with it', async t => {
    const { broker, port, replyBudget } = await startGateway(t, engine)
    broker.holdsAnswers = true
    broker.cannedAnswer = { bytes: Buffer.alloc(1000), chunkBytes: 500 }
    const raw = new RawConnection(t, port)
    raw.socket.write('GET /topics/t/consume?partition=0&offset=0 HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor(() => broker.heldAnswerCount === 1, 'the read to be submitted')
    raw.socket.destroy()
    await waitFor(() => raw.isClosed, 'the client to be gone')
    assert(replyBudget.usedBytes > 0)
    broker.flush()
    await waitFor(() => replyBudget.usedBytes === 0, 'the reservation to be given back')
  })

  test('what was submitted is followed by a turn of the broker', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.holdsAnswers = true
    const answer = send('POST', '/topics/t/produce', one)
    await waitFor(() => broker.heldAnswerCount === 1, 'the produce to be submitted')
    await waitFor(() => broker.turnCount >= 1, 'the turn')
    broker.flush()
    assert.equal((await answer).status, 200)
  })
}

function lifeCases(engine: EngineName): void {
  test('a port in use is refused with clear words, also to a second broker', async t => {
    const { port } = await startGateway(t, engine)
    const budget = new ByteBudget(1)
    const options = {
      broker: new FakeBroker(),
      metrics,
      logger: silentLogger,
      requestBudget: budget,
      replyBudget: budget,
      engine
    }
    const second = await createHttpGateway({ ...options, settings: { ...settings, bind: `127.0.0.1:${port}` } })
    await assert.rejects(second.listen(), {
      code: 'EADDRINUSE',
      message: /cannot listen for HTTP on 127\.0\.0\.1:\d+ \(--bind\): .*in use/
    })
    const blocker = createServer().listen(0, '127.0.0.1')
    t.after(() => blocker.close())
    await new Promise(resolve => blocker.once('listening', resolve))
    const address = blocker.address()
    assert(typeof address === 'object' && address !== null)
    const third = await createHttpGateway({ ...options, settings: { ...settings, bind: `127.0.0.1:${address.port}` } })
    await assert.rejects(third.listen(), { code: 'EADDRINUSE' })
    await Promise.all([second.stop(0), third.stop(0)])
  })

  test('stopping answers what is in progress, refuses newcomers, then lets go of everything', async t => {
    const { broker, gateway, port, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const idle = new RawConnection(t, port)
    idle.socket.write('GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n')
    await waitFor(() => idle.received.includes('topics_count'), 'an idle connection')
    broker.holdsAnswers = true
    const answer = send('POST', '/topics/t/produce', one)
    await waitFor(() => broker.heldAnswerCount === 1, 'the produce to be submitted')
    const stopped = gateway.stop(10_000)
    await assert.rejects(send('GET', '/healthz'), { code: 'ECONNREFUSED' })
    broker.flush()
    assert.equal((await answer).status, 200)
    await stopped
    await waitFor(() => idle.isClosed, 'the idle connection to be closed')
  })

  test('stopping does not wait past its deadline', async t => {
    const { broker, gateway, send, requestBudget } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.areRingsFull = true
    const answer = send('POST', '/topics/t/produce', one)
    const outcome = assert.rejects(answer, { code: /ECONNRESET|EPIPE/ })
    await waitFor(() => requestBudget.usedBytes > 0, 'the produce to wait')
    await gateway.stop(20)
    await outcome
    await waitFor(() => requestBudget.usedBytes === 0, 'its memory to be given back')
  })
}

/** Registers all claims for one engine. */
export function describeEngine(engine: EngineName): void {
  describe(`topics over ${engine}`, () => topicCases(engine))
  describe(`produce over ${engine}`, () => produceCases(engine))
  describe(`consume over ${engine}`, () => consumeCases(engine))
  describe(`reads that wait, over ${engine}`, () => waitCases(engine))
  describe(`forms of consume over ${engine}`, () => consumeFormCases(engine))
  describe(`streams over ${engine}`, () => streamCases(engine))
  describe(`streams that are refused over ${engine}`, () => refusedStreamCases(engine))
  describe(`offsets over ${engine}`, () => offsetCases(engine))
  describe(`keys over ${engine}`, () => accessCases(engine))
  describe(`metrics over ${engine}`, () => metricsCases(engine))
  describe(`what is no request, over ${engine}`, () => framingCases(engine))
  describe(`refusals over ${engine}`, () => refusalCases(engine))
  describe(`back-pressure over ${engine}`, () => pressureCases(engine))
  describe(`clients that do not read, and large bodies, over ${engine}`, () => readerCases(engine))
  describe(`life of ${engine}`, () => lifeCases(engine))
}
