/** The routes that look like Confluent's schema registry, of a real broker: shapes, codes, levels, and what is refused. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { limits } from '../../src/model/limits.ts'
import { makeTestKey, revokeKey, startGuarded } from '../support/access.ts'
import { assertConfluentRefused, CONFLUENT_TYPE } from '../support/confluent.ts'
import { assertRefused, HttpApi, onBothEngines, parse, type HttpAnswer } from '../support/http-api.ts'

/** @param required besides id. */
function objectOf(properties: readonly string[], required: readonly string[] = []): string {
  return JSON.stringify({
    type: 'object',
    properties: Object.fromEntries(properties.map(name => [name, { type: 'string' }])),
    required
  })
}

const one = objectOf(['id'])
const wider = objectOf(['id', 'name'])
const demanding = objectOf(['id', 'phone'], ['phone'])

const jsonOf = (schema: string, rest: object = {}): object => ({ schemaType: 'JSON', schema, ...rest })

function register(api: HttpApi, subject: string, schema: string): Promise<HttpAnswer> {
  return api.post(`/confluent/subjects/${subject}/versions`, jsonOf(schema))
}

async function registered(api: HttpApi, subject: string, schema: string): Promise<number> {
  const answer = await register(api, subject, schema)
  assert.match(answer.text, /^\{"id":\d+\}$/)
  return parse<{ id: number }>(answer).id
}

/** The body of a success, with its media type checked. */
async function shown(api: HttpApi, path: string): Promise<unknown> {
  const answer = await api.get(`/confluent${path}`)
  assert.equal(answer.headers.get('content-type'), CONFLUENT_TYPE)
  return parse<unknown>(answer)
}

