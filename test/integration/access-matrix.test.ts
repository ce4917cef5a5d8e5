/**
 * Who may do what (spec 2.9, 19): every route and every ES01 request, tried by nobody, a reader, a writer, an administrator
 * of a prefix and one of everything. The rows come from the route table and the table of operations; what each need lets
 * whom do is written down here once more, so that a change of either is seen.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { connectEs01, Es01Error, type Es01Client } from '../../src/client/es01/client.ts'
import type { Route } from '../../src/gateway/http/route.ts'
import { routes } from '../../src/gateway/http/routes.ts'
import { needs, operations, type Need } from '../../src/model/access.ts'
import { makeTestKey, startGuarded, type TestKey } from '../support/access.ts'
import type { TestBroker } from '../support/broker.ts'
import { atEnd } from '../support/clean-up.ts'
import { assertConfluentRefused } from '../support/confluent.ts'
import { assertRefused, HttpApi, parse, type HttpAnswer } from '../support/http-api.ts'

const callers = ['nobody', 'reader', 'writer', 'prefix admin', 'admin'] as const
type Caller = (typeof callers)[number]

/** Spec 19: the status of a refusal, or null where the request is carried out. In the order of callers. */
const matrix: Readonly<Record<Need, readonly (401 | 403 | null)[]>> = {
  nothing: [null, null, null, null, null],
  key: [401, null, null, null, null],
  read: [401, null, null, null, null],
  write: [401, 403, null, null, null],
  group: [401, null, null, null, null],
  admin: [401, 403, 403, 403, null]
}

/** Spec 19 and 2.10, line by line, and in the same way what the specification does not have: what each route takes. */
const specified: Readonly<Record<Need, readonly string[]>> = {
  nothing: ['GET /healthz', 'GET /openapi.json', 'GET /readyz'],
  key: [
    'GET /confluent/config',
    'GET /confluent/mode',
    'GET /confluent/schemas/types',
    'GET /confluent/subjects',
    'GET /metrics',
    'GET /schemas',
    'GET /subjects',
    'GET /topics'
  ],
  read: [
    'GET /confluent/config/:subject',
    'GET /confluent/schemas/ids/:id',
    'GET /confluent/schemas/ids/:id/schema',
    'GET /confluent/schemas/ids/:id/subjects',
    'GET /confluent/schemas/ids/:id/versions',
    'GET /confluent/subjects/:subject/versions',
    'GET /confluent/subjects/:subject/versions/:version',
    'GET /confluent/subjects/:subject/versions/:version/schema',
    'GET /schemas/:schema_id',
    'GET /subjects/:subject/config',
    'GET /subjects/:subject/versions',
    'GET /subjects/:subject/versions/:version',
    'GET /topics/:name',
    'GET /topics/:name/config',
    'GET /topics/:name/consume',
    'GET /topics/:name/offsets',
    'GET /topics/:name/stream',
    'POST /confluent/compatibility/subjects/:subject/versions',
    'POST /confluent/compatibility/subjects/:subject/versions/:version',
    'POST /confluent/subjects/:subject'
  ],
  write: ['POST /topics/:name/produce'],
  group: [
    'DELETE /groups/:group',
    'GET /groups',
    'GET /groups/:group',
    'GET /groups/:group/assignment',
    'GET /groups/:group/consume',
    'GET /groups/:group/offsets',
    'GET /groups/:group/stream',
    'POST /groups/:group/commit',
    'POST /groups/:group/heartbeat',
    'POST /groups/:group/join',
    'POST /groups/:group/leave',
    'POST /groups/:group/reset'
  ],
  admin: [
    'DELETE /admin/keys/:key_id',
    'DELETE /admin/producers/:id',
    'DELETE /confluent/config',
    'DELETE /confluent/config/:subject',
    'DELETE /topics/:name',
    'GET /admin/keys',
    'GET /admin/producers',
    'GET /admin/schemas/config',
    'GET /admin/tiered/:topic/:partition',
    'GET /raft',
    'POST /admin/keys',
    'POST /admin/reset-offsets',
    'POST /admin/run-compaction',
    'POST /admin/run-retention',
    'POST /confluent/subjects/:subject/versions',
    'POST /schemas',
    'POST /topics',
    'POST /topics/:name/delete-records',
    'POST /topics/:name/partitions',
    'PUT /admin/schemas/config',
    'PUT /confluent/config',
    'PUT /confluent/config/:subject',
    'PUT /subjects/:subject/config',
    'PUT /topics/:name/config'
  ]
}

