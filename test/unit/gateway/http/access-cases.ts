/** Keys on HTTP, alike on both engines: which headers name one, what is asked before what, and revocation amid a request. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { assertError, metrics, one, RawConnection, startGateway, waitFor } from './http-harness.ts'
import type { EngineName, Fixture } from './http-harness.ts'

/** A gateway that asks for keys, with a topic `t` and a key for it whose secret is `good`. */
async function startGuarded(t: TestContext, engine: EngineName): Promise<Fixture> {
  const fixture = await startGateway(t, engine, { settings: { auth: 'required' } })
  fixture.broker.keys.add('good', 't')
  await fixture.send('POST', '/topics', '{"name":"t"}', { 'x-es-key': 'good' })
  return fixture
}

export function accessCases(engine: EngineName): void {
  test('a key is named by either header, and Authorization wins where both are there', async t => {
    const { send } = await startGuarded(t, engine)
    const cases: readonly (readonly [Record<string, string>, number, RegExp?])[] = [
      [{}, 401, /send 'Authorization: Bearer <secret>' or 'X-Es-Key: <secret>'$/],
      [{ authorization: 'Bearer good' }, 200],
      [{ 'x-es-key': 'good' }, 200],
      [{ authorization: 'Bearer good', 'x-es-key': 'bad' }, 200],
      [{ authorization: 'Bearer bad', 'x-es-key': 'good' }, 401, /the secret is that of no key$/],
      [{ authorization: 'Basic good', 'x-es-key': 'good' }, 401, /not 'Bearer <secret>'$/],
      [{ authorization: 'bearer good' }, 401, /not 'Bearer <secret>'$/],
      [{ authorization: 'BEARER good', 'x-es-key': 'good' }, 401, /not 'Bearer <secret>'$/],
      [{ authorization: 'Bearer  good' }, 401, /of no key$/],
      [{ authorization: 'Bearer' }, 401, /not 'Bearer <secret>'$/],
      [{ authorization: 'Bearergood' }, 401, /not 'Bearer <secret>'$/],
      [{ authorization: 'good' }, 401, /not 'Bearer <secret>'$/],
      [{ authorization: '', 'x-es-key': 'good' }, 401, /not 'Bearer <secret>'$/],
      [{ 'x-es-key': 'Bearer good' }, 401, /of no key$/],
      [{ 'x-es-key': 'bad' }, 401, /of no key$/],
      [{ 'x-es-key': '' }, 401]
    ]
    for (const [headers, status, words = /./] of cases) {
      const answer = await send('GET', '/topics', undefined, headers)
      if (status === 200) assert.equal(answer.status, 200, JSON.stringify(headers))
      else {
        assertError(answer, 401, 'UNAUTHENTICATED', words)
        assert.equal(answer.headers['www-authenticate'], 'Bearer')
        // The id of a request is hexadecimal, and may say 'bad' by chance.
        const told = answer.text.replace(/"request_id":"[0-9a-f]+"/, '')
        assert.ok(!told.includes('good') && !told.includes('bad'), 'no secret is sent back')
      }
    }
  })

  test('health and the description of the API ask for none, and everything else does, what is not there too', async t => {
    const { send } = await startGuarded(t, engine)
    for (const path of ['/healthz', '/readyz', '/openapi.json']) {
      for (const method of ['GET', 'HEAD']) assert.equal((await send(method, path)).status, 200)
    }
    const places = [
      ['GET', '/nope'],
      ['POST', '/healthz'],
      ['PATCH', '/topics'],
      ['GET', '/topics/t/consume?partition=x']
    ] as const
    for (const [method, path] of places) {
      assertError(await send(method, path), 401, 'UNAUTHENTICATED', /./)
    }
    const key = { authorization: 'Bearer good' }
    assertError(await send('GET', '/nope', undefined, key), 404, 'ROUTE_NOT_FOUND', /./)
    assertError(await send('POST', '/healthz', undefined, key), 405, 'METHOD_NOT_ALLOWED', /./)
  })

  test('what is wrong with the broker is told to administrators; to others, that something is', async t => {
    const { send, broker } = await startGuarded(t, engine)
    broker.wrong.push("compaction leaves out 'secret'/0", 'a disk is full')
    Object.assign(broker.keys.add('boss', 't'), { isAdmin: true })
    const told = async (headers: Record<string, string>): Promise<string> =>
      (await send('GET', '/healthz', undefined, headers)).text
    const hidden = `"troubles":["2 of them: an administrator's key shows which"]`
    for (const headers of [{}, { authorization: 'Bearer good' }, { authorization: 'Bearer bad' }]) {
      assert.match(await told(headers), new RegExp(hidden.replaceAll('[', '\\[')))
    }
    assert.match(await told({ authorization: 'Bearer boss' }), /compaction leaves out 'secret'\/0","a disk is full"/)
  })

  test('the key is looked at before the body, and the body before the grant', async t => {
    const { send, broker } = await startGuarded(t, engine)
    const broken = '{"name":'
    assertError(await send('POST', '/admin/keys', broken), 401, 'UNAUTHENTICATED', /./)
    const key = { authorization: 'Bearer good' }
    assertError(await send('POST', '/admin/keys', broken, key), 400, 'BODY_NOT_JSON', /./)
    assertError(await send('POST', '/admin/keys', '{"name":"x"}', key), 400, 'FIELD_INVALID', /^acls: is missing/)
    assert.equal(broker.keys.created.length, 0)
  })

  test('a large body of nobody is not read', async t => {
    const { port, requestBudget } = await startGuarded(t, engine)
    const raw = new RawConnection(t, port)
    const head = 'POST /topics/t/produce HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\n'
    raw.socket.write(`${head}Content-Length: 99999999\r\n\r\n{"records":[`)
    await waitFor(() => raw.isClosed, 'the connection to close')
    assert.match(raw.received, /^HTTP\/1\.1 401 /)
    assert.equal(requestBudget.usedBytes, 0)
  })

  test('every host is served: the key is the guard', async t => {
    const { send } = await startGuarded(t, engine)
    const headers = { host: 'broker.example', authorization: 'Bearer good' }
    assert.equal((await send('GET', '/topics', undefined, headers)).status, 200)
  })

  test('a revoked key is told so', async t => {
    const { send, broker } = await startGuarded(t, engine)
    broker.keys.add('gone', 't').isRevoked = true
    const answer = await send('GET', '/topics', undefined, { authorization: 'Bearer gone' })
    assertError(answer, 401, 'KEY_REVOKED', /^key revoked$/)
    assert.equal(answer.headers['www-authenticate'], 'Bearer')
  })

  test('no record of a read leaves once its key is revoked, though it was asked for before', async t => {
    const { send, broker, gateway, replyBudget } = await startGuarded(t, engine)
    const key = broker.keys.add('soon', 't')
    const headers = { authorization: 'Bearer soon' }
    broker.cannedAnswer = { bytes: Buffer.alloc(1000), chunkBytes: 400 }
    broker.holdsAnswers = true
    const read = send('GET', '/topics/t/consume?partition=0&offset=0', undefined, headers)
    await waitFor(() => broker.heldAnswerCount === 1, 'the read to be in progress')
    key.isRevoked = true
    broker.flush()
    assertError(await read, 401, 'KEY_REVOKED', /^key revoked$/)
    assert.equal(gateway.probe.refusals.get('KEY_REVOKED'), 1, 'one refusal, of however many pieces the answer has')
    await waitFor(() => replyBudget.usedBytes === 0, 'the reply bytes to be given back')
  })

  test('what waits for room in the rings is refused when it is tried again', async t => {
    const { send, broker, requestBudget, replyBudget } = await startGuarded(t, engine)
    const key = broker.keys.add('soon', 't')
    const headers = { authorization: 'Bearer soon' }
    broker.areRingsFull = true
    const waiting = [
      send('POST', '/topics/t/produce', one, headers),
      send('GET', '/topics/t/consume?partition=0&offset=0', undefined, headers)
    ]
    await waitFor(() => broker.roomWaiterCount === 2, 'both to wait')
    key.isRevoked = true
    broker.makeRoom()
    for (const answer of await Promise.all(waiting)) assertError(answer, 401, 'KEY_REVOKED', /^key revoked$/)
    assert.deepEqual(broker.recordsOf('t', 0), [])
    await waitFor(() => requestBudget.usedBytes + replyBudget.usedBytes === 0, 'all bytes to be given back')
  })

  test('an answer that has begun when its key is revoked is cut off', async t => {
    const { port, broker, replyBudget } = await startGuarded(t, engine)
    const key = broker.keys.add('soon', 't')
    broker.cannedAnswer = { bytes: Buffer.alloc(4 * 1024 * 1024, 0x20), chunkBytes: 1024 * 1024 }
    broker.onChunk = () => (key.isRevoked = true)
    const raw = new RawConnection(t, port)
    const path = '/topics/t/consume?partition=0&offset=0'
    raw.socket.write(`GET ${path} HTTP/1.1\r\nHost: h\r\nX-Es-Key: soon\r\n\r\n`)
    await waitFor(() => raw.isClosed, 'the connection to close')
    assert.ok(raw.received.length < 2 * 1024 * 1024, `${raw.received.length} bytes came`)
    await waitFor(() => replyBudget.usedBytes === 0, 'the reply bytes to be given back')
  })

  test('what was looked up for a key that is revoked meanwhile is not told', async t => {
    const { send, broker } = await startGuarded(t, engine)
    const key = broker.keys.add('soon', 't')
    const { promise, resolve } = Promise.withResolvers<void>()
    broker.beforeDescribe = () => promise
    const answer = send('GET', '/topics/t', undefined, { authorization: 'Bearer soon' })
    await waitFor(() => broker.beforeDescribe === null, 'the question to be asked')
    key.isRevoked = true
    resolve()
    assertError(await answer, 401, 'KEY_REVOKED', /^key revoked$/)
  })

  test('a page of metrics is not told to a key that was revoked while it was made', async t => {
    const { promise, resolve } = Promise.withResolvers<readonly Buffer[]>()
    let isAsked = false
    const page = {
      contentType: metrics.contentType,
      scrape: () => {
        isAsked = true
        return promise
      }
    }
    const { send, broker } = await startGateway(t, engine, { settings: { auth: 'required' }, metrics: page })
    const key = broker.keys.add('soon', 't')
    const answer = send('GET', '/metrics', undefined, { authorization: 'Bearer soon' })
    await waitFor(() => isAsked, 'the page to be asked for')
    key.isRevoked = true
    resolve([Buffer.from('everything')])
    assertError(await answer, 401, 'KEY_REVOKED', /^key revoked$/)
  })

  test('while authentication is off, whatever is presented is ignored', async t => {
    const { send } = await startGateway(t, engine)
    for (const headers of [{ authorization: 'Basic x' }, { 'x-es-key': 'bad' }] as Record<string, string>[]) {
      assert.equal((await send('GET', '/topics', undefined, headers)).status, 200)
    }
  })

  test('a key is asked for, listed and revoked as the API says', async t => {
    const { send, broker } = await startGateway(t, engine)
    const body = { name: 'k', acls: [{ action: 'read', topic_prefix: '*' }], consume_bytes_per_sec: 0, more: 1 }
    const created = await send('POST', '/admin/keys', JSON.stringify(body))
    const key =
      '{"key_id":"key_000000000001","name":"k","acls":[{"action":"read","topic_prefix":"*"}],' +
      '"produce_bytes_per_sec":null,"consume_bytes_per_sec":0,"created_at_ms":1,"disabled":false}'
    assert.deepEqual([created.status, created.text], [201, `{"key":${key},"secret":"esk_x"}`])
    assert.deepEqual(broker.keys.created, [
      { name: 'k', rules: [{ action: 'read', topicPrefix: '*' }], produceBytesPerSec: null, consumeBytesPerSec: 0 }
    ])
    assert.equal((await send('GET', '/admin/keys')).text, '{"keys":[]}')
    assertError(await send('DELETE', '/admin/keys/key_1'), 404, 'KEY_NOT_FOUND', /'key_1'/)
  })

  test('ill-typed fields of a key are refused by their path', async t => {
    const { send, broker } = await startGateway(t, engine)
    const rules = (text: string): string => `{"name":"k","acls":${text}}`
    const cases: readonly (readonly [string, RegExp])[] = [
      ['[]', /^body: must be an object/],
      ['{"acls":[]}', /^name: is missing/],
      ['{"name":null,"acls":[]}', /^name: is missing/],
      ['{"name":7,"acls":[]}', /^name: must be a string/],
      ['{"name":"k"}', /^acls: is missing/],
      [rules('null'), /^acls: is missing/],
      [rules('{}'), /^acls: must be a list/],
      [rules('["read"]'), /^acls\[0\]: must be an object/],
      [rules('[{"action":"read","topic_prefix":"*"},{"topic_prefix":"*"}]'), /^acls\[1\]\.action: is missing/],
      [rules('[{"action":"own","topic_prefix":"*"}]'), /^acls\[0\]\.action: must be one of "read", "write", "admin"/],
      [rules('[{"action":"Read","topic_prefix":"*"}]'), /^acls\[0\]\.action: must be one of/],
      [rules('[{"action":"read"}]'), /^acls\[0\]\.topic_prefix: is missing/],
      [rules('[{"action":"read","topic_prefix":1}]'), /^acls\[0\]\.topic_prefix: must be a string/],
      ['{"name":"k","acls":[],"produce_bytes_per_sec":-1}', /^produce_bytes_per_sec: must be a whole number/],
      ['{"name":"k","acls":[],"produce_bytes_per_sec":1.5}', /^produce_bytes_per_sec: must be/],
      ['{"name":"k","acls":[],"consume_bytes_per_sec":4294967296}', /^consume_bytes_per_sec: must be/],
      ['{"name":"k","acls":[],"consume_bytes_per_sec":"1"}', /^consume_bytes_per_sec: must be/]
    ]
    for (const [body, words] of cases) assertError(await send('POST', '/admin/keys', body), 400, 'FIELD_INVALID', words)
    assert.equal(broker.keys.created.length, 0)
  })
}
