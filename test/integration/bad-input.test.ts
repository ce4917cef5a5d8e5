/**
 * What is wrong with a request is told to its sender, and nothing of it is done: every route of the table, on both engines,
 * with everything that test/support/bad-input.ts can make of it.
 */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { Route } from '../../src/gateway/http/route.ts'
import { routes } from '../../src/gateway/http/routes.ts'
import { errorTable, type ErrorSpec } from '../../src/model/errors.ts'
import { queryOf, samples, wrongBodies, wrongPaths, wrongQueries, type Sample } from '../support/bad-input.ts'
import { CONFLUENT_TYPE } from '../support/confluent.ts'
import { HttpApi, onBothEngines, parse } from '../support/http-api.ts'
import { requestBytes, sendBytes, sendRaw, type RawAnswer } from '../support/raw-http.ts'

const json = 'Content-Type: application/json\r\n'
const LIMIT = 20_000

/** Everything that a request could have changed. */
async function stateOf(api: HttpApi): Promise<unknown> {
  const topics = parse<{ topics: string[] }>(await api.get('/topics')).topics
  const producers = parse<unknown>(await api.get('/admin/producers'))
  const keys = parse<unknown>(await api.get('/admin/keys'))
  const groups = parse<unknown>(await api.get('/groups'))
  const paths = ['/schemas', '/subjects', '/subjects/there/config', '/admin/schemas/config']
  const schemas = await Promise.all(paths.map(async path => parse<unknown>(await api.get(path))))
  return { producers, keys, groups, schemas, topics: await Promise.all(topics.map(topic => api.describe(topic))) }
}

/** What the codes of the routes for Confluent's clients stand for, where it is not the status alone. */
const confluentCodes: Readonly<Record<number, readonly [status: number, code: string]>> = {
  400: [400, 'FIELD_INVALID'],
  404: [404, 'ROUTE_NOT_FOUND'],
  405: [405, 'METHOD_NOT_ALLOWED'],
  413: [413, 'BODY_TOO_LARGE'],
  415: [415, 'MEDIA_TYPE'],
  40401: [404, 'SUBJECT_NOT_FOUND'],
  40402: [404, 'VERSION_NOT_FOUND'],
  40403: [404, 'SCHEMA_NOT_FOUND'],
  40408: [404, 'LEVEL_NOT_FOUND'],
  42201: [422, 'FIELD_INVALID'],
  42202: [422, 'FIELD_INVALID'],
  42203: [422, 'FIELD_INVALID'],
  42208: [422, 'NAME_INVALID']
}

/** The same of those routes, whose refusals have another shape. */
function confluentRefusalOf(answer: RawAnswer, what: string): { code: string; error: string } {
  const body = JSON.parse(answer.body) as Record<string, unknown>
  assert.deepEqual(Object.keys(body), ['error_code', 'message'], what)
  assert.match(answer.headers.get('x-request-id') ?? '', /^[0-9a-f]{8}$/, what)
  const error = String(body['message'])
  const [status, code] = confluentCodes[Number(body['error_code'])] ?? []
  assert.equal(answer.status, status, `${what}: ${answer.body}`)
  return { code: error.startsWith('the request body is not valid JSON') ? 'BODY_NOT_JSON' : (code ?? ''), error }
}

/** The fields of a refusal, whose shape is checked on the way (D4). */
function refusalOf(answer: RawAnswer, what: string): { code: string; error: string } {
  if (answer.headers.get('content-type') === CONFLUENT_TYPE) return confluentRefusalOf(answer, what)
  assert.equal(answer.headers.get('content-type'), 'application/json', what)
  const body = JSON.parse(answer.body) as Record<string, unknown>
  const { error, code, retry, written, request_id: id } = body
  assert.ok(typeof error === 'string' && typeof code === 'string', `${what}: ${answer.body}`)
  assert.match(String(id), /^[0-9a-f]{8}$/, what)
  const spec = (errorTable as Readonly<Record<string, ErrorSpec>>)[code]
  assert.deepEqual([spec?.http, spec?.retry, written], [answer.status, retry, 'no'], `${what}: ${answer.body}`)
  return { code, error }
}

function assertRefusal(answer: RawAnswer, statuses: readonly number[], codes: RegExp, what: string): void {
  // What is 400 elsewhere.
  const status = answer.status === 422 ? 400 : answer.status
  assert.ok(statuses.includes(status), `${what}: ${answer.status} ${answer.body}`)
  assert.match(refusalOf(answer, what).code, codes, what)
}

const keyOf = ({ method, pattern }: Route): string => `${method} ${pattern}`

