/** What is no request of the API: every refusal is JSON of one shape, on both engines (spec 1, D4, D14). */
import assert from 'node:assert/strict'
import { connect } from 'node:net'
import { request } from 'node:http'
import { assertRefused, onBothEngines, parse, type HttpApi } from '../support/http-api.ts'

onBothEngines('health', async (t, api) => {
  await t.test('healthz counts the topics', async () => {
    assert.equal((await api.get('/healthz')).text, '{"status":"ok","topics_count":0}')
    await api.createTopic('one')
    assert.equal((await api.get('/healthz')).text, '{"status":"ok","topics_count":1}')
  })
  await t.test('readyz says that traffic is accepted', async () => {
    const answer = await api.get('/readyz')
    assert.deepEqual([answer.status, answer.text], [200, '{"status":"ready","message":"accepting traffic"}'])
  })
  await t.test('HEAD answers as GET does, without the body', async () => {
    const [head, get] = await Promise.all([api.call('HEAD', '/topics/one'), api.get('/topics/one')])
    assert.deepEqual([head.status, head.text, head.headers.get('content-type')], [200, '', 'application/json'])
    assert.equal(head.headers.get('content-length'), String(get.text.length))
  })
  await t.test('no CORS header is sent', async () => {
    const answer = await api.call('GET', '/topics', undefined, { origin: 'https://app.example' })
    assert.equal(answer.headers.get('access-control-allow-origin'), null)
  })
})

onBothEngines('what is no request of the API is refused in JSON', async (t, api, broker) => {
  await api.createTopic('there')
  for (const path of [
    '/',
    '/nowhere',
    '/topics/',
    '/topics/there/produce/more',
    '/topic',
    '/Topics',
    '//topics',
    '/topics/there/consume/'
  ]) {
    await t.test(`no route ${path}`, async () => {
      assertRefused(await api.get(path), 404, 'ROUTE_NOT_FOUND', ['GET', path, '/openapi.json'])
    })
  }
  const wrongMethods: readonly (readonly [string, string, string])[] = [
    ['DELETE', '/topics', 'GET, HEAD, POST'],
    ['PATCH', '/topics/there', 'DELETE, GET, HEAD'],
    ['POST', '/topics/there/config', 'GET, HEAD, PUT'],
    ['GET', '/topics/there/produce', 'POST'],
    ['POST', '/topics/there/consume', 'GET, HEAD'],
    ['PUT', '/healthz', 'GET, HEAD'],
    ['OPTIONS', '/topics', 'GET, HEAD, POST']
  ]
  for (const [method, path, allow] of wrongMethods) {
    await t.test(`${method} ${path} is not allowed, and Allow says what is`, async () => {
      const answer = await api.call(method, path)
      assertRefused(answer, 405, 'METHOD_NOT_ALLOWED', [method, path, allow])
      assert.equal(answer.headers.get('allow'), allow)
    })
  }
  for (const type of [
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/jsonx',
    'multipart/form-data; boundary=x'
  ]) {
    await t.test(`a body of type ${type} is refused`, async () => {
      for (const [method, path] of [
        ['POST', '/topics'],
        ['PUT', '/topics/there/config'],
        ['POST', '/topics/there/produce']
      ] as const) {
        assertRefused(await api.call(method, path, '{}', { 'content-type': type }), 415, 'MEDIA_TYPE', [
          type,
          'application/json'
        ])
      }
    })
  }
  await t.test('a body with parameters behind its type is taken', async () => {
    const answer = await api.call('POST', '/topics', '{"name":"params"}', {
      'content-type': 'Application/JSON; charset=utf-8'
    })
    assert.equal(answer.status, 201)
  })
  const malformed = [
    '',
    '{',
    '{"name":}',
    '{"name":"x",}',
    "{'name':'x'}",
    '{"name":"x"} {}',
    'nul',
    '{"name":"\u0001"}',
    '\ufeff{"name":"bom"}'
  ]
  for (const body of malformed) {
    await t.test(`malformed JSON: ${JSON.stringify(body)}`, async () => {
      for (const [method, path] of [
        ['POST', '/topics'],
        ['PUT', '/topics/there/config'],
        ['POST', '/topics/there/produce']
      ] as const) {
        assertRefused(await api.call(method, path, Buffer.from(body)), 400, 'BODY_NOT_JSON')
      }
    })
  }
  await t.test('JSON that is not UTF-8', async () => {
    const body = Buffer.from([...Buffer.from('{"name":"x'), 0xff, ...Buffer.from('"}')])
    assertRefused(await api.call('POST', '/topics', body), 400, 'BODY_NOT_JSON')
    const records = Buffer.from([...Buffer.from('{"records":[{"value":"'), 0xc3, 0x28, ...Buffer.from('"}]}')])
    assertRefused(await api.call('POST', '/topics/there/produce', records), 400, 'BODY_NOT_JSON')
  })
  await t.test('nesting without end', async () => {
    assertRefused(await api.call('POST', '/topics', '['.repeat(50_000)), 400, 'BODY_NOT_JSON')
    assertRefused(await api.call('POST', '/topics/there/produce', `{"x":${'['.repeat(100_000)}`), 400, 'BODY_NOT_JSON')
  })
  await t.test('a broken escape in a path', async () => {
    assertRefused(await api.get('/topics/%zz'), 400, 'FIELD_INVALID', ['path'])
  })
  await t.test('an escaped name is the name', async () => {
    assert.equal((await api.get('/topics/%74here')).status, 200)
    assertRefused(await api.get('/topics/..%2F..%2Fetc'), 404, 'TOPIC_NOT_FOUND', ['../../etc'])
  })
  await t.test('a body that says it is too large is refused before it is sent', async () => {
    assertRefused(await announce(api, 10 * 1024 * 1024 + 1), 413, 'BODY_TOO_LARGE', [10 * 1024 * 1024])
  })
  await t.test('bytes that are no HTTP', async () => {
    const { status, body } = await rawRequest(api, 'GET /healthz HTTP/1.1\r\nno header at all\r\n\r\n')
    // uWebSockets.js refuses by itself, with a page of its own (known, documented).
    if (broker.server.engine === 'node') assert.ok(body.includes('"code":"FRAME_INVALID"'), body)
    assert.equal(status, 400)
  })
  await t.test('and after all of that the broker serves', async () => {
    assert.deepEqual(await api.produce('there', [{ value: 'v' }]), [{ partition: 0, offset: 0 }])
    assert.deepEqual(parse<unknown>(await api.get('/topics')), { topics: ['params', 'there'] })
  })
})

