/** The HTTP client: exact numbers, and errors told apart. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { HttpClient, HttpClientError, parseExact, writeExact } from '../../../../src/client/http/http-client.ts'
import { freePort, startFakeBroker } from '../../cli/terminal.ts'

async function failureOf(promise: Promise<unknown>): Promise<HttpClientError> {
  const error = await promise.then(
    () => null,
    (reason: unknown) => reason
  )
  assert.ok(error instanceof HttpClientError)
  return error
}

test('numbers that JSON would round arrive exactly, all others as numbers', () => {
  const text =
    '{"a":9007199254740993,"b":-9223372036854775808,"c":9007199254740991,"d":1.5,"e":"12345678901234567890","f":1e300}'
  assert.deepEqual(parseExact(text), {
    a: 9_007_199_254_740_993n,
    b: -9_223_372_036_854_775_808n,
    c: Number.MAX_SAFE_INTEGER,
    d: 1.5,
    e: '12345678901234567890',
    f: 1e300
  })
})

test('exact numbers leave digit for digit, and values are quoted', () => {
  assert.equal(
    writeExact({ name: 'a"b', list: [1], config: { max: 2n ** 64n - 1n, none: null } }),
    '{"name":"a\\"b","list":[1],"config":{"max":18446744073709551615,"none":null}}'
  )
})

test('a refusal carries the status and the text of the broker', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 409, body: '{"error":"topic exists"}' }))
  const error = await failureOf(new HttpClient({ broker: broker.url, timeoutMs: 5_000 }).createTopic('x', 1, {}))
  assert.deepEqual([error.kind, error.status, error.reason, error.method], ['refused', 409, 'topic exists', 'POST'])
})

test('a refusal says what its broker says about the log, and unknown if it says nothing', async t => {
  const cases = [
    ['{"error":"e","code":"DISK_FULL","written":"no"}', 'DISK_FULL', 'no'],
    ['{"error":"e","code":"SHARD_DIED","written":"unknown"}', 'SHARD_DIED', 'unknown'],
    ['{"error":"e","code":7,"written":"perhaps"}', null, 'unknown'],
    ['bad gateway', null, 'unknown']
  ] as const
  for (const [body, code, written] of cases) {
    const broker = await startFakeBroker(t, () => ({ status: 503, body }))
    const error = await failureOf(new HttpClient({ broker: broker.url, timeoutMs: 5_000 }).listTopics())
    assert.deepEqual([error.code, error.written, error.withReason('x').written], [code, written, written])
  }
})

test('a refusal that is no JSON still says something', async t => {
  const broker = await startFakeBroker(t, () => ({ status: 502, body: 'bad gateway' }))
  const error = await failureOf(new HttpClient({ broker: broker.url, timeoutMs: 5_000 }).listTopics())
  assert.deepEqual([error.kind, error.status, error.reason], ['refused', 502, 'bad gateway'])
})

test('a port where nobody listens is unreachable: nothing was sent', async () => {
  const broker = `http://127.0.0.1:${await freePort()}`
  const { kind, written } = await failureOf(new HttpClient({ broker, timeoutMs: 5_000 }).listTopics())
  assert.deepEqual([kind, written], ['unreachable', 'no'])
})

test('a broker that does not answer in time, or hangs up, is unanswered', async t => {
  const silent = createServer(() => undefined)
  await new Promise<void>(resolve => silent.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    silent.closeAllConnections()
    silent.close()
  })
  const address = silent.address()
  assert.ok(address !== null && typeof address === 'object')
  const late = await failureOf(
    new HttpClient({ broker: `http://127.0.0.1:${address.port}`, timeoutMs: 50 }).listTopics()
  )
  assert.deepEqual([late.kind, late.reason], ['unanswered', 'no answer within 50 ms'])
  const broker = await startFakeBroker(t, () => null)
  const lost = await failureOf(new HttpClient({ broker: broker.url, timeoutMs: 5_000 }).produce('x', [{ value: 'v' }]))
  assert.deepEqual([lost.kind, lost.written], ['unanswered', 'unknown'])
})

test('a port that browsers avoid is asked like any other', async () => {
  for (const broker of ['http://127.0.0.1:1', 'http://127.0.0.1:6667']) {
    const { kind, written, reason } = await failureOf(new HttpClient({ broker, timeoutMs: 5_000 }).listTopics())
    assert.deepEqual([kind, written], ['unreachable', 'no'])
    assert.match(reason, /ECONNREFUSED/)
  }
})

test('a connection that the broker closed between two requests costs neither of them, but a produce is not sent twice', async t => {
  const served = new WeakSet<Socket>()
  const asked: string[] = []
  const server = createServer((request, response) => {
    asked.push(request.method ?? '')
    if (served.has(request.socket)) return request.socket.destroy()
    served.add(request.socket)
    return response.end('{"topics":[]}')
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const client = new HttpClient({ broker: `http://127.0.0.1:${address.port}`, timeoutMs: 5_000 })
  await client.listTopics()
  await client.deleteTopic('x')
  assert.deepEqual(asked, ['GET', 'DELETE', 'DELETE'])
  await client.listTopics()
  const { kind, written } = await failureOf(client.produce('x', [{ value: 'v' }]))
  assert.deepEqual([kind, written, asked.slice(3)], ['unanswered', 'unknown', ['GET', 'POST']])
})

test('an answer that is cut, and one that never came, are told in words', async t => {
  const server = createServer((request, response) => {
    if (request.method === 'GET') return request.socket.destroy()
    response.writeHead(200, { 'content-length': 100 })
    return response.write('{', () => request.socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  const address = server.address()
  assert.ok(address !== null && typeof address === 'object')
  const client = new HttpClient({ broker: `http://127.0.0.1:${address.port}`, timeoutMs: 5_000 })
  const none = await failureOf(client.listTopics())
  assert.equal(none.reason, 'the other side closed the connection without an answer')
  const half = await failureOf(client.produce('x', [{ value: 'v' }]))
  assert.equal(half.reason, 'the connection broke')
  assert.deepEqual([none.kind, half.kind, half.written], ['unanswered', 'unanswered', 'unknown'])
})