function sampleOf(route: Route): Sample {
  const sample = samples[keyOf(route)]
  assert.ok(sample !== undefined, `test/support/bad-input.ts has no sample of ${keyOf(route)}`)
  return sample
}

async function sendWrongMethods(api: HttpApi): Promise<void> {
  for (const { pattern } of routes) {
    const served = routes.filter(route => route.pattern === pattern).map(({ method }) => method as string)
    if (served.includes('GET')) served.push('HEAD')
    const { path } = sampleOf(routes.find(route => route.pattern === pattern) as Route)
    for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE']) {
      if (served.includes(method)) continue
      const what = `${method} ${path}`
      const answer = await sendRaw(api.url, { method, path })
      assert.deepEqual([answer.status, answer.headers.get('allow')], [405, served.sort().join(', ')], what)
      if (method === 'HEAD') assert.equal(answer.body, '', what)
      else assertRefusal(answer, [405], /^METHOD_NOT_ALLOWED$/, what)
    }
  }
}

const fieldCodes = /^(FIELD_INVALID|FIELD_RANGE|NAME_INVALID|PARTITION_RANGE|SEQUENCE_INVALID)$/

async function sendWrongFields(api: HttpApi, { method }: Route, sample: Sample): Promise<void> {
  for (const { what, text } of wrongBodies(sample)) {
    const answer = await sendRaw(api.url, { method, path: sample.path, headers: json, body: text })
    assertRefusal(answer, [400], fieldCodes, `${what}: ${text.slice(0, 300)}`)
  }
  for (const { what, text } of wrongQueries(sample)) {
    assertRefusal(await sendRaw(api.url, { method, path: `${sample.path}?${text}` }), [400], fieldCodes, what)
  }
}

async function sendWrongPaths(api: HttpApi, route: Route, sample: Sample): Promise<void> {
  const sent = sample.refusedBody ?? sample.body
  const body = sent === undefined ? {} : { headers: json, body: JSON.stringify(sent) }
  for (const path of wrongPaths(route.pattern, sample)) {
    const answer = await sendRaw(api.url, { method: route.method, path, ...body })
    if (sample.takesAnyName === true && answer.status < 300) continue
    const codes = /^(FIELD_INVALID|NAME_INVALID|(?!ROUTE).*_NOT_FOUND)$/
    assertRefusal(answer, [400, 404], codes, `${route.method} ${path}`)
    assert.ok(!/root:|no such file|ENOENT/.test(answer.body), answer.body)
  }
  for (const path of [`${sample.path}/`, `${sample.path}/..`, `/..${sample.path}`, `/%2e%2e${sample.path}`]) {
    const answer = await sendRaw(api.url, { method: route.method, path, ...body })
    if (sample.takesAnyName === true && answer.status < 300) continue
    // With one more name behind it, a path may be that of another route.
    assertRefusal(answer, [400, 404, 405], /NOT_FOUND$|_INVALID$|^METHOD_NOT_ALLOWED$/, `${route.method} ${path}`)
  }
}

async function sendWrongBodies(api: HttpApi, { method }: Route, sample: Sample): Promise<void> {
  const { path } = sample
  if (sample.body === undefined) return
  const good = JSON.stringify(sample.body)
  for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonx', '']) {
    const headers = type === '' ? '' : `Content-Type: ${type}\r\n`
    assertRefusal(await sendRaw(api.url, { method, path, headers, body: good }), [415], /^MEDIA_TYPE$/, type)
  }
  const broken = ['', '{', `${good}x`, `${good}${good}`, good.replaceAll('"', "'"), good.slice(0, -1), `\ufeff${good}`]
  const bytes = [Buffer.concat([Buffer.from(good.slice(0, -2)), Buffer.from([0xff]), Buffer.from(good.slice(-2))])]
  bytes.push(...broken.map(text => Buffer.from(text)), Buffer.from(good, 'utf16le'), Buffer.from('['.repeat(5_000)))
  for (const body of bytes) {
    const answer = await sendRaw(api.url, { method, path, headers: json, body })
    assertRefusal(answer, [400], /^BODY_NOT_JSON$/, `${method} ${path} ${body.subarray(0, 80).toString()}`)
  }
  const tooLarge = [
    requestBytes({ method, path, headers: json, body: good.padEnd(LIMIT + 1) }),
    requestBytes({ method, path, headers: `${json}Content-Length: 99999999999\r\n`, body: good }),
    chunked(method, path, good.padEnd(LIMIT + 1))
  ]
  for (const request of tooLarge) {
    const answer = await sendBytes(api.url, request)
    assert.ok(answer !== null)
    assertRefusal(answer, [413], /^BODY_TOO_LARGE$/, `${method} ${path}`)
  }
}