test('every route takes of a key what the specification says', () => {
  const found = Object.fromEntries(
    needs.map(need => [
      need,
      routes
        .filter(({ operation }) => operations[operation] === need)
        .map(({ method, pattern }) => `${method} ${pattern}`)
        .sort()
    ])
  )
  assert.deepEqual(found, specified)
})

interface Sample {
  readonly query?: string
  readonly body?: object
}

/** What a route needs to be asked rightly, where the path alone does not do: else a refusal is of the request, not of its key. */
const samples: Readonly<Record<string, Sample>> = {
  'POST /topics': { body: { name: 'orders.new' } },
  'PUT /topics/:name/config': { body: { retention_ms: 1000 } },
  'POST /topics/:name/produce': { body: { records: [{ value: 'v' }] } },
  'GET /topics/:name/consume': { query: '?partition=0&offset=0' },
  'POST /groups/:group/commit': { body: { topic: 'orders', partition: 0, offset: 1 } },
  'GET /groups/:group/consume': { query: '?topic=orders&partition=0' },
  'POST /groups/:group/join': { body: { topics: ['orders'], member_id: 'm' } },
  'POST /groups/:group/heartbeat': { body: { member_id: 'm', generation: 1 } },
  'POST /groups/:group/leave': { body: { member_id: 'm' } },
  'GET /groups/:group/assignment': { query: '?member_id=m' },
  'GET /groups/:group/stream': { query: '?member_id=m' },
  'POST /groups/:group/reset': { body: { topic: 'orders', to: 'latest' } },
  'POST /admin/reset-offsets': { body: { topic: 'orders' } },
  'POST /topics/:name/partitions': { body: { partitions: 5 } },
  'POST /topics/:name/delete-records': { body: { partition: 0, offset: 0 } },
  'POST /admin/keys': { body: { name: 'made', acls: [] } },
  'POST /schemas': { body: { subject: 'orders', schema: '{}' } },
  'PUT /subjects/:subject/config': { body: { compatibility: 'none' } },
  'PUT /admin/schemas/config': { body: { compatibility: 'none' } },
  'POST /confluent/subjects/:subject': { body: { schema: '{}', schemaType: 'JSON' } },
  'POST /confluent/subjects/:subject/versions': { body: { schema: '{}', schemaType: 'JSON' } },
  'POST /confluent/compatibility/subjects/:subject/versions': { body: { schema: '{}', schemaType: 'JSON' } },
  'POST /confluent/compatibility/subjects/:subject/versions/:version': { body: { schema: '{}', schemaType: 'JSON' } },
  'PUT /confluent/config': { body: { compatibility: 'NONE' } },
  'PUT /confluent/config/:subject': { body: { compatibility: 'NONE' } }
}

const names: Readonly<Record<string, string>> = {
  ':partition': '0',
  ':id': 'no-such-producer',
  ':key_id': 'key_000000000000',
  ':schema_id': '1',
  ':version': 'latest'
}

/** @param topic what stands for its name in the path. @param group likewise. */
function ask(api: HttpApi, { method, pattern }: Route, topic = 'orders', group = 'g'): Promise<HttpAnswer> {
  const { query = '', body } = samples[`${method} ${pattern}`] ?? {}
  const path = pattern.replace(/:[a-z_]+/g, name => names[name] ?? (name === ':group' ? group : topic))
  return api.call(method, path + query, body === undefined ? undefined : JSON.stringify(body))
}

interface Stage {
  readonly broker: TestBroker
  readonly admin: HttpApi
  readonly apis: Readonly<Record<Caller, HttpApi>>
  readonly keys: Readonly<Record<Exclude<Caller, 'nobody'>, TestKey>>
}