onBothEngines('the registry for clients of Confluent', async (t, api) => {
  await t.test('gives the same text the same id, in any subject and on either face', async () => {
    assert.equal(await registered(api, 'a-value', one), 1)
    assert.equal(await registered(api, 'a-value', one), 1)
    assert.equal(await registered(api, 'b-value', one), 1)
    assert.equal(await registered(api, 'a-value', wider), 2)
    const native = parse<{ id: number }>(await api.post('/schemas', { subject: 'c-value', schema: one })).id
    assert.equal(native, 3, 'the native face gives a new id, as the seed does')
    assert.equal(await registered(api, 'd-value', one), 1, 'the first that the text got')
    assert.equal(await registered(api, 'c-value', one), 3, 'the version that the subject has')
    assert.deepEqual(await shown(api, '/subjects/a-value/versions'), [1, 2])
  })

  await t.test('shows subjects, versions and ids in the fields that its clients know', async () => {
    assert.deepEqual(await shown(api, '/subjects'), ['a-value', 'b-value', 'c-value', 'd-value'])
    const second = { subject: 'a-value', version: 2, id: 2, schemaType: 'JSON', schema: wider }
    for (const version of ['2', 'latest', '-1'])
      assert.deepEqual(await shown(api, `/subjects/a-value/versions/${version}`), second)
    assert.deepEqual(await shown(api, '/subjects/a-value/versions/1'), { ...second, version: 1, id: 1, schema: one })
    assert.deepEqual(await shown(api, '/schemas/ids/1'), { schemaType: 'JSON', schema: one })
    assert.deepEqual(await shown(api, '/schemas/ids/1/versions'), [
      { subject: 'a-value', version: 1 },
      { subject: 'b-value', version: 1 },
      { subject: 'd-value', version: 1 }
    ])
    assert.deepEqual(await shown(api, '/schemas/ids/1/subjects'), ['a-value', 'b-value', 'd-value'])
    assert.deepEqual(await shown(api, '/schemas/types'), ['AVRO', 'JSON', 'PROTOBUF'])
    assert.deepEqual(await shown(api, '/mode'), { mode: 'READWRITE' })
    for (const path of ['/schemas/ids/2/schema', '/subjects/a-value/versions/2/schema'])
      assert.equal((await api.get(`/confluent${path}`)).text, wider, 'the text as it was sent')
  })

  await t.test('looks a text up', async () => {
    const found = await api.post('/confluent/subjects/a-value', jsonOf(one))
    assert.equal(found.headers.get('content-type'), CONFLUENT_TYPE)
    const expected = { subject: 'a-value', version: 1, id: 1, schemaType: 'JSON', schema: one }
    assert.deepEqual(parse<unknown>(found), expected)
    assertConfluentRefused(await api.post('/confluent/subjects/a-value', jsonOf(demanding)), 404, 40403, ['a-value'])
    assertConfluentRefused(await api.post('/confluent/subjects/a-value', { schema: one }), 404, 40403)
    assertConfluentRefused(await api.post('/confluent/subjects/none', jsonOf(one)), 404, 40401, ['none'])
  })

  await t.test('refuses what does not suit with 409, and says so beforehand to who asks', async () => {
    const compared = '/confluent/compatibility/subjects/a-value/versions'
    for (const path of [compared, `${compared}/latest`, `${compared}/2`, `${compared}/-1`]) {
      const no = await api.post(`${path}?verbose=true`, jsonOf(demanding))
      assert.equal(no.headers.get('content-type'), CONFLUENT_TYPE)
      const { is_compatible: isCompatible, messages } = parse<{ is_compatible: boolean; messages: string[] }>(no)
      assert.ok(!isCompatible)
      assert.match(messages.join(), /'phone'.*'name'/)
      assert.equal((await api.post(path, jsonOf(demanding))).text, '{"is_compatible":false}')
      const yes = await api.post(`${path}?verbose=true`, jsonOf(objectOf(['id', 'name', 'more'])))
      assert.equal(yes.text, '{"is_compatible":true,"messages":[]}')
    }
    assertConfluentRefused(await register(api, 'a-value', demanding), 409, 409, ['backward-incompatible', 'phone'])
    assert.deepEqual(await shown(api, '/subjects/a-value/versions'), [1, 2])
    const first = '/confluent/compatibility/subjects/new/versions'
    for (const path of [first, `${first}/latest`])
      assert.equal((await api.post(path, jsonOf(one))).text, '{"is_compatible":true}', 'the first may be anything')
    assertConfluentRefused(await api.post(`${first}/1`, jsonOf(one)), 404, 40401)
    assertConfluentRefused(await api.post(`${compared}/3`, jsonOf(one)), 404, 40402, ['3'])
    assertConfluentRefused(await api.post(`${first}/latest`, jsonOf('{')), 422, 42201)
  })

  await t.test('has compatibility levels, which are the modes of the other face', async () => {
    const put = (path: string, level: string): Promise<HttpAnswer> =>
      api.call('PUT', `/confluent/config${path}`, JSON.stringify({ compatibility: level }))
    assert.deepEqual(await shown(api, '/config'), { compatibilityLevel: 'BACKWARD' })
    assertConfluentRefused(await api.get('/confluent/config/b-value'), 404, 40408, ['b-value'])
    const inherited = await shown(api, '/config/b-value?defaultToGlobal=true')
    assert.deepEqual(inherited, { compatibilityLevel: 'BACKWARD' })
    for (const level of 'NONE BACKWARD_TRANSITIVE FORWARD FORWARD_TRANSITIVE FULL FULL_TRANSITIVE BACKWARD'.split(
      ' '
    )) {
      assert.equal((await put('/b-value', level)).text, `{"compatibility":"${level}"}`)
      assert.deepEqual(await shown(api, '/config/b-value'), { compatibilityLevel: level })
      const native = parse<{ compatibility: string }>(await api.get('/subjects/b-value/config')).compatibility
      assert.equal(native, level.toLowerCase())
    }
    assert.equal((await put('/b-value', 'none')).text, '{"compatibility":"NONE"}', 'as theirs, whatever the case')
    assert.equal(await registered(api, 'b-value', demanding), 4)
    const taken = await api.call('DELETE', '/confluent/config/b-value')
    assert.deepEqual([taken.status, taken.text], [200, '{"compatibilityLevel":"NONE"}'])
    assertConfluentRefused(await api.call('DELETE', '/confluent/config/b-value'), 404, 40408)
    assert.equal((await put('', 'FULL')).text, '{"compatibility":"FULL"}')
    assert.deepEqual(await shown(api, '/config/b-value?defaultToGlobal=true'), { compatibilityLevel: 'FULL' })
    assert.equal((await api.call('DELETE', '/confluent/config')).text, '{"compatibilityLevel":"FULL"}')
    assert.equal((await api.get('/admin/schemas/config')).text, '{"compatibility":"default"}')
    for (const level of ['default', 'nonsense', ''])
      assertConfluentRefused(await put('/b-value', level), 422, 42203, ['BACKWARD_TRANSITIVE'])
  })

  await t.test('names what is wrong by the codes of that API', async () => {
    const versions = '/confluent/subjects/a-value/versions'
    for (const [body, code, words] of [
      [{ schemaType: 'JSON' }, 42201, ['schema', 'missing']],
      [{ schemaType: 'JSON', schema: '' }, 42201, ['0 bytes']],
      [{ schemaType: 'JSON', schema: '{' }, 42201, ['json_schema']],
      [{ schemaType: 'JSON', schema: 5 }, 42201, ['string']],
      [{ schemaType: 'XML', schema: one }, 42201, ['PROTOBUF']],
      [jsonOf(one, { references: [{ name: 'x', subject: 'b', version: 1 }] }), 42201, ['references', 'not supported']],
      [jsonOf(one, { references: {} }), 42201, ['references', 'list']],
      [jsonOf(one, { ruleSet: {} }), 42201, ['ruleSet']],
      [jsonOf(one, { metadata: {} }), 42201, ['metadata']]
    ] as const)
      assertConfluentRefused(await api.post(versions, body), 422, code, words)
    assertConfluentRefused(await api.post('/confluent/subjects/a%2Fb/versions', jsonOf(one)), 422, 42208, ['a/b'])
    for (const version of ['0', '-2', 'newest', '1.0', '2147483648', '%20latest'])
      assertConfluentRefused(await api.get(`${versions}/${version}`), 422, 42202)
    for (const [path, code] of [
      ['/subjects/none/versions', 40401],
      ['/subjects/none/versions/latest', 40401],
      ['/subjects/a-value/versions/3', 40402],
      ['/schemas/ids/99', 40403],
      ['/schemas/ids/99/versions', 40403],
      ['/schemas/ids/18446744073709551615', 40403],
      ['/schemas/ids/x', 40403],
      ['/nothing', 404]
    ] as const)
      assertConfluentRefused(await api.get(`/confluent${path}`), 404, code)
    assertConfluentRefused(await api.get('/confluent'), 404, 404)
    assertRefused(await api.get('/confluents'), 404, 'ROUTE_NOT_FOUND')
    assertConfluentRefused(await api.post(versions, '{"schema"'), 400, 400, ['JSON'])
    assertConfluentRefused(await api.post(versions, '[]'), 400, 400, ['object'])
    const large = 'x'.repeat(limits.schemaBodyBytesMax + 1)
    assertConfluentRefused(await api.post(versions, large), 413, 413, [limits.schemaBodyBytesMax])
  })

  await t.test('takes an empty list of references, and finds a full one in a large body too', async () => {
    const padding = { other: 'x'.repeat(200_000) }
    const versions = '/confluent/subjects/a-value/versions'
    const empty = jsonOf(wider, { references: [], metadata: null, ruleSet: null, ...padding })
    assert.equal((await api.post(versions, empty)).text, '{"id":2}')
    assertConfluentRefused(await api.post(versions, jsonOf(wider, { references: [{}], ...padding })), 422, 42201)
  })

  await t.test('deletes nothing, and says so', async () => {
    for (const path of ['/subjects/a-value', '/subjects/a-value/versions/1', '/subjects/a-value/versions/latest']) {
      const answer = await api.call('DELETE', `/confluent${path}`)
      assertConfluentRefused(answer, 405, 405, ['nothing of this registry is ever deleted'])
      assert.match(answer.headers.get('allow') ?? '', /^(GET, HEAD|POST)$/)
    }
    assert.deepEqual(await shown(api, '/subjects/a-value/versions'), [1, 2])
  })

  await t.test('takes bodies by the media types of that API, and by no other', async () => {
    const body = JSON.stringify(jsonOf(one))
    const send = (type: string): Promise<HttpAnswer> =>
      api.call('POST', '/confluent/subjects/a-value', body, { 'content-type': type })
    for (const type of [
      CONFLUENT_TYPE,
      'application/vnd.schemaregistry+json',
      'application/json; charset=utf-8',
      'Application/VND.SchemaRegistry.V1+JSON'
    ])
      assert.equal((await send(type)).status, 200, type)
    for (const type of ['text/plain', 'application/octet-stream', 'application/vnd.schemaregistry.v2+json'])
      assertConfluentRefused(await send(type), 415, 415, [type])
    const native = await api.call('POST', '/schemas', body, { 'content-type': CONFLUENT_TYPE })
    assertRefused(native, 415, 'MEDIA_TYPE')
  })

  await t.test('is counted by route, status and code as every other', async () => {
    const { text } = await api.get('/metrics')
    assert.match(text, /route="POST \/confluent\/subjects\/:subject\/versions"/)
    assert.match(text, /code="SCHEMA_INCOMPATIBLE"/)
    assert.match(text, /status="422"/)
  })

  await t.test('answers HEAD with the length that GET has', async () => {
    const [head, get] = [await api.call('HEAD', '/confluent/subjects'), await api.get('/confluent/subjects')]
    assert.deepEqual([head.status, head.text], [200, ''])
    assert.equal(head.headers.get('content-length'), String(Buffer.byteLength(get.text)))
  })
})

