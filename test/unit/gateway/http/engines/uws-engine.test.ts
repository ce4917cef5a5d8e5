/** The gateway on uWebSockets.js. Where the library must load, its absence fails here; elsewhere the claims are skipped. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadUws } from '../../../../../src/gateway/http/engines/uws-loader.ts'
import { describeEngine } from '../engine-cases.ts'
import { mustLoadUws } from '../glibc.ts'
import { RawConnection, startGateway, waitFor } from '../http-harness.ts'

const load = loadUws()
const isThere = load.uws !== null

test('uWebSockets.js loads on this system', { skip: !mustLoadUws() && !isThere }, () => {
  assert(load.uws !== null, 'reason' in load ? load.reason : '')
})

if (isThere) {
  describeEngine('uws')

  // Known of the library: see the header of uws-engine.ts. The claim pins it, so that the documentation stays true.
  test('a request sent behind one that is not answered yet closes the connection, and writes no second answer', async t => {
    const { broker, port, send } = await startGateway(t, 'uws')
    await send('POST', '/topics', '{"name":"t"}')
    broker.holdsAnswers = true
    const raw = new RawConnection(t, port)
    const one = '{"records":[{"value":"v"}]}'
    raw.socket.write(
      `POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: ${one.length}\r\n\r\n${one}` +
        'GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
    )
    await waitFor(() => raw.isClosed, 'the connection to close')
    broker.flush()
    assert.equal(raw.received, '')
    assert.equal((await send('GET', '/healthz')).status, 200, 'the broker serves on')
  })

  test('headers of up to sixteen KiB are served', async t => {
    const { send } = await startGateway(t, 'uws')
    assert.equal((await send('GET', '/healthz', undefined, { 'x-long': 'a'.repeat(14_000) })).status, 200)
  })
}