async function startStage(t: TestContext, engine: 'uws' | 'node', shards: 1 | 3): Promise<Stage> {
  const { broker, admin } = await startGuarded(t, { variant: { engine, shards } })
  assert.equal(broker.server.engine, engine)
  const reader = await makeTestKey(admin.api, 'read:orders')
  const writer = await makeTestKey(admin.api, 'write:orders')
  const prefixAdmin = await makeTestKey(admin.api, 'admin:orders')
  const nobody = new HttpApi(broker.url)
  return {
    broker,
    admin: admin.api,
    apis: { nobody, reader: reader.api, writer: writer.api, 'prefix admin': prefixAdmin.api, admin: admin.api },
    keys: { reader, writer, 'prefix admin': prefixAdmin, admin }
  }
}

/** What a route removed or made is put back. */
async function restore(admin: HttpApi): Promise<void> {
  await admin.post('/topics', { name: 'orders' })
  await admin.call('DELETE', '/topics/orders.new')
}

for (const [engine, shards] of [
  ['uws', 3],
  ['node', 1]
] as const) {
  test(`the grants of a key, on ${engine}`, async t => {
    const { admin, apis, broker, keys } = await startStage(t, engine, shards)
    await admin.createTopic('orders')
    await admin.createTopic('orders.eu')
    await admin.createTopic('ordersecret')

    for (const route of routes) {
      const need = operations[route.operation]
      await t.test(`${route.method} ${route.pattern} takes ${need}`, async () => {
        for (const [i, caller] of callers.entries()) {
          await restore(admin)
          // Each has a group of its own.
          const answer = await ask(apis[caller], route, 'orders', `g${i}`)
          const refused = matrix[need][i] ?? null
          const isConfluent = route.pattern.startsWith('/confluent/')
          if (refused === 401) {
            if (isConfluent) assertConfluentRefused(answer, 401, 401)
            else assertRefused(answer, 401, 'UNAUTHENTICATED')
            const schemes = isConfluent ? 'Basic realm="millrace", Bearer' : 'Bearer'
            assert.equal(answer.headers.get('www-authenticate'), schemes)
          } else if (refused === 403) {
            if (isConfluent) assertConfluentRefused(answer, 403, 403, [route.operation])
            else assertRefused(answer, 403, 'FORBIDDEN', [route.operation])
          } else assert.ok(answer.status < 300 || answer.status === 404, `${caller}: ${answer.status} ${answer.text}`)
        }
      })
    }

    await t.test('show in the list of topics: what a key may not read is not there', async () => {
      const listed = async (api: HttpApi): Promise<string[]> =>
        parse<{ topics: string[] }>(await api.get('/topics')).topics
      for (const caller of ['reader', 'writer', 'prefix admin'] as const) {
        assert.deepEqual(await listed(apis[caller]), ['orders', 'orders.eu'], caller)
      }
      assert.deepEqual(await listed(admin), ['orders', 'orders.eu', 'ordersecret'])
      assert.deepEqual(await listed((await makeTestKey(admin)).api), [])
    })

    await t.test('show in the schemas: those of a subject that it may not read are not there', async () => {
      await admin.post('/schemas', { subject: 'orders-value', schema: '{}' })
      await admin.post('/schemas', { subject: 'ordersecret', schema: '{}' })
      const seenBy = async (api: HttpApi): Promise<readonly unknown[]> => [
        parse<{ subjects: string[] }>(await api.get('/subjects')).subjects,
        new Set(parse<{ subject: string }[]>(await api.get('/schemas')).map(({ subject }) => subject)),
        ...(await Promise.all(
          ['orders-value', 'ordersecret', 'ordersecrex'].map(
            async subject => (await api.get(`/subjects/${subject}/versions/latest`)).status
          )
        ))
      ]
      const readable = ['orders', 'orders-value']
      for (const caller of ['reader', 'writer', 'prefix admin'] as const)
        assert.deepEqual(await seenBy(apis[caller]), [readable, new Set(readable), 200, 404, 404], caller)
      const all = [...readable, 'ordersecret']
      assert.deepEqual(await seenBy(admin), [all, new Set(all), 200, 200, 404])
    })

    await t.test('do not tell whether a topic exists that they do not cover', async () => {
      for (const route of routes.filter(({ pattern }) => pattern.includes(':name'))) {
        const [there, notThere] = await Promise.all(
          ['ordersecret', 'ordersecrex'].map(async topic => {
            const answer = await ask(apis.writer, route, topic)
            assertRefused(answer, 403, 'FORBIDDEN')
            return answer.text.replaceAll(topic, '…').replace(/"request_id":"\w+"/, '')
          })
        )
        assert.equal(there, notThere, `${route.method} ${route.pattern}`)
      }
      assertRefused(await apis.reader.get('/topics/orders.gone'), 404, 'TOPIC_NOT_FOUND')
    })

    await t.test('do not reach into the group of another key, on any route; admin on everything does', async () => {
      const ofGroups = routes.filter(({ pattern }) => pattern.includes(':group'))
      assert.ok(ofGroups.length > 8)
      await apis.reader.post('/groups/taken/join', { topics: ['orders'], member_id: 'm' })
      for (const route of ofGroups) {
        for (const caller of ['writer', 'prefix admin'] as const)
          assertRefused(await ask(apis[caller], route, 'orders', 'taken'), 403, 'GROUP_OWNED', ['taken'])
      }
      const isLast = ({ method }: Route): boolean => method === 'DELETE'
      for (const route of ofGroups.toSorted((a, b) => Number(isLast(a)) - Number(isLast(b)))) {
        const answer = await ask(admin, route, 'orders', 'taken')
        assert.ok(answer.status < 300 || answer.status === 404, `${route.pattern}: ${answer.status} ${answer.text}`)
      }
      assert.equal((await apis.writer.get('/groups/taken')).status, 404, 'it is gone')
      assert.equal(
        (await apis.writer.post('/groups/taken/commit', samples['POST /groups/:group/commit']?.body)).status,
        204
      )
      assertRefused(await apis.reader.get('/groups/taken/offsets'), 403, 'GROUP_OWNED')
      const listed = parse<{ groups: { group: string }[] }>(await apis.writer.get('/groups')).groups
      assert.ok(listed.some(({ group }) => group === 'taken'))
      const ofReader = parse<{ groups: { group: string }[] }>(await apis.reader.get('/groups')).groups
      assert.ok(!ofReader.some(({ group }) => group === 'taken'))
    })

    await t.test('let no group use a topic that they do not cover, whether it exists or not', async () => {
      for (const topic of ['ordersecret', 'ordersecrex']) {
        for (const caller of ['reader', 'writer', 'prefix admin'] as const) {
          const api = apis[caller]
          for (const answer of [
            await api.post('/groups/own/commit', { topic, partition: 0, offset: 1 }),
            await api.get(`/groups/own/consume?topic=${topic}&partition=0`),
            await api.post('/groups/own/join', { topics: ['orders', topic] }),
            await api.post('/groups/own/reset', { topic, to: 'latest' })
          ])
            assertRefused(answer, 403, 'FORBIDDEN', [topic])
        }
      }
      assertRefused(await admin.get('/groups/own'), 404, 'GROUP_NOT_FOUND')
    })

    await t.test('hold on ES01', async t => {
      for (const caller of ['reader', 'writer', 'prefix admin', 'admin'] as const) {
        const client = await connectEs01({ ...broker.es01, token: keys[caller].secret })
        atEnd(t, () => client.destroy())
        const isAdmin = caller === 'admin'
        const read = { partition: 0, offset: 0, maxRecords: 1, maxBytes: 1 }
        assert.equal(await wordOf(client.produce('orders', [{ value: 'v' }])), caller === 'reader' ? 'forbidden' : 'ok')
        assert.equal(await wordOf(client.consume({ topic: 'orders', ...read })), 'ok')
        for (const topic of ['ordersecret', 'ordersecrex']) {
          const expected = isAdmin ? (topic === 'ordersecret' ? 'ok' : 'not found') : 'forbidden'
          assert.equal(await wordOf(client.produce(topic, [{ value: 'v' }])), expected, caller)
          assert.equal(await wordOf(client.consume({ topic, ...read })), expected, caller)
        }
        assert.equal(await wordOf(client.consume({ topic: 'orders.gone', ...read })), 'not found')
        await client.ping()
      }
    })
  })
}

/** How an answer begins. */
async function wordOf(answer: ReturnType<Es01Client['produce']> | ReturnType<Es01Client['consume']>): Promise<string> {
  try {
    await answer
    return 'ok'
  } catch (error) {
    assert.ok(error instanceof Es01Error)
    return error.message.split(':', 1)[0] ?? ''
  }
}
