/**
 * The description of the API is true: every route of it is asked, rightly and wrongly, with a key and without, and every
 * answer is as described, to the last field. A success that is described and never came is a fault, too.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { pack } from 'msgpackr/pack'
import { MSGPACK_TYPE } from '../../src/gateway/http/accept.ts'
import type { Route } from '../../src/gateway/http/route.ts'
import { routes } from '../../src/gateway/http/routes.ts'
import { operations } from '../../src/model/access.ts'
import { firstKey, makeTestKey } from '../support/access.ts'
import { queryOf, samples, wrongBodies, wrongPaths, wrongQueries, type Sample } from '../support/bad-input.ts'
import { HttpApi, onBothEngines, parse, type HttpAnswer } from '../support/http-api.ts'
import { DescriptionChecker, type AnswerToCheck, type Description } from '../support/openapi.ts'
import { sendRaw, type RawAnswer, type RawRequest } from '../support/raw-http.ts'

const json = 'Content-Type: application/json\r\n'

const keyOf = ({ method, pattern }: Route): string => `${method} ${pattern}`

function sampleOf(route: Route): Sample {
  const sample = samples[keyOf(route)]
  assert.ok(sample !== undefined, keyOf(route))
  return sample
}

function routeOf(key: string): Route {
  const route = routes.find(candidate => keyOf(candidate) === key)
  assert.ok(route !== undefined, `no route ${key}`)
  return route
}

const ofRaw = ({ status, headers, body }: RawAnswer): AnswerToCheck => {
  return { status, body, header: name => headers.get(name) }
}

const ofFetch = ({ status, headers, text }: HttpAnswer): AnswerToCheck => {
  return { status, body: text, header: name => headers.get(name) }
}

/** Asks a broker, and holds each answer against its description of the API. */
class Asker {
  readonly checker: DescriptionChecker
  readonly #api: HttpApi

  constructor(api: HttpApi, checker: DescriptionChecker) {
    this.#api = api
    this.checker = checker
  }

