/** What both HTTP engines must do alike: topics, produce and consume. Run by uws-engine.test.ts and node-engine.test.ts. */
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { BrokerError } from '../../../../src/model/errors.ts'
import { readFormats } from '../../../../src/model/requests.ts'
import { assertError, one, RawConnection, sendHttp, startGateway, waitFor } from './http-harness.ts'
import type { EngineName } from './http-harness.ts'

/** Claims about the topic routes. */
export function topicCases(engine: EngineName): void {
  test('the first session of the specification is answered digit for digit', async t => {
    const { send } = await startGateway(t, engine)
    const created = await send('POST', '/topics', '{"name":"orders","partitions":2}')
    assert.deepEqual([created.status, created.text], [201, '{"name":"orders","partitions":2}'])
    const body = '{"records":[{"key":"user-1","value":"checkout"},{"key":"user-2","value":"signup"}]}'
    const produced = await send('POST', '/topics/orders/produce', body)
    assert.deepEqual(
      [produced.status, produced.text],
      [200, '{"results":[{"partition":0,"offset":0},{"partition":1,"offset":0}]}']
    )
    const read = await send('GET', '/topics/orders/consume?partition=0&offset=0')
    assert.deepEqual(read.json(), {
      records: [{ partition: 0, offset: 0, timestamp_ms: 1, key: 'user-1', value: 'checkout' }],
      next_offset: 1,
      high_watermark: 1
    })
  })

  test('topics are listed, described, configured and deleted', async t => {
    const { send } = await startGateway(t, engine)
    for (const name of ['b', 'a']) await send('POST', '/topics', `{"name":"${name}"}`)
    assert.equal((await send('GET', '/topics')).text, '{"topics":["a","b"]}')
    assert.deepEqual((await send('GET', '/topics/a')).json(), {
      name: 'a',
      partitions: [{ id: 0, start_offset: 0, end_offset: 0, segment_count: 1, size_bytes: 0 }],
      config: {
        retention_ms: null,
        retention_bytes: null,
        cleanup_policy: 'delete',
        segment_bytes: 67108864,
        tombstone_retention_ms: 86400000
      }
    })
    const gone = await send('DELETE', '/topics/a')
    assert.deepEqual([gone.status, gone.text], [200, '{"name":"a","partitions":1}'])
    assertError(await send('GET', '/topics/a'), 404, 'TOPIC_NOT_FOUND', /'a'/)
  })

  test('a number of 64 bits in a configuration is echoed digit for digit', async t => {
    const { send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t","config":{"retention_ms":18446744073709551615}}')
    const put = await send('PUT', '/topics/t/config', '{"retention_bytes":9007199254740993,"retention_ms":null}')
    assert.match(put.text, /^\{"retention_ms":18446744073709551615,"retention_bytes":9007199254740993,/)
    assert.equal((await send('GET', '/topics/t/config')).text, put.text)
    const cleared = await send('PUT', '/topics/t/config', '{"retention_ms":-1,"cleanup_policy":"compact,delete"}')
    assert.match(cleared.text, /"retention_ms":null,.*"cleanup_policy":"compact,delete"/)
  })

  test('ill-typed topic fields are refused by their path', async t => {
    const { send } = await startGateway(t, engine)
    const cases: [string, RegExp][] = [
      ['[]', /^body: must be an object/],
      ['{}', /^name: is missing/],
      ['{"name":5}', /^name: must be a string/],
      ['{"name":"x","partitions":"3"}', /^partitions: must be/],
      ['{"name":"x","partitions":2.0}', /^partitions: must be/],
      ['{"name":"x","partitions":-1}', /^partitions: must be/],
      ['{"name":"x","config":7}', /^config: must be an object/],
      [
        '{"name":"x","config":{"retention_ms":18446744073709551616}}',
        /^config\.retention_ms: must be a whole number from 0 /
      ],
      ['{"name":"x","config":{"segment_ms":"1"}}', /^config\.segment_ms: must be a whole number from 1 /],
      ['{"name":"x","config":{"max_message_bytes":-2}}', /^config\.max_message_bytes: must be a whole number from 1 /],
      ['{"name":"x","config":{"cleanup_policy":"shred"}}', /^config\.cleanup_policy: must be one of/]
    ]
    for (const [body, words] of cases) assertError(await send('POST', '/topics', body), 400, 'FIELD_INVALID', words)
    const big = await send('POST', '/topics', '{"name":"x","config":{"segment_bytes":18446744073709551615}}')
    assertError(big, 400, 'FIELD_RANGE', /18446744073709551615/)
    assert.equal((await send('GET', '/topics')).text, '{"topics":[]}')
  })

  test('malformed JSON is refused with the place of the fault', async t => {
    const { send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    for (const path of ['/topics', '/topics/t/produce', '/topics/nope/produce']) {
      assertError(await send('POST', path, '{"name":'), 400, 'BODY_NOT_JSON', /byte 8/)
      assertError(await send('POST', path, Buffer.from([0x22, 0xff, 0x22])), 400, 'BODY_NOT_JSON', /UTF-8/)
      assertError(await send('POST', path, ''), 400, 'BODY_NOT_JSON', /ends/)
    }
  })
}

/** Claims about produce. @param start how the gateway is started: with bodies scanned here or elsewhere. */
export function produceCases(engine: EngineName, start: typeof startGateway = startGateway): void {
  test('records keep key, value and order, whatever the size of the body', async t => {
    const { broker, send } = await start(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const records = Array.from({ length: 3000 }, (_, i) => ({
      key: i % 3 ? `k${i}` : null,
      value: `é"\n${'x'.repeat(i)}`
    }))
    const answer = await send('POST', '/topics/t/produce', JSON.stringify({ records }))
    assert.equal(answer.status, 200, answer.text.slice(0, 200))
    const stored = broker
      .recordsOf('t', 0)
      .map(({ key, value }) => ({ key: key && key.toString(), value: value.toString() }))
    assert.deepEqual(stored, records)
    assert.deepEqual(answer.json(), { results: records.map((_, offset) => ({ partition: 0, offset })) })
  })

  test('an answer of many results arrives whole', async t => {
    const { send } = await start(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const count = 60_000
    const answer = await send(
      'POST',
      '/topics/t/produce',
      `{"records":[${'{"value":""},'.repeat(count - 1)}{"value":""}]}`
    )
    assert.equal(
      answer.text,
      JSON.stringify({ results: Array.from({ length: count }, (_, offset) => ({ partition: 0, offset })) })
    )
  })

  test('a duplicate is marked, with an offset of 64 bits exact', async t => {
    const { broker, send } = await start(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    broker.duplicateAt = 2n ** 64n - 1n
    const answer = await send('POST', '/topics/t/produce', one)
    assert.equal(answer.text, '{"results":[{"partition":0,"offset":18446744073709551615,"duplicate":true}]}')
  })

  test('a produce is refused for its form before its topic is looked up', async t => {
    const { send } = await start(t, engine)
    const path = '/topics/nope/produce'
    assertError(
      await send('POST', path, '{"records":[{"value":null}]}'),
      400,
      'FIELD_INVALID',
      /^records\[0\]\.value: /
    )
    assertError(await send('POST', path, one, { 'content-type': 'text/plain' }), 415, 'MEDIA_TYPE', /text\/plain/)
    assertError(await send('POST', path, one), 404, 'TOPIC_NOT_FOUND', /nope/)
  })

  test('what the broker refuses is told with its code, and the broker counts what the body held', async t => {
    const { send } = await start(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const far = await send('POST', '/topics/t/produce', '{"records":[{"value":"v","partition":4294967295}]}')
    assertError(far, 400, 'PARTITION_RANGE', /4294967295/)
    const many = `{"records":[${'{"value":""},'.repeat(100_001)}{"value":""}]}`
    assertError(await send('POST', '/topics/t/produce', many), 400, 'RECORDS_TOO_MANY', /100002 records/)
    assert.equal((await send('POST', '/topics/t/produce', '{"records":[]}')).text, '{"results":[]}')
  })

  test('a body over the limit is refused, announced or not, and one at the limit is accepted', async t => {
    const { send, port } = await start(t, engine, { settings: { maxRequestBodyBytes: 1000 } })
    await send('POST', '/topics', '{"name":"t"}')
    const frame = '{"records":[{"value":""}]}'
    const sized = (bytes: number): string => `{"records":[{"value":"${'x'.repeat(bytes - frame.length)}"}]}`
    assert.equal((await send('POST', '/topics/t/produce', sized(1000))).status, 200)
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    t.after(() => agent.destroy())
    const over = { port, method: 'POST', path: '/topics/t/produce', body: sized(1001), agent }
    assertError(await sendHttp(over), 413, 'BODY_TOO_LARGE', /1000/)
    assert.equal((await sendHttp({ ...over, body: one })).status, 200, 'the connection goes on')
    const raw = new RawConnection(t, port)
    const piece = `320\r\n${'x'.repeat(0x320)}\r\n`
    raw.socket.write(
      `POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n${piece}${piece}`
    )
    await waitFor(() => raw.received.includes('BODY_TOO_LARGE'), 'a refusal while the body still comes')
    assert.match(raw.received, /^HTTP\/1\.1 413 /)
  })

  test('a body in small pieces, and a chunked one, is put together', async t => {
    const { broker, send, port } = await start(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const head =
      'POST /topics/t/produce HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json; charset=utf-8\r\n'
    const slow = new RawConnection(t, port)
    slow.socket.write(`${head}Content-Length: ${one.length}\r\n\r\n${one.slice(0, 9)}`)
    const chunked = new RawConnection(t, port)
    chunked.socket.write(`${head}Transfer-Encoding: chunked\r\n\r\n5\r\n${one.slice(0, 5)}\r\n`)
    await send('GET', '/healthz')
    slow.socket.write(one.slice(9))
    chunked.socket.write(`${(one.length - 5).toString(16)}\r\n${one.slice(5)}\r\n0\r\n\r\n`)
    await waitFor(() => slow.received.includes('results') && chunked.received.includes('results'), 'both answers')
    assert.equal(broker.recordsOf('t', 0).length, 2)
  })
}

/** Claims about consume. */
export function consumeCases(engine: EngineName): void {
  test('query parameters reach the broker exact and clamped', async t => {
    const { broker, send } = await startGateway(t, engine)
    await send('POST', '/topics', '{"name":"t"}')
    const far = await send('GET', '/topics/t/consume?partition=0&offset=18446744073709551615')
    assert.equal(far.text, '{"records":[],"next_offset":18446744073709551615,"high_watermark":0}')
    await send('GET', '/topics/t/consume?partition=0&offset=4294967297&max_records=0&max_bytes=0&encoding=base64&x=%zz')
    await send(
      'GET',
      '/topics/t/consume?%70artition=7&offset=0&max_records=99999999999999999&max_bytes=999999999&encoding=utf-8'
    )
    const shared = { topic: 't' }
    assert.deepEqual(broker.reads, [
      {
        ...shared,
        partition: 0,
        offsetHigh: 0xffffffff,
        offsetLow: 0xffffffff,
        maxRecords: 100,
        maxBytes: 1048576,
        format: readFormats.jsonUtf8
      },
      {
        ...shared,
        partition: 0,
        offsetHigh: 1,
        offsetLow: 1,
        maxRecords: 1,
        maxBytes: 1,
        format: readFormats.jsonBase64
      },
      {
        ...shared,
        partition: 7,
        offsetHigh: 0,
        offsetLow: 0,
        maxRecords: 10_000,
        maxBytes: 8388608,
        format: readFormats.jsonUtf8
      }
    ])
  })

  test('a bad query parameter is refused by its name', async t => {
    const { broker, send } = await startGateway(t, engine)
    const cases: [string, RegExp][] = [
      ['', /^partition: is missing/],
      ['partition=0', /^offset: is missing/],
      ['partition=0&offset=', /^offset: must be/],
      ['partition=0&offset=-1', /^offset: must be/],
      ['partition=0&offset=1e3', /^offset: must be/],
      ['partition=0&offset=18446744073709551616', /^offset: must be/],
      ['partition=4294967296&offset=0', /^partition: must be/],
      ['partition=0&offset=0&max_bytes=x', /^max_bytes: must be/],
      ['partition=0&offset=0&offset=1', /^offset: is given twice/],
      ['partition=%zz&offset=0', /percent escape/],
      ['encoding=latin1', /^encoding: must be/]
    ]
    for (const [query, words] of cases) {
      assertError(await send('GET', `/topics/t/consume?${query}`), 400, 'FIELD_INVALID', words)
    }
    assert.equal(broker.reads.length, 0)
  })

  test('a long answer arrives whole, also for a slow reader, and its reservation is given back', async t => {
    const { broker, send, port, replyBudget } = await startGateway(t, engine)
    const bytes = Buffer.alloc(24 * 1024 * 1024, 'abcdefghijklmnopqrstuvwxyz')
    broker.cannedAnswer = { bytes, chunkBytes: 256 * 1024 }
    const path = '/topics/t/consume?partition=0&offset=0'
    const answer = await send('GET', path)
    assert.equal(answer.headers['content-length'], String(bytes.length))
    assert(answer.text === bytes.toString(), 'the bytes are those of the broker, in order')
    const slow = new RawConnection(t, port)
    slow.socket.pause()
    slow.socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
    await waitFor(() => broker.reads.length === 2 && broker.heldAnswerCount === 0, 'the answer to be given')
    assert(replyBudget.usedBytes > 0, 'held while the reader does not read')
    slow.socket.resume()
    await waitFor(() => slow.received.length > bytes.length, 'the whole answer')
    assert(slow.received.endsWith(`\r\n\r\n${bytes.toString()}`), 'the bytes are those of the broker, in order')
    await waitFor(() => replyBudget.usedBytes === 0, 'the reservation to be given back')
  })

  test('HEAD is answered like GET, without the body', async t => {
    const { broker, send, port } = await startGateway(t, engine)
    broker.cannedAnswer = { bytes: Buffer.alloc(300_000, 'x'), chunkBytes: 100_000 }
    const head = await send('HEAD', '/topics/t/consume?partition=0&offset=0')
    assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, '300000', ''])
    const missing = await send('HEAD', '/nowhere')
    assert.deepEqual([missing.status, missing.text], [404, ''])
    const raw = new RawConnection(t, port)
    raw.socket.write(
      'HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n'
    )
    await waitFor(() => raw.received.includes('topics_count'), 'the answer after it')
    assert.equal(raw.received.match(/HTTP\/1\.1 200/g)?.length, 2)
    assert.equal(raw.received.match(/topics_count/g)?.length, 1)
  })

  test('an answer that breaks off cuts its connection and gives its reservation back', async t => {
    const { broker, send, replyBudget, log } = await startGateway(t, engine)
    broker.readFailure = new BrokerError('SHARD_DIED', { shard: 0 })
    const path = '/topics/t/consume?partition=0&offset=0'
    const whole = await send('GET', path)
    assertError(whole, 503, 'SHARD_DIED', /shard 0/)
    assert.equal(whole.headers['retry-after'], '1')
    broker.cannedAnswer = { bytes: Buffer.alloc(100_000), chunkBytes: 50_000 }
    await assert.rejects(send('GET', path))
    await waitFor(() => replyBudget.usedBytes === 0, 'the reservation to be given back')
    assert(log.some(line => line.level === 'warn'))
  })
}
