import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { asksForEvents, isMsgpack, mediaTypeOf, wantsMsgpack } from '../../../../src/gateway/http/accept.ts'

describe('the answer of a produce or consume', () => {
  it('is MessagePack only where the request names it', () => {
    const wanted: readonly (readonly [string, boolean])[] = [
      ['', false],
      ['*/*', false],
      ['application/*', false],
      ['application/json', false],
      ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', false],
      ['application/msgpack', true],
      ['Application/MsgPack', true],
      ['application/x-msgpack', true],
      ['application/vnd.msgpack', true],
      ['application/msgpack; charset=binary', true],
      ['text/html, application/msgpack;q=0.1', true],
      ['application/msgpack, application/json', true],
      ['application/json, application/msgpack', false],
      ['application/json;q=0, application/msgpack', true],
      ['application/msgpack;q=0', false],
      ['application/msgpack; q=0.000 , */*', false],
      ['application/msgpack;q=0.001', true],
      ['application/msgpackx', false],
      ['xapplication/msgpack', false],
      [',,;,application/msgpack', true]
    ]
    for (const [accept, expected] of wanted) assert.equal(wantsMsgpack(accept), expected, `Accept: ${accept}`)
  })

  it('is told from the type of the body, whose parameters and case do not count', () => {
    assert.equal(mediaTypeOf(' Application/JSON ; charset=utf-8'), 'application/json')
    assert.equal(mediaTypeOf(''), '')
    for (const type of ['application/msgpack', 'APPLICATION/X-MSGPACK; x=y', 'application/vnd.msgpack']) {
      assert.ok(isMsgpack(mediaTypeOf(type)), type)
    }
    assert.ok(!isMsgpack(mediaTypeOf('application/json')))
  })
})

describe('server-sent events', () => {
  it('are asked for only where the request names them', () => {
    const asked: readonly (readonly [string, boolean])[] = [
      ['', false],
      ['*/*', false],
      ['text/*', false],
      ['text/html, */*;q=0.8', false],
      ['text/event-stream', true],
      ['Text/Event-Stream; charset=utf-8', true],
      ['application/json, text/event-stream;q=0.1', true],
      ['text/event-stream;q=0', false],
      ['text/event-stream;q=0.0, */*', false],
      ['text/event-streams', false],
      ['xtext/event-stream', false]
    ]
    for (const [accept, expected] of asked) assert.equal(asksForEvents(accept), expected, `Accept: ${accept}`)
  })
})