onBothEngines(
  'a foreign host is not served while everyone is an administrator',
  async (t, api) => {
    const port = new URL(api.url).port
    for (const host of ['evil.example', '127.evil.example', '10.0.0.1', 'localhost.evil.example', '0x7f.1', '[::2]']) {
      await t.test(`${host} is refused on every route`, async () => {
        for (const path of ['/topics', '/healthz', '/nowhere']) {
          const { status, body } = await rawGet(api, path, `host: ${host}:${port}\r\n`)
          assert.equal(status, 403)
          assert.ok(body.includes('"code":"HOST_REFUSED"') && body.includes(host), body)
        }
      })
    }
    for (const host of [
      'localhost',
      'LOCALHOST',
      '127.0.0.1',
      '127.1.2.3',
      '[::1]',
      'broker.example',
      'Broker.Example'
    ]) {
      await t.test(`${host} is served`, async () => {
        for (const suffix of ['', `:${port}`]) {
          assert.equal((await rawGet(api, '/healthz', `host: ${host}${suffix}\r\n`)).status, 200)
        }
      })
    }
  },
  { flags: { '--allowed-host': ['broker.example'] } }
)

/** Announces a body and sends nothing of it. */
async function announce(api: HttpApi, bytes: number): Promise<{ status: number; text: string; headers: Headers }> {
  return await new Promise((resolve, reject) => {
    const headers = { 'content-type': 'application/json', 'content-length': bytes, expect: '100-continue' }
    const outgoing = request(`${api.url}/topics/there/produce`, { method: 'POST', headers }, response => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        outgoing.destroy()
        const answered = new Headers({ 'content-type': response.headers['content-type'] ?? '' })
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString(), headers: answered })
      })
    })
    outgoing.on('error', reject)
    outgoing.flushHeaders()
  })
}

/** A request with a Host header of the test's own, which fetch does not send. */
function rawGet(api: HttpApi, path: string, headers: string): Promise<{ status: number; body: string }> {
  return rawRequest(api, `GET ${path} HTTP/1.1\r\n${headers}connection: close\r\n\r\n`)
}

/** Sends these bytes, and takes what comes until the answer is whole or the connection ends. */
async function rawRequest(api: HttpApi, bytes: string): Promise<{ status: number; body: string }> {
  const { hostname, port } = new URL(api.url)
  return await new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname, () => socket.write(bytes))
    let text = ''
    const finish = (): void => {
      resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1] ?? 0), body: text.split('\r\n\r\n')[1] ?? '' })
      socket.destroy()
    }
    socket.setEncoding('utf8')
    socket.on('data', (chunk: string) => {
      text += chunk
      const [, length = ''] = /content-length: (\d+)/i.exec(text) ?? []
      const body = text.split('\r\n\r\n')[1]
      if (length !== '' && body !== undefined && body.length >= Number(length)) finish()
    })
    socket.on('error', reject)
    socket.on('close', finish)
  })
}