  /** A request that is wanted as it is: bytes of its own. */
  async raw(route: Route, request: Omit<RawRequest, 'method'>): Promise<RawAnswer> {
    const answer = await sendRaw(this.#api.url, { method: route.method, ...request })
    this.checker.check(route, ofRaw(answer), `${request.path} ${String(request.body ?? '').slice(0, 300)}`)
    return answer
  }

  /** A request with the key of the API. @param path behind it the query. */
  async ask(key: string, path: string, body?: unknown): Promise<HttpAnswer> {
    const route = routeOf(key)
    const text = body === undefined ? undefined : JSON.stringify(body)
    const answer = await this.#api.call(route.method, path, text)
    this.checker.check(route, ofFetch(answer), `${path} ${text ?? ''}`)
    return answer
  }
}

/** A request in MessagePack, whose answer comes in it too. */
async function askPacked(api: HttpApi, checker: DescriptionChecker, key: string, path: string): Promise<void> {
  const route = routeOf(key)
  const { method } = route
  const packed = { records: [{ value: Buffer.from([0xff]), headers: [['n', null]], partition: 1 }] }
  const init = { headers: { accept: MSGPACK_TYPE, 'content-type': MSGPACK_TYPE }, method }
  const response = await fetch(api.url + path, method === 'POST' ? { ...init, body: pack(packed) } : init)
  assert.equal(response.headers.get('content-type'), MSGPACK_TYPE)
  const body = Buffer.from(await response.arrayBuffer())
  const { status, headers } = response
  checker.check(route, { status, body, header: name => headers.get(name) })
}

async function descriptionOf(api: HttpApi): Promise<DescriptionChecker> {
  return new DescriptionChecker(parse<Description>(await api.get('/openapi.json')))
}

function targetOf(sample: Sample): string {
  const search = queryOf(sample).map(([name, value]) => `${name}=${value}`)
  return search.length === 0 ? sample.path : `${sample.path}?${search.join('&')}`
}

/** Wrong fields, parameters, names and bodies: all that test/support/bad-input.ts makes of the sample. */
async function askWrongly(asker: Asker, route: Route): Promise<void> {
  const sample = sampleOf(route)
  const { path, body } = sample
  for (const { text } of wrongBodies(sample)) await asker.raw(route, { path, headers: json, body: text })
  for (const { text } of wrongQueries(sample)) await asker.raw(route, { path: `${path}?${text}` })
  const good = body === undefined ? {} : { headers: json, body: JSON.stringify(body) }
  for (const wrong of wrongPaths(route.pattern, sample)) {
    // What is no name at all may be served by another route, or by none.
    if (!/\/\.\.?($|[/?])/.test(wrong)) await asker.raw(route, { path: wrong, ...good })
  }
  if (body === undefined) return
  await asker.raw(route, { path, headers: json, body: '{' })
  await asker.raw(route, { path, headers: json, body: `{"x":"${'x'.repeat(20_000)}"}` })
  await asker.raw(route, { path, headers: 'Content-Type: text/plain\r\n', body: JSON.stringify(body) })
}

/** What the samples need to be there, and what they say is not there: that too is wanted. */
async function prepare(asker: Asker): Promise<ReadonlyMap<string, string>> {
  await asker.ask('POST /topics', '/topics', { name: 'there', partitions: 2, config: { retention_ms: 1e12 } })
  const records = [{ key: 'k', value: 'v', partition: 0, sequence: 0 }]
  const produced = { producer_id: 'known', records }
  await asker.ask('POST /topics/:name/produce', '/topics/there/produce', produced)
  await asker.ask('POST /groups/:group/commit', '/groups/known/commit', { topic: 'there', partition: 0, offset: 0 })
  const made = await asker.ask('POST /admin/keys', '/admin/keys', { name: 'known', acls: [] })
  const { key } = parse<{ key: { key_id: string } }>(made)
  return new Map([
    ['DELETE /groups/:group', '/groups/known'],
    ['DELETE /admin/producers/:id', '/admin/producers/known'],
    ['DELETE /admin/keys/:key_id', `/admin/keys/${key.key_id}`]
  ])
}

/** Answers that the samples do not come to. */
async function askFurther(asker: Asker): Promise<void> {
  const records = [{ key: null, value: '', partition: 0, sequence: 7 }]
  for (const round of [1, 2]) {
    const answer = await asker.ask('POST /topics/:name/produce', '/topics/there/produce', { producer_id: 'q', records })
    assert.equal(answer.text.includes('duplicate'), round === 2)
  }
  await asker.ask('GET /topics/:name/consume', '/topics/there/consume?partition=0&offset=0')
  await asker.ask('POST /topics/:name/delete-records', '/topics/there/delete-records', { partition: 0, offset: 1 })
  const skipping = await asker.ask('GET /topics/:name/consume', '/topics/there/consume?partition=0&offset=0')
  assert.match(skipping.text, /"skipped"/)
  const withHeaders = { encoding: 'base64', records: [{ value: 'AA==', headers: [['n', 'AA==']], partition: 1 }] }
  await asker.ask('POST /topics/:name/produce', '/topics/there/produce', withHeaders)
  await asker.raw(routeOf('POST /topics/:name/produce'), {
    path: '/topics/there/produce',
    headers: `Content-Type: ${MSGPACK_TYPE}\r\n`,
    body: Buffer.from([0xc1])
  })
  const withThem = await asker.ask('GET /topics/:name/consume', '/topics/there/consume?partition=1&offset=earliest')
  assert.match(withThem.text, /"headers"/)
  for (const query of ['offset=latest', 'timestamp_ms=0'])
    await asker.ask('GET /topics/:name/consume', `/topics/there/consume?partition=1&${query}`)
  await asker.ask('GET /topics/:name/consume', '/topics/there/consume?partition=0&offset=18446744073709551615')
  for (const query of ['', '?partition=1', '?timestamp_ms=0', '?partition=1&timestamp_ms=-1'])
    await asker.ask('GET /topics/:name/offsets', `/topics/there/offsets${query}`)
  await asker.ask('PUT /topics/:name/config', '/topics/there/config', { validate_schema: true })
  await asker.ask('PUT /topics/:name/config', '/topics/there/config', {
    validate_schema: false,
    retention_bytes: -1,
    cleanup_policy: 'compact'
  })
  await asker.ask('GET /topics/:name', '/topics/there')
  for (const body of [
    { member_id: 'm', generation: 1 },
    { member_id: 'm', generation: 99 },
    { member_id: 'stranger', generation: 1 }
  ])
    await asker.ask('POST /groups/:group/heartbeat', '/groups/g/heartbeat', body)
  for (const to of ['latest', { timestamp_ms: 0 }])
    await asker.ask('POST /groups/:group/reset', '/groups/g/reset', { topic: 'there', to })
  await asker.ask('POST /groups/:group/commit', '/groups/g/commit', { topic: 'there', partition: 9, offset: 0 })
  await asker.ask('GET /groups', '/groups')
  await asker.ask('GET /admin/producers', '/admin/producers')
}

const limit = { flags: { '--max-request-body-bytes': '10000' } }

onBothEngines(
  'the description of the API is true',
  async (t: TestContext, api) => {
    const checker = await descriptionOf(api)
    const asker = new Asker(api, checker)
    const there = await prepare(asker)
    const inOrder = routes.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))
    await t.test('of wrong requests, on every route', async () => {
      for (const route of routes) await askWrongly(asker, route)
    })
    await t.test('of right requests, on every route', async () => {
      for (const route of inOrder.filter(({ pattern }) => pattern !== '/topics/:name')) {
        const sample = sampleOf(route)
        const path = there.get(keyOf(route)) ?? targetOf(sample)
        const body = sample.body === undefined ? {} : { headers: json, body: JSON.stringify(sample.body) }
        const answer = await asker.raw(route, { path, ...body })
        assert.ok(answer.status < 300, `${keyOf(route)}: ${answer.status} ${answer.body}`)
        if (route.pattern !== '/groups/:group/join') continue
        await askFurther(asker)
        await askPacked(api, checker, 'POST /topics/:name/produce', '/topics/there/produce')
        await askPacked(api, checker, 'GET /topics/:name/consume', '/topics/there/consume?partition=1&offset=0')
      }
      await asker.ask('DELETE /topics/:name', '/topics/there')
    })
    await t.test('of all successes: each one that it has was seen', () => {
      assert.deepEqual(
        checker.successes(routes).filter(success => !checker.seen.has(success)),
        []
      )
    })
  },
  limit
)

