/** The schema registry of a real broker: the session of the specification, its routes and refusals, restarts, who may what. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { limits } from '../../src/model/limits.ts'
import { makeTestKey, startGuarded } from '../support/access.ts'
import { startBroker } from '../support/broker.ts'
import { assertRefused, HttpApi, parse, type HttpAnswer } from '../support/http-api.ts'
import { temporaryDirectory } from '../support/temporary-directory.ts'

/** A schema as the API shows it. */
interface Schema {
  readonly id: number
  readonly subject: string
  readonly type: string
  readonly schema: string
  readonly created_at_ms: number
}

const orders = '{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}'

/** @param required besides id. */
function objectOf(properties: readonly string[], required: readonly string[] = []): string {
  return JSON.stringify({
    type: 'object',
    properties: Object.fromEntries(properties.map(name => [name, { type: 'string' }])),
    required
  })
}

function register(api: HttpApi, subject: string, schema: string, type?: string): Promise<HttpAnswer> {
  return api.post('/schemas', { subject, schema, ...(type === undefined ? {} : { type }) })
}

/** @returns the id. */
async function registered(api: HttpApi, subject: string, schema: string): Promise<number> {
  const answer = await register(api, subject, schema)
  assert.equal(answer.status, 200, answer.text)
  return parse<{ id: number }>(answer).id
}

async function startApi(t: TestContext, engine: 'uws' | 'node' = 'uws'): Promise<HttpApi> {
  const { url } = await startBroker(t, { variant: { engine, shards: 1 } })
  return new HttpApi(url)
}