function chunked(method: string, path: string, body: string, size = Buffer.byteLength(body).toString(16)): Buffer {
  const headers = `${json}Transfer-Encoding: chunked\r\n`
  return requestBytes({ method, path, headers, body: `${size}\r\n${body}\r\n0\r\n\r\n` })
}

/** Requests that end otherwise than they say. What the parser of uWebSockets.js refuses by itself is a page of HTML. */
async function sendWrongLengths(api: HttpApi, { method }: Route, sample: Sample): Promise<void> {
  const { path } = sample
  const body = JSON.stringify(sample.body ?? {})
  const length = `Content-Length: ${body.length}\r\n`
  for (const headers of [
    `${length}${length}`,
    `${length}Content-Length: 1\r\n`,
    `${length}Transfer-Encoding: chunked\r\n`,
    'Content-Length: -1\r\n',
    'Content-Length: 1e3\r\n',
    'Transfer-Encoding: gzip\r\n'
  ]) {
    const answer = await sendBytes(api.url, requestBytes({ method, path, headers: json + headers, body }), 'closed')
    assert.equal(answer?.status, 400, `${method} ${path} ${headers}`)
    if (answer.body.startsWith('{')) refusalOf(answer, headers)
  }
  if (sample.body === undefined) return
  // Less comes than was announced: the request never was one.
  const short = requestBytes({ method, path, headers: `${json}Content-Length: ${body.length + 1}\r\n`, body })
  const cut = chunked(method, path, body, (body.length + 9).toString(16))
  for (const bytes of [short, cut]) {
    const answer = await sendBytes(api.url, bytes, 'end')
    assert.ok(answer === null || answer.status >= 400, `${method} ${path} ${answer?.status}`)
  }
  const nonsense = await sendBytes(api.url, chunked(method, path, body, 'zz'), 'closed')
  assert.ok(nonsense === null || nonsense.status === 400, `${method} ${path} ${nonsense?.status}`)
}

/** What is not known is passed over, wherever it stands; so is a body that nobody asked for. */
async function sendUnknown(api: HttpApi, route: Route): Promise<void> {
  const { path, body } = sampleOf(route)
  const search = queryOf(sampleOf(route)).map(([name, value]) => `${name}=${value}`)
  const target = `${path}?${[...search, 'nonsense=%zz'].join('&')}`
  const text = JSON.stringify({ ...body, nonsense: { deep: [1e300] }, __proto__x: 1, constructor: null })
  const answer = await sendRaw(api.url, { method: route.method, path: target, headers: json, body: text })
  assert.ok(answer.status < 300, `${keyOf(route)}: ${answer.status} ${answer.body}`)
}

const bodies = { flags: { '--max-request-body-bytes': String(LIMIT) } }

onBothEngines(
  'bad input is refused in JSON by its class, and changes nothing',
  async (t: TestContext, api) => {
    await api.createTopic('there', 2)
    await api.produce('there', [{ value: 'v', partition: 0 }])
    parse<unknown>(await api.post('/schemas', { subject: 'there', schema: '{}' }))
    const before = await stateOf(api)
    const unchanged = async (): Promise<void> => assert.deepEqual(await stateOf(api), before)
    await t.test('every route has a sample, and every sample a route', () => {
      assert.deepEqual(Object.keys(samples).sort(), routes.map(keyOf).sort())
    })
    await t.test('methods that a path does not have', () => sendWrongMethods(api).then(unchanged))
    for (const route of routes) {
      const sample = sampleOf(route)
      await t.test(`${keyOf(route)}: fields and parameters that are missing, ill-typed, out of range or twice`, () =>
        sendWrongFields(api, route, sample).then(unchanged)
      )
      await t.test(`${keyOf(route)}: paths with escapes, ways up and what is no name`, () =>
        sendWrongPaths(api, route, sample).then(unchanged)
      )
      await t.test(`${keyOf(route)}: bodies of another type, that are no JSON, or too large`, () =>
        sendWrongBodies(api, route, sample).then(unchanged)
      )
      await t.test(`${keyOf(route)}: bodies that end otherwise than they say`, () =>
        sendWrongLengths(api, route, sample).then(unchanged)
      )
    }
    for (const route of routes.toSorted((a, b) => Number(a.method === 'DELETE') - Number(b.method === 'DELETE'))) {
      if (sampleOf(route).isOfNothing === true) continue
      await t.test(`${keyOf(route)}: unknown fields and parameters are passed over`, () => sendUnknown(api, route))
    }
    await t.test('and after all of that the broker serves', async () => {
      await api.createTopic('after')
      assert.deepEqual(await api.produce('after', [{ value: 'v' }]), [{ partition: 0, offset: 0 }])
    })
  },
  bodies
)
