/**
 * Requests of which it is not certain where they end, or for whom they are, and bytes that are no HTTP: nothing of them is
 * carried out, and their connection is closed. Exactly what leaves then, on either engine.
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { EngineName } from './http-harness.ts'

const body = '{"name":"t"}'
const post = (headers: string, sent = body): string =>
  `POST /topics HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n${headers}\r\n${sent}`
const chunks = `c\r\n${body}\r\n0\r\n\r\n`

/** By whom it is refused on uWebSockets.js: by its parser with that page, or by the broker with that field. */
const pages = {
  400: 'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n<h1>Bad Request</h1><hr><i>uWebSockets/20 Server</i>',
  431: 'HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\n\r\n<h1>Request Header Fields Too Large</h1><hr><i>uWebSockets/20 Server</i>',
  505: 'HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\n\r\n<h1>HTTP Version Not Supported</h1><p>This server does not support HTTP/1.0.</p><hr><i>uWebSockets/20 Server</i>'
} as const

interface Malformed {
  readonly name: string
  readonly bytes: string
  readonly uws: keyof typeof pages | string
  /** A status of the parser, or the field that the broker names. */
  readonly node: 400 | 431 | string
}

const length = `Content-Length: ${body.length}\r\n`
const malformed: readonly Malformed[] = [
  { name: 'no HTTP at all', bytes: 'NOT A REQUEST\r\n\r\n', uws: 505, node: 400 },
  { name: 'a TLS hello', bytes: '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n', uws: 505, node: 400 },
  { name: 'a header without a colon', bytes: 'GET / HTTP/1.1\r\nHost: a\r\nno header\r\n\r\n', uws: 400, node: 400 },
  { name: 'a folded header', bytes: 'GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n', uws: 400, node: 400 },
  {
    name: 'headers over the limit',
    bytes: `GET / HTTP/1.1\r\nHost: a\r\nx: ${'a'.repeat(20_000)}\r\n\r\n`,
    uws: 431,
    node: 431
  },
  { name: 'a blank in the path', bytes: 'GET /topics/a b HTTP/1.1\r\nHost: localhost\r\n\r\n', uws: 505, node: 400 },
  { name: 'a tunnel', bytes: 'CONNECT a:80 HTTP/1.1\r\nHost: localhost\r\n\r\n', uws: 505, node: 400 },
  { name: 'two hosts', bytes: 'GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: b\r\n\r\n', uws: 400, node: 'host' },
  { name: 'the same length twice', bytes: post(length + length), uws: 'content-length', node: 400 },
  { name: 'two lengths', bytes: post(`${length}Content-Length: 3\r\n`), uws: 'content-length', node: 400 },
  { name: 'a list of lengths', bytes: post('Content-Length: 12, 12\r\n'), uws: 400, node: 400 },
  { name: 'an empty length', bytes: post('Content-Length: \r\n', ''), uws: 'content-length', node: 400 },
  { name: 'a negative length', bytes: post('Content-Length: -1\r\n'), uws: 400, node: 400 },
  { name: 'a length with a sign', bytes: post('Content-Length: +12\r\n'), uws: 400, node: 400 },
  { name: 'a length in words', bytes: post('Content-Length: abc\r\n'), uws: 400, node: 400 },
  { name: 'a length beyond 2^64', bytes: post('Content-Length: 99999999999999999999\r\n'), uws: 400, node: 400 },
  {
    name: 'a length and chunks',
    bytes: post(`${length}Transfer-Encoding: chunked\r\n`, chunks),
    uws: 400,
    node: 400
  },
  {
    name: 'chunks and a length',
    bytes: post(`Transfer-Encoding: chunked\r\n${length}`, chunks),
    uws: 400,
    node: 400
  },
  {
    name: 'another coding',
    bytes: post('Transfer-Encoding: gzip\r\n', chunks),
    uws: 'transfer-encoding',
    node: 'transfer-encoding'
  },
  {
    name: 'two codings',
    bytes: post('Transfer-Encoding: gzip, chunked\r\n', chunks),
    uws: 'transfer-encoding',
    node: 'transfer-encoding'
  },
  {
    name: 'a chunk whose size is no number',
    bytes: post('Transfer-Encoding: chunked\r\n', 'zz\r\n'),
    uws: 400,
    node: 400
  }
]

/** Exactly what the engine answers, but for an id and a reason in words. */
function expected(verdict: Malformed['uws'], engine: EngineName): RegExp {
  const isPage = typeof verdict !== 'string'
  if (isPage && engine === 'uws') return new RegExp(`^${escaped(pages[verdict])}$`)
  const text = isPage ? `malformed request \\(${verdict}\\): [^"]+` : `${verdict}: [^"]+`
  const code = isPage ? 'FRAME_INVALID' : 'FIELD_INVALID'
  const json = `\\{"error":"${text}","code":"${code}","retry":"never","written":"no","request_id":"[0-9a-f]{8}"\\}`
  return new RegExp(`^HTTP/1\\.1 ${isPage ? verdict : 400} [^\\r]+\\r\\n(?:[A-Za-z-]+: [^\\r]*\\r\\n)+\\r\\n${json}$`)
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
}

/** Claims about what is no request. */
export function framingCases(engine: EngineName): void {
  for (const { name, bytes, ...verdicts } of malformed) {
    test(`${name}: refused, nothing of it is carried out, and the connection is closed`, async t => {
      const { port, send } = await startGateway(t, engine)
      const raw = new RawConnection(t, port)
      raw.socket.write(Buffer.from(bytes, 'latin1'))
      await waitFor(() => raw.isClosed, 'the connection to close')
      assert.match(raw.received, expected(verdicts[engine], engine))
      if (typeof verdicts[engine] === 'string' || engine === 'node') assert.match(raw.received, /connection: close/i)
      assert.equal((await send('GET', '/topics')).text, '{"topics":[]}')
    })
  }

  test('an expectation that nobody knows is passed over', async t => {
    const { send } = await startGateway(t, engine)
    assert.equal((await send('POST', '/topics', body, { expect: 'wonders' })).status, 201)
  })
}