for (const engine of ['uws', 'node'] as const) {
  test(`the schema registry, on ${engine}`, async t => {
    const api = await startApi(t, engine)

    await t.test('answers the session of the specification digit for digit', async () => {
      const before = Date.now()
      const first = await api.post(
        '/schemas',
        '{"subject":"orders-value","type":"json_schema","schema":"{\\"type\\":\\"object\\",\\"properties\\":{\\"id\\":{\\"type\\":\\"integer\\"}},\\"required\\":[\\"id\\"]}"}'
      )
      assert.deepEqual([first.status, first.text], [200, '{"id":1}'])
      const phone =
        '{"type":"object","properties":{"id":{"type":"integer"},"phone":{"type":"string"}},"required":["id","phone"]}'
      const refused = await register(api, 'orders-value', phone)
      assertRefused(refused, 400, 'SCHEMA_INCOMPATIBLE')
      const { error } = parse<{ error: string }>({ ...refused, status: 200 })
      assert.equal(error, "backward-incompatible: new schema adds required field 'phone'")
      const one = await api.get('/schemas/1')
      const at = parse<Schema>(one).created_at_ms
      assert.ok(at >= before && at <= Date.now())
      const expected = `{"id":1,"subject":"orders-value","type":"json_schema","schema":${JSON.stringify(orders)},"created_at_ms":${at}}`
      assert.deepEqual([one.status, one.text], [200, expected])
      assert.equal((await api.get('/schemas')).text, `[${expected}]`)
      assert.equal((await api.get('/subjects/orders-value/versions/latest')).text, expected)
      assert.equal(one.headers.get('content-type'), 'application/json')
    })

    await t.test('gives the same text again a new id, and lists all by id', async () => {
      assert.equal(await registered(api, 'orders-value', orders), 2)
      assert.equal(await registered(api, 'users-value', orders), 3)
      const list = parse<Schema[]>(await api.get('/schemas'))
      assert.deepEqual(
        list.map(({ id, subject }) => [id, subject]),
        [
          [1, 'orders-value'],
          [2, 'orders-value'],
          [3, 'users-value']
        ]
      )
    })

    await t.test('lists subjects and their versions, and shows each', async () => {
      assert.equal((await api.get('/subjects')).text, '{"subjects":["orders-value","users-value"]}')
      assert.equal(
        (await api.get('/subjects/orders-value/versions')).text,
        '{"subject":"orders-value","versions":[1,2]}'
      )
      const [first, second, latest] = await Promise.all(
        ['1', '2', 'latest'].map(
          async version => parse<Schema>(await api.get(`/subjects/orders-value/versions/${version}`)).id
        )
      )
      assert.deepEqual([first, second, latest], [1, 2, 2])
    })

    await t.test('has a compatibility mode, of its own and of each subject', async () => {
      const config = '/subjects/users-value/config'
      assert.equal((await api.get(config)).text, '{"compatibility":null}')
      assert.equal((await api.get('/admin/schemas/config')).text, '{"compatibility":"default"}')
      const widened = objectOf(['id', 'a'], ['id', 'a'])
      assertRefused(await register(api, 'users-value', widened), 400, 'SCHEMA_INCOMPATIBLE')
      assert.equal((await api.call('PUT', config, '{"compatibility":"none"}')).text, '{"compatibility":"none"}')
      await registered(api, 'users-value', widened)
      assert.equal((await api.call('PUT', config, '{"compatibility":null}')).text, '{"compatibility":null}')
      assertRefused(await register(api, 'users-value', objectOf([])), 400, 'SCHEMA_INCOMPATIBLE')
      const general = await api.call('PUT', '/admin/schemas/config', '{"compatibility":"none"}')
      assert.deepEqual([general.status, general.text], [200, '{"compatibility":"none"}'])
      await registered(api, 'users-value', objectOf([]))
      assert.equal((await api.call('PUT', '/admin/schemas/config', '{}')).text, '{"compatibility":"default"}')
    })

    await t.test('refuses what is no schema, by its class, and writes nothing', async () => {
      const before = (await api.get('/schemas')).text
      const wrong: readonly (readonly [unknown, string, readonly string[]])[] = [
        [{ subject: '', schema: orders }, 'NAME_INVALID', ['subject']],
        [{ subject: 'a/b', schema: orders }, 'NAME_INVALID', ['a/b']],
        [{ subject: 'x'.repeat(201), schema: orders }, 'NAME_INVALID', ['200']],
        [{ subject: 's', schema: orders, type: 'xml' }, 'FIELD_INVALID', ['type', 'protobuf']],
        [{ subject: 's', schema: JSON.parse(orders) as object }, 'FIELD_INVALID', ['schema', 'string']],
        [{ subject: 's', schema: '' }, 'SCHEMA_TOO_LARGE', ['0 bytes', '524288']],
        [{ subject: 's', schema: '{' }, 'SCHEMA_INVALID', ['json_schema']],
        [{ subject: 's', schema: '{"type":"nonsense"}' }, 'SCHEMA_INVALID', ['json_schema']],
        [{ subject: 's', schema: '"text"' }, 'SCHEMA_INVALID', ['json_schema']],
        [{ subject: 's', schema: `{"x":"${'\ud800'}"}` }, 'SCHEMA_INVALID', ['Unicode']]
      ]
      for (const [body, code, words] of wrong) assertRefused(await api.post('/schemas', body), 400, code, words)
      assert.equal((await api.get('/schemas')).text, before)
    })

    await t.test('does not find what is not there', async () => {
      for (const [path, status, code] of [
        ['/schemas/99', 404, 'SCHEMA_NOT_FOUND'],
        ['/schemas/18446744073709551615', 404, 'SCHEMA_NOT_FOUND'],
        ['/schemas/x', 400, 'FIELD_INVALID'],
        ['/schemas/-1', 400, 'FIELD_INVALID'],
        ['/schemas/1.0', 400, 'FIELD_INVALID'],
        ['/subjects/nothing/versions', 404, 'SUBJECT_NOT_FOUND'],
        ['/subjects/nothing/versions/latest', 404, 'SUBJECT_NOT_FOUND'],
        ['/subjects/orders-value/versions/0', 404, 'VERSION_NOT_FOUND'],
        ['/subjects/orders-value/versions/3', 404, 'VERSION_NOT_FOUND'],
        ['/subjects/orders-value/versions/newest', 400, 'FIELD_INVALID']
      ] as const)
        assertRefused(await api.get(path), status, code)
    })

    await t.test('takes a schema of 512 KiB, all of it escapes, and not one byte more', async () => {
      const textOf = (bytes: number): string => `"${'é'.repeat((bytes - 2) / 2)}"`
      const escaped = (schema: string): string =>
        `{"subject":"large","schema":"${[...schema].map(character => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`).join('')}"}`
      // Not an object: refused by its parser, and not for its size.
      assertRefused(await api.post('/schemas', escaped(textOf(limits.schemaBytesMax))), 400, 'SCHEMA_INVALID')
      const whole = `{"title":${textOf(limits.schemaBytesMax - 10)}}`
      assert.equal(Buffer.byteLength(whole), limits.schemaBytesMax)
      const answer = await api.post('/schemas', escaped(whole))
      assert.equal(answer.status, 200, answer.text)
      const { id } = parse<{ id: number }>(answer)
      assert.equal(parse<Schema>(await api.get(`/schemas/${id}`)).schema, whole)
      const over = await api.post('/schemas', escaped(`${whole} `))
      assertRefused(over, 400, 'SCHEMA_TOO_LARGE', ['524289', '524288'])
      const size = limits.schemaBodyBytesMax + 1
      assertRefused(await api.post('/schemas', 'x'.repeat(size)), 413, 'BODY_TOO_LARGE', [String(size - 1)])
    })
  })
}

test('large bodies are refused in the words of small ones', async t => {
  const api = await startApi(t)
  const padding = 'x'.repeat(100_000)
  for (const body of [
    '{"subject":"s","schema":5PAD}',
    '{"subject":[1],"schema":"{}"PAD}',
    '{"schema":"{}"PAD}',
    '{"subject":"s","schema":"{}","type":{"a":1}PAD}',
    '["PAD"]',
    '"PAD"',
    '{"subject":"s","schema":"{}"PAD'
  ]) {
    const [small, large] = await Promise.all(
      ['', padding].map(async text => {
        const pad = body.includes('"PAD"') ? text : `,"other":"${text}"`
        const answer = await api.post('/schemas', body.replace('PAD', pad))
        return answer.text.replace(/"request_id":"\w+"/, '').replace(/at byte \d+/, 'at byte n')
      })
    )
    assert.equal(large, small)
  }
})