for (const engine of ['uws', 'node'] as const) {
  test(`a password is the secret of a key on those routes, and only there, on ${engine}`, async t => {
    const { broker, admin } = await startGuarded(t, { variant: { engine, shards: 1 } })
    const reader = await makeTestKey(admin.api, 'read:orders')
    await registered(admin.api, 'orders-value', one)
    await registered(admin.api, 'ordersecret', wider)
    const nobody = new HttpApi(broker.url)
    const withAuthorization = (path: string, authorization: string): Promise<HttpAnswer> =>
      nobody.call('GET', path, undefined, { authorization })
    const basic = (user: string, secret: string): string =>
      `Basic ${Buffer.from(`${user}:${secret}`).toString('base64')}`

    for (const authorization of [
      basic(reader.id, reader.secret),
      basic('', reader.secret),
      basic('anybody', reader.secret).replace('Basic', 'basic'),
      `Bearer ${reader.secret}`
    ]) {
      const answer = await withAuthorization('/confluent/subjects', authorization)
      assert.deepEqual([answer.status, answer.text], [200, '["orders-value"]'], authorization)
    }
    for (const authorization of [
      basic(reader.secret, 'wrong'),
      basic(reader.id, `${reader.secret}x`),
      `Basic ${Buffer.from(reader.secret).toString('base64')}`,
      'Basic ',
      'Basic %%%',
      `Digest ${reader.secret}`
    ]) {
      const answer = await withAuthorization('/confluent/subjects', authorization)
      assertConfluentRefused(answer, 401, 401)
      assert.equal(answer.headers.get('www-authenticate'), 'Basic realm="millrace", Bearer')
      assert.ok(!answer.text.includes(reader.secret))
    }
    for (const path of ['/subjects', '/topics', '/confluents', '/'])
      assertRefused(await withAuthorization(path, basic(reader.id, reader.secret)), 401, 'UNAUTHENTICATED')
    assertConfluentRefused(await nobody.get('/confluent/nothing'), 401, 401)

    assertConfluentRefused(await reader.api.get('/confluent/subjects/ordersecret/versions'), 404, 40401)
    assertConfluentRefused(await reader.api.get('/confluent/schemas/ids/2'), 404, 40403)
    assertConfluentRefused(await register(reader.api, 'orders-value', one), 403, 403, ['register schema'])
    const compared = '/confluent/compatibility/subjects/ordersecret/versions/latest'
    assertConfluentRefused(await reader.api.post(compared, jsonOf(one)), 404, 40401)
    await revokeKey(admin.api, reader.id)
    const revoked = await withAuthorization('/confluent/subjects', basic('u', reader.secret))
    assertConfluentRefused(revoked, 401, 401, ['revoked'])
  })
}
