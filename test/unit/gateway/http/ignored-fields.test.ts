/** Which fields of a body are told as ignored: none that a route looks at, all others, in few and harmless characters. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { JSON_TYPE } from '../../../../src/gateway/http/accept.ts'
import { isConfluentPath } from '../../../../src/gateway/http/confluent/face.ts'
import { ignoredFields } from '../../../../src/gateway/http/ignored-fields.ts'
import type { Schema } from '../../../../src/gateway/http/openapi/schema.ts'
import { routes } from '../../../../src/gateway/http/routes.ts'
import { limits } from '../../../../src/model/limits.ts'
import { parseExactJson } from '../../../../src/wire/json/exact-json.ts'
import { samples, type Json } from '../../../support/bad-input.ts'

const told = (body: unknown, schema: Schema): string | null => {
  const parsed = parseExactJson(Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)))
  assert.ok(parsed.problem === null)
  return ignoredFields(parsed.value, schema)
}

function schemaOf(route: string): Schema {
  const docs = routes.find(({ method, pattern }) => `${method} ${pattern}` === route)?.docs
  return docs?.body?.[JSON_TYPE] ?? assert.fail(route)
}

/** A body with nothing but that field: `acls.0.action` is in a list. */
function onlyField(path: readonly string[]): Json {
  const [name, ...rest] = path
  if (name === undefined) return 1
  const value = onlyField(rest)
  return /^\d+$/.test(name) ? [value] : { [name]: value }
}

test('no field that a route has is told, whichever route', () => {
  let count = 0
  for (const { method, pattern, docs } of routes) {
    const schema = docs.body?.[JSON_TYPE]
    const sample = samples[`${method} ${pattern}`]
    if (schema === undefined || isConfluentPath(pattern) || sample === undefined) continue
    count++
    assert.equal(told(sample.body, schema), null, pattern)
    for (const field of Object.keys(sample.fields ?? {}))
      assert.equal(told(onlyField(field.split('.')), schema), null, `${pattern} ${field}`)
  }
  assert.ok(count > 10, String(count))
})

test('what a route does not have is told by its path', () => {
  const create = schemaOf('POST /topics')
  assert.equal(told({ name: 'a', partition: 2 }, create), 'partition')
  const nested = { name: 'a', config: { 'retention.ms': 2, retention_ms: 2 }, replicas: { n: 1 } }
  assert.equal(told(nested, create), 'config.retention.ms, replicas')
  const keys = schemaOf('POST /admin/keys')
  const acls = [
    { action: 'read', topic_prefix: 'a' },
    { action: 'read', topic: 'a' }
  ]
  assert.equal(told({ name: 'k', acls }, keys), 'acls[1].topic')
  const reset = schemaOf('POST /groups/:group/reset')
  assert.equal(told({ topic: 't', to: { timestamp_ms: 1, at: 2 } }, reset), 'to.at')
  assert.equal(told({ topic: 't', to: 'earliest' }, reset), null)
  for (const body of ['[{"x":1}]', '1', 'null', '"x"']) assert.equal(told(body, create), null, body)
})

test('names that objects have of themselves are told like others', () => {
  const body = '{"name":"a","__proto__":1,"constructor":1,"toString":1}'
  assert.equal(told(body, schemaOf('POST /topics')), '__proto__, constructor, toString')
})

test('however many there are and whatever they are called, few and harmless characters come of them', () => {
  const create = schemaOf('POST /topics')
  const names = ['a\r\nset-cookie: b', 'ä', ',', '\ud800', ' ', '', '"', `${'\u{10ffff}'.repeat(30_000)}`, 'x', 'y']
  const text = told(Object.fromEntries(names.map(name => [name, 1])), create) ?? assert.fail()
  assert.match(text, /^[A-Za-z0-9_.!~*'()%, -]+$/)
  assert.match(text, /^a%0D%0Aset-cookie%3A%20b, %C3%A4, %2C, %EF%BF%BD, %20, , %22, (%F4%8F%BF%BF)+\.\.\., \.\.\.$/)
  const many = Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`${'ä'.repeat(100)}${i}`, 1]))
  const acls = Array.from({ length: 3 }, () => ({ action: 'read', topic_prefix: 'a', ...many }))
  const long = told({ name: 'k', acls }, schemaOf('POST /admin/keys')) ?? assert.fail()
  assert.equal(long.split(', ').length, limits.ignoredFieldsMax + 1)
  assert.ok(long.length < 4096, String(long.length))
})