test('a body of very many small values beside the schema is taken', async t => {
  const api = await startApi(t)
  const schema = JSON.stringify(orders)
  const hostile = `{"subject":"s","other":[${'{},'.repeat(1_000_000)}1],"schema":${schema}}`
  assert.ok(hostile.length < limits.schemaBodyBytesMax)
  const answer = await api.post('/schemas', hostile)
  assert.deepEqual([answer.status, answer.text], [200, '{"id":1}'])
})

test('a list of many large schemas comes whole, in pieces', async t => {
  for (const engine of ['uws', 'node'] as const) {
    const api = await startApi(t, engine)
    const text = (i: number): string => `{"title":"${i}","description":"${'é"'.replace('"', '\\"').repeat(40_000)}"}`
    for (let i = 0; i < 20; i++) await registered(api, `s${i % 3}`, text(i))
    const list = parse<Schema[]>(await api.get('/schemas'))
    assert.deepEqual(
      list.map(({ schema }) => schema),
      Array.from({ length: 20 }, (_, i) => text(i))
    )
  }
})

test('dropping the whole of properties is refused as removing each', async t => {
  const api = await startApi(t)
  await registered(api, 's', objectOf(['a', 'b']))
  for (const [schema, words] of [
    ['{"type":"object"}', ["'a'", "'b'"]],
    [objectOf(['a']), ["'b'"]]
  ] as const)
    assertRefused(await register(api, 's', schema), 400, 'SCHEMA_INCOMPATIBLE', [
      'backward-incompatible: ',
      'removes',
      ...words
    ])
  assert.equal(await registered(api, 's', objectOf(['a', 'b', 'c'])), 2)
})

test('after a restart everything is as it was, the latest is the highest version, and ids go on', async t => {
  const data = temporaryDirectory(t)
  let broker = await startBroker(t, { flags: { '--data-dir': data } })
  let api = new HttpApi(broker.url)
  const names = Array.from({ length: 12 }, (_, i) => `p${i}`)
  for (let i = 1; i <= names.length; i++) await registered(api, 's', objectOf(names.slice(0, i)))
  await registered(api, 't', orders)
  await api.call('PUT', '/subjects/s/config', '{"compatibility":"none"}')
  const paths = ['/schemas', '/subjects', '/subjects/s/versions', '/subjects/s/versions/latest', '/subjects/s/config']
  const look = (): Promise<string[]> => Promise.all(paths.map(async path => (await api.get(path)).text))
  const before = await look()
  assert.equal((JSON.parse(before[3] ?? '') as Schema).schema, objectOf(names))
  for (let i = 0; i < 2; i++) {
    await broker.server.stop()
    broker = await startBroker(t, { flags: { '--data-dir': data } })
    api = new HttpApi(broker.url)
    assert.deepEqual(await look(), before)
  }
  assert.equal(await registered(api, 's', objectOf([])), 14)
})

test('registrations of a subject that are sent at once follow each other without a gap', async t => {
  const api = await startApi(t)
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => register(api, 's', objectOf(['id'], i % 2 === 0 ? [] : ['id'])))
  )
  const ids = answers.flatMap(answer => (answer.status === 200 ? [parse<{ id: number }>(answer).id] : []))
  assert.deepEqual(
    ids.toSorted((a, b) => a - b),
    Array.from({ length: ids.length }, (_, i) => i + 1)
  )
  const list = parse<Schema[]>(await api.get('/schemas'))
  const required = list.map(({ schema }) => schema.includes('["id"]'))
  assert.ok(
    required.every((is, i) => i === 0 || !is || required[i - 1] === true),
    'none adds a required field to the one before'
  )
})

test('a key sees the schemas of the subjects that it covers, and for all else nothing is there', async t => {
  const { admin } = await startGuarded(t)
  await registered(admin.api, 'orders-value', orders)
  await registered(admin.api, 'ordersecret', orders)
  const reader = await makeTestKey(admin.api, 'read:orders')
  const writer = await makeTestKey(admin.api, 'admin:orders')
  for (const { api } of [reader, writer]) {
    assert.deepEqual(
      parse<Schema[]>(await api.get('/schemas')).map(({ id }) => id),
      [1]
    )
    assert.equal((await api.get('/subjects')).text, '{"subjects":["orders-value"]}')
    assert.equal(parse<Schema>(await api.get('/subjects/orders-value/versions/latest')).id, 1)
    assertRefused(await register(api, 'orders-value', orders), 403, 'FORBIDDEN', ['register schema'])
    assertRefused(await api.post('/schemas', '{"subject":5}'), 400, 'FIELD_INVALID')
    const answers = await Promise.all(
      ['2', '3', '2', '3'].map(async (id, i) =>
        i < 2
          ? api.get(`/schemas/${id}`)
          : api.get(`/subjects/${id === '2' ? 'ordersecret' : 'ordersecrex'}/versions/latest`)
      )
    )
    for (const answer of answers) assert.equal(answer.status, 404)
  }
  const none = await makeTestKey(admin.api)
  assert.equal((await none.api.get('/schemas')).text, '[]')
})
