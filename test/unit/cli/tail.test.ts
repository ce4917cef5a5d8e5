/** Following a topic: events out of pieces, and a stream that goes on over connections that break. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpClientError } from '../../../src/client/http/http-client.ts'
import { mayPass } from '../../../src/cli/failures.ts'
import { follow } from '../../../src/cli/tail/follow.ts'
import { EventParser, type ServerEvent } from '../../../src/cli/tail/server-events.ts'
import { run } from './terminal.ts'

const stream = { method: 'GET', url: 'http://broker/topics/x/stream' }

const page =
  'retry: 5\nid: 0,0\n\n: comment\nid: 1,0\ndata: a\n\nevent: skipped\nid: 1,7\ndata: b\ndata:c\n\nid: 2,7\ndata: half'

test('events are the same however the text is cut into pieces, and half a one is none', () => {
  for (const size of [1, 2, 3, 7, page.length]) {
    const parser = new EventParser('')
    const events: ServerEvent[] = []
    for (let at = 0; at < page.length; at += size) events.push(...parser.take(page.slice(at, at + size)))
    assert.deepEqual(events, [
      { type: 'message', data: 'a' },
      { type: 'skipped', data: 'b\nc' }
    ])
    assert.deepEqual([parser.lastId, parser.retryMs], ['1,7', 5])
  }
})

test('a pause that a broker asks for is bounded, since a timer beyond 2^31 ms fires at once', () => {
  const parser = new EventParser('')
  parser.take('retry: 2147483648\n\n')
  assert.equal(parser.retryMs, 600_000)
})

test('an event that does not end is given up instead of held for ever, in one line or in many', async () => {
  const piece = `data: ${'x'.repeat(1024 * 1024)}\n`
  async function* endless(text: string): AsyncGenerator<string> {
    for (let i = 0; i < 300; i++) yield await Promise.resolve(text)
    assert.fail('more is held than any event has')
  }
  for (const text of [piece, piece.slice(0, -1)]) {
    const { parts } = connections([], new AbortController().signal)
    const stream = follow({ ...parts, open: () => Promise.resolve(endless(text)) })
    await assert.rejects(async () => {
      for await (const events of stream) assert.deepEqual(events, [])
    }, /an event of the stream does not end: is this a Millrace broker\?/)
  }
  const parser = new EventParser('')
  parser.take('data: a\ndata: b')
  assert.equal(parser.heldLength, 9)
  parser.take('\n\n')
  assert.equal(parser.heldLength, 0)
})

/** Connections one after the other: the pieces of each; an error ends it, or is what comes instead of it. */
function connections(script: readonly (readonly (string | Error)[] | Error)[], signal: AbortSignal) {
  const ids: string[] = []
  const notices: string[] = []
  const left = [...script]
  async function* pieces(connection: readonly (string | Error)[]): AsyncGenerator<string> {
    for (const piece of connection) {
      if (piece instanceof Error) throw piece
      yield await Promise.resolve(piece)
    }
  }
  const open = (lastId: string): Promise<AsyncIterable<string>> => {
    ids.push(lastId)
    const next = left.shift()
    assert.ok(next !== undefined, 'asked more often than the test says')
    return next instanceof Error ? Promise.reject(next) : Promise.resolve(pieces(next))
  }
  const notify = (text: string): Promise<void> => Promise.resolve(void notices.push(text))
  return { parts: { stream, open, signal, notify }, ids, notices }
}

const cut = new HttpClientError(stream, 'unanswered', 0, 'aborted')

test('a stream goes on behind the last whole event, and tells of an outage once', async () => {
  const stop = new AbortController()
  const { parts, ids, notices } = connections(
    [
      ['retry: 1\nid: 4,0\n\n', cut],
      ['retry: 1\nid: 4,0\n\nid: 5,0\ndata: a\n\nid: 6,0\ndata: hal', cut],
      new HttpClientError(stream, 'unanswered', 0, 'connect ECONNREFUSED'),
      ['retry: 1\n\nevent: end\ndata: {"code":"NOT_READY","error":"starting"}\n\n'],
      ['retry: 1\nid: 5,0\n\nid: 6,0\ndata: b\n\n'],
      ['id: 7,0\ndata: c\n\n']
    ],
    stop.signal
  )
  const seen: string[] = []
  for await (const events of follow(parts)) {
    seen.push(...events.map(({ data }) => data))
    if (seen.includes('c')) stop.abort()
  }
  assert.deepEqual(seen, ['a', 'b', 'c'])
  assert.deepEqual(ids, ['', '4,0', '5,0', '5,0', '5,0', '6,0'])
  assert.deepEqual(
    notices.map(text => text.split(';')[0]),
    ['aborted', 'connected again', 'aborted', 'connected again', 'the other side closed the stream', 'connected again']
  )
})

test('what does not pass ends the stream, with the words of the broker', async () => {
  const gone = 'event: end\ndata: {"code":"TOPIC_NOT_FOUND","error":"no topic named \'x\'"}\n\n'
  const { parts } = connections([[`id: 1\ndata: last\n\n${gone}`]], new AbortController().signal)
  const seen: string[] = []
  const failure = await (async () => {
    for await (const events of follow(parts)) seen.push(...events.map(({ data }) => data))
  })().catch((error: unknown) => error)
  assert.ok(failure instanceof HttpClientError)
  assert.deepEqual([seen, failure.status, failure.reason], [['last'], 404, "no topic named 'x'"])
})

test('only failures that pass by themselves are waited out', () => {
  const refused = (status: number, code: string | null): HttpClientError =>
    new HttpClientError(stream, 'refused', status, 'x', { code, written: 'no' })
  const cases: readonly (readonly [HttpClientError, boolean])[] = [
    [cut, true],
    [new HttpClientError(stream, 'unreachable', 0, 'x'), true],
    [new HttpClientError(stream, 'untrusted', 0, 'x'), false],
    [new HttpClientError(stream, 'foreign', 200, 'x'), false],
    [refused(503, 'SHARD_DOWN'), true],
    [refused(429, 'RATE_LIMITED'), true],
    [refused(401, 'KEY_REVOKED'), false],
    [refused(404, 'TOPIC_NOT_FOUND'), false],
    [refused(502, null), true],
    [refused(404, null), false]
  ]
  for (const [error, expected] of cases) assert.equal(mayPass(error), expected, `${error.kind} ${error.code}`)
})

test('an offset of no partition is refused, and asks no broker', async () => {
  const { code, stderr } = await run(['tail', '--topic', 'x', '--from', '5'])
  assert.equal(code, 2)
  assert.match(stderr, /--from with an offset needs --partition/)
})
