/** An answer without a known end on node:http, over a real socket whose client reads or does not. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { systemClock } from '../../../../../src/base/clock.ts'
import { NodeOpenAnswer } from '../../../../../src/gateway/http/engines/node-open-answer.ts'
import { RawConnection, waitFor } from '../http-harness.ts'

interface Opened {
  readonly raw: RawConnection
  readonly response: ServerResponse
  readonly answer: NodeOpenAnswer
  /** How often all was taken after a push that was not. */
  drained: number
}

async function open(t: TestContext): Promise<Opened> {
  const server = createServer()
  t.after(() => void server.close())
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const raw = new RawConnection(t, (server.address() as AddressInfo).port)
  raw.socket.write('GET / HTTP/1.1\r\nHost: localhost\r\n\r\n')
  const [, response] = (await once(server, 'request')) as [unknown, ServerResponse]
  const onDrained = (): void => void opened.drained++
  const opened = { raw, response, answer: new NodeOpenAnswer(response, { clock: systemClock, onDrained }), drained: 0 }
  return opened
}

test('a large push is taken at once where the system has room for it', async t => {
  const { raw, answer } = await open(t)
  // What a connection buffers at first is more than that.
  assert.equal(answer.push(Buffer.alloc(100_000, 'a')), true)
  await waitFor(() => raw.received.split('a').length > 100_000, 'all of it')
})

test('what is kept for a client that does not read is one push, however small', async t => {
  const opened = await open(t)
  const { raw, response, answer } = opened
  raw.socket.pause()
  const piece = Buffer.alloc(1000, '#')
  let pushed = 1
  await waitFor(() => {
    for (let i = 0; i < 1000; i++, pushed++) if (!answer.push(piece)) return true
    return false
  }, 'the socket to take no more')
  assert.ok(answer.pace.isBlocked)
  assert.ok((response.socket?.writableLength ?? 0) < 1100, `${response.socket?.writableLength} bytes`)
  assert.equal(opened.drained, 0)
  raw.socket.resume()
  await waitFor(() => opened.drained === 1, 'it to be taken')
  assert.deepEqual([answer.pace.isBlocked, answer.push(Buffer.from('b'))], [false, true])
  await waitFor(() => raw.received.includes('b\r\n'), 'the end')
  assert.equal(raw.received.split('#').length - 1, pushed * 1000)
})
