/** What both HTTP engines must do alike about where a read begins and what form its answer has. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFormats } from '../../../../src/model/requests.ts'
import { assertError, startGateway } from './http-harness.ts'
import type { EngineName } from './http-harness.ts'

const path = '/topics/t/consume?partition=0'

/** Claims about the parameters of consume. */
export function consumeFormCases(engine: EngineName): void {
  test('MessagePack is answered to who accepts it, and to nobody else', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    for (const [accept, isPacked] of [
      ['application/msgpack', true],
      ['text/html, application/x-msgpack', true],
      ['application/json, application/msgpack', false],
      ['*/*', false]
    ] as const) {
      for (const route of [`${path}&offset=0`, '/groups/g/consume?topic=t&partition=0']) {
        const answer = await send('GET', route, undefined, { accept })
        assert.equal(answer.headers['content-type'], isPacked ? 'application/msgpack' : 'application/json', accept)
        const format = isPacked ? readFormats.msgpack : readFormats.jsonUtf8
        assert.equal(broker.reads.at(-1)?.format, format, accept)
      }
    }
    const refused = await send('GET', '/topics/nope', undefined, { accept: 'application/msgpack' })
    assertError(refused, 404, 'TOPIC_NOT_FOUND', /nope/)
  })

  test('an encoding is refused for MessagePack, where it has no meaning', async t => {
    const { broker, send } = await startGateway(t, engine)
    for (const encoding of ['utf8', 'base64', 'x']) {
      const answer = await send('GET', `${path}&offset=0&encoding=${encoding}`, undefined, {
        accept: 'application/msgpack'
      })
      assertError(answer, 400, 'FIELD_INVALID', /^encoding: has no meaning for application\/msgpack/)
    }
    assert.equal(broker.reads.length, 0)
  })

  test('a read begins at the first record, behind the last one, or at a time', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    await send('POST', '/topics/t/produce', '{"records":[{"value":"a"},{"value":"b"},{"value":"c"}]}')
    const cases = [
      ['offset=2', 2, undefined, []],
      ['offset=earliest', 0, true, []],
      ['offset=latest', 3, undefined, [null]],
      ['timestamp_ms=1', 0, undefined, [1n]],
      ['timestamp_ms=2', 3, undefined, [2n]],
      ['timestamp_ms=-9223372036854775808', 0, undefined, [-(2n ** 63n)]]
    ] as const
    for (const [query, offset, isFromStart, times] of cases) {
      broker.timesAsked.length = 0
      const answer = await send('GET', `${path}&${query}`)
      assert.equal(answer.status, 200, answer.text)
      const read = broker.reads.at(-1)
      assert.deepEqual([read?.offsetHigh, read?.offsetLow, read?.isFromStart], [0, offset, isFromStart], query)
      assert.deepEqual(broker.timesAsked, times, query)
    }
    assertError(await send('GET', '/topics/nope/consume?partition=0&timestamp_ms=0'), 404, 'TOPIC_NOT_FOUND', /nope/)
  })

  test('a group that has committed nothing begins at the first record', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    await send('GET', '/groups/g/consume?topic=t&partition=0')
    const [read] = broker.reads
    assert.deepEqual([read?.offsetHigh, read?.offsetLow, read?.isFromStart], [0, 0, true])
  })

  test('a beginning that is none, or two, is refused by its name', async t => {
    const { broker, send } = await startGateway(t, engine)
    const cases = [
      ['', 'FIELD_INVALID', /^offset: is missing/],
      ['offset=first', 'FIELD_INVALID', /^offset: must be earliest, latest, or a whole number/],
      ['offset=EARLIEST', 'FIELD_INVALID', /^offset: must be earliest/],
      ['offset=1latest', 'FIELD_INVALID', /^offset: must be a whole number/],
      ['offset=0&timestamp_ms=0', 'FIELD_INVALID', /^timestamp_ms: must not come with offset/],
      ['offset=latest&timestamp_ms=0', 'FIELD_INVALID', /^timestamp_ms: must not come with offset/],
      ['timestamp_ms=noon', 'FIELD_INVALID', /^timestamp_ms: 'noon' is not/],
      ['timestamp_ms=18446744073709551616', 'FIELD_RANGE', /^timestamp_ms is 18446744073709551616/],
      ['timestamp_ms=0&encoding=x', 'FIELD_INVALID', /^encoding: must be/]
    ] as const
    for (const [query, code, words] of cases) assertError(await send('GET', `${path}&${query}`), 400, code, words)
    assert.deepEqual([broker.reads.length, broker.timesAsked.length], [0, 0])
  })
}
