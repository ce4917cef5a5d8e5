/** The gateway on node:http. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Clock } from '../../../../../src/base/clock.ts'
import { BrokerError } from '../../../../../src/model/errors.ts'
import { describeEngine } from '../engine-cases.ts'
import { RawConnection, startGateway, waitFor } from '../http-harness.ts'

describeEngine('node')

test('requests sent without waiting are answered in their order on node:http', async t => {
  const { port } = await startGateway(t, 'node')
  const raw = new RawConnection(t, port)
  const body = '{"name":"t"}'
  raw.socket.write(
    `POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}` +
      'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
  )
  await waitFor(() => raw.received.includes('topics_count'), 'both answers')
  assert.match(raw.received, /^HTTP\/1\.1 201 [\s\S]*HTTP\/1\.1 200 /)
})

test('an answer that waits behind an unfinished one is not taken for one that nobody reads, on node:http', async t => {
  let nowMs = 0
  const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs }
  const { broker, port, replyBudget } = await startGateway(t, 'node', { clock, timeouts: { writeMs: 100 } })
  const consume = 'GET /topics/t/consume?partition=0&offset=0 HTTP/1.1\r\nHost: localhost\r\n\r\n'
  broker.cannedAnswer = { bytes: Buffer.alloc(8 * 1024 * 1024, 'a'), chunkBytes: 256 * 1024 }
  const sleeper = new RawConnection(t, port)
  sleeper.socket.pause()
  sleeper.socket.write(consume)
  await waitFor(() => broker.reads.length === 1 && broker.heldAnswerCount === 0, 'an answer that nobody reads')
  broker.holdsAnswers = true
  const pipelining = new RawConnection(t, port)
  pipelining.socket.write(`${consume}GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  await waitFor(() => broker.heldAnswerCount === 1, 'the read in front')
  const before = replyBudget.usedBytes
  nowMs += 200
  await waitFor(() => replyBudget.usedBytes < before, 'the one that nobody reads to be cut off')
  broker.flush()
  await waitFor(() => pipelining.received.includes('topics_count') || pipelining.isClosed, 'both answers')
  pipelining.socket.write('GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n')
  await waitFor(() => pipelining.received.includes('"ready"') || pipelining.isClosed, 'one more answer')
  assert.equal(pipelining.isClosed, false)
})

test('reads that wait behind one another give their memory back when their client leaves, on node:http', async t => {
  const { broker, port, replyBudget } = await startGateway(t, 'node')
  const consume = 'GET /topics/t/consume?partition=0&offset=0 HTTP/1.1\r\nHost: localhost\r\n\r\n'
  broker.cannedAnswer = { bytes: Buffer.alloc(1000, 'a'), chunkBytes: 500 }
  broker.holdsAnswers = true
  const raw = new RawConnection(t, port)
  raw.socket.write(consume.repeat(3))
  await waitFor(() => broker.heldAnswerCount === 3, 'three reads')
  raw.socket.destroy()
  await waitFor(() => raw.isClosed, 'the client to be gone')
  broker.flush()
  await waitFor(() => replyBudget.usedBytes === 0, 'every reservation to be given back')
})

test('an answer that breaks off behind another one cuts the connection, on node:http', async t => {
  const { broker, port, replyBudget } = await startGateway(t, 'node')
  const consume = 'GET /topics/t/consume?partition=0&offset=0 HTTP/1.1\r\nHost: localhost\r\n\r\n'
  broker.holdsAnswers = true
  broker.cannedAnswer = { bytes: Buffer.alloc(1000, 'a'), chunkBytes: 500 }
  const raw = new RawConnection(t, port)
  raw.socket.write(consume)
  await waitFor(() => broker.heldAnswerCount === 1, 'the first read')
  broker.readFailure = new BrokerError('SHARD_DIED', { shard: 0 })
  raw.socket.write(consume)
  await waitFor(() => broker.heldAnswerCount === 2, 'the second read')
  broker.flush()
  await waitFor(() => raw.isClosed && replyBudget.usedBytes === 0, 'the connection to be cut')
})

test('headers over the limit are refused in JSON on node:http', async t => {
  const { port } = await startGateway(t, 'node')
  const raw = new RawConnection(t, port)
  raw.socket.write(`GET / HTTP/1.1\r\nHost: localhost\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`)
  await waitFor(() => raw.isClosed, 'the connection to close')
  assert.match(raw.received, /^HTTP\/1\.1 431 [\s\S]*\{"error":"/)
})

test('a request that is not HTTP is refused in JSON on node:http', async t => {
  const { port } = await startGateway(t, 'node')
  const raw = new RawConnection(t, port)
  raw.socket.write('NOT A REQUEST\r\n\r\n')
  await waitFor(() => raw.isClosed, 'the connection to close')
  assert.match(raw.received, /^HTTP\/1\.1 400 [\s\S]*\{"error":"/)
})

test('a malformed chunk behind a refusal leaves the refusal whole, and closes the connection, on node:http', async t => {
  const { port } = await startGateway(t, 'node')
  const raw = new RawConnection(t, port)
  raw.socket.write('POST /nope HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n')
  raw.socket.write('zz\r\n')
  await waitFor(() => raw.isClosed, 'the connection to close')
  assert.match(raw.received, /^HTTP\/1\.1 404 [\s\S]*"code":"ROUTE_NOT_FOUND"[^}]*\}$/)
})