onBothEngines(
  'the description of the API is true where keys are asked for',
  async (t: TestContext, api, broker) => {
    const checker = await descriptionOf(api)
    const admin = await firstKey(broker)
    const reader = await makeTestKey(admin.api, 'read:other')
    const asStranger = new Asker(api, checker)
    const asReader = new Asker(reader.api, checker)
    await t.test('of who sends no key, and of a key that may do nothing here, on every route', async () => {
      for (const route of routes) {
        const { path, body } = sampleOf(route)
        const need = operations[route.operation]
        const { security } = checker.operation(route)
        const refused = await asStranger.ask(keyOf(route), path, body)
        assert.equal(refused.status === 401, need !== 'nothing', keyOf(route))
        assert.equal(security.length > 0, need !== 'nothing', keyOf(route))
        await asReader.ask(keyOf(route), targetOf(sampleOf(route)), body)
      }
    })
    await t.test('of a key that was revoked', async () => {
      await new Asker(admin.api, checker).ask('DELETE /admin/keys/:key_id', `/admin/keys/${reader.id}`)
      for (const route of routes.filter(({ isOpen }) => !isOpen)) {
        const { path, body } = sampleOf(route)
        assert.equal((await asReader.ask(keyOf(route), path, body)).status, 401)
      }
    })
  },
  { flags: { '--auth': 'required' } }
)
