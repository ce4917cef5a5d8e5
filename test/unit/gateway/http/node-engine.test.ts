/** The gateway on node:http. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { describeEngine } from './engine-cases.ts'
import { RawConnection, startGateway, waitFor } from './http-harness.ts'

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
