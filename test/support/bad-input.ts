/**
 * What is wrong with requests, made from a sample of each route: a path, a body and a query that it takes. A new route
 * needs a sample here; test/integration/bad-input.test.ts fails without.
 */
import { confluentSamples } from './confluent-samples.ts'

/** What a field or parameter may be. −1 besides: for a limit that can be cleared. */
export type Kind = 'text' | 'choice' | 'switch' | 'whole' | 'limit' | 'object' | 'array'

export interface Field {
  readonly kind: Kind
  readonly isRequired?: true
}

export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json }

export interface Sample {
  /** Served by the route, of the topic `there` where it names one. */
  readonly path: string
  /** Taken by the route; absent: it takes none. */
  readonly body?: { readonly [name: string]: Json }
  /** Fields of the body by path, as `records.0.value`. All there are. */
  readonly fields?: Readonly<Record<string, Field>>
  /** What it names is not there: that a request like it succeeds is not tried. */
  readonly isOfNothing?: true
  /** Any text is a name here, of something that is not there: such a request may succeed, and changes nothing. */
  readonly takesAnyName?: true
  /** Sent to paths with a wrong name, where some of those are names that would be made: it is refused for itself. */
  readonly refusedBody?: { readonly [name: string]: Json }
  /** Parameters of the query by name. All there are. */
  readonly query?: Readonly<Record<string, Parameter>>
}

export interface Parameter extends Field {
  readonly value: string
  /** It stands in place of this one: the sample has not both. */
  readonly replaces?: string
}

/** The parameters of a sample that go together. @param wanted is among them, and what it replaces is not. */
export function queryOf({ query = {} }: Sample, wanted: string | null = null): (readonly [string, string])[] {
  const left = wanted === null ? undefined : query[wanted]?.replaces
  return Object.entries(query)
    .filter(([name, { replaces }]) => name !== left && (replaces === undefined || name === wanted))
    .map(([name, { value }]) => [name, value] as const)
}

const config = {
  'config.retention_ms': { kind: 'limit' },
  'config.retention_bytes': { kind: 'limit' },
  'config.cleanup_policy': { kind: 'choice' },
  'config.segment_bytes': { kind: 'whole' },
  'config.tombstone_retention_ms': { kind: 'whole' },
  'config.validate_schema': { kind: 'switch' },
  'config.message_timestamp_type': { kind: 'choice' },
  'config.partitioner': { kind: 'choice' },
  'config.max_message_bytes': { kind: 'limit' },
  'config.segment_ms': { kind: 'limit' }
} as const
const configBody = {
  retention_ms: 1,
  retention_bytes: 1,
  cleanup_policy: 'delete',
  segment_bytes: 1000,
  tombstone_retention_ms: 1,
  validate_schema: false,
  message_timestamp_type: 'CreateTime',
  partitioner: 'fnv1a',
  max_message_bytes: 1000,
  segment_ms: 1000
}

/** By method and pattern, as in the table of routes. */
export const samples: Readonly<Record<string, Sample>> = {
  'POST /topics': {
    path: '/topics',
    body: { name: 'new', partitions: 1, config: configBody },
    fields: {
      name: { kind: 'text', isRequired: true },
      partitions: { kind: 'whole' },
      config: { kind: 'object' },
      ...config
    }
  },
  'GET /topics': { path: '/topics' },
  'GET /topics/:name': { path: '/topics/there' },
  'DELETE /topics/:name': { path: '/topics/there' },
  'GET /topics/:name/config': { path: '/topics/there/config' },
  'PUT /topics/:name/config': {
    path: '/topics/there/config',
    body: configBody,
    fields: Object.fromEntries(Object.entries(config).map(([name, field]) => [name.slice('config.'.length), field]))
  },
  'POST /topics/:name/produce': {
    path: '/topics/there/produce',
    body: {
      producer_id: 'p',
      encoding: 'utf8',
      records: [{ key: 'k', value: 'v', partition: 0, sequence: 0, headers: [['n', 'v']] }]
    },
    fields: {
      producer_id: { kind: 'text' },
      encoding: { kind: 'choice' },
      records: { kind: 'array', isRequired: true },
      'records.0': { kind: 'object', isRequired: true },
      'records.0.key': { kind: 'text' },
      'records.0.value': { kind: 'text', isRequired: true },
      'records.0.partition': { kind: 'whole' },
      'records.0.sequence': { kind: 'whole', isRequired: true },
      'records.0.headers': { kind: 'array' },
      'records.0.headers.0': { kind: 'array', isRequired: true },
      'records.0.headers.0.0': { kind: 'text', isRequired: true },
      'records.0.headers.0.1': { kind: 'text' }
    }
  },
  'GET /topics/:name/consume': {
    path: '/topics/there/consume',
    query: {
      partition: { kind: 'whole', isRequired: true, value: '0' },
      offset: { kind: 'whole', isRequired: true, value: '0' },
      timestamp_ms: { kind: 'limit', value: '0', replaces: 'offset' },
      max_records: { kind: 'whole', value: '1' },
      max_bytes: { kind: 'whole', value: '1' },
      encoding: { kind: 'choice', value: 'utf8' },
      max_wait_ms: { kind: 'whole', value: '0' },
      min_bytes: { kind: 'whole', value: '1' }
    }
  },
  'GET /topics/:name/stream': {
    path: '/topics/there/stream',
    query: {
      partition: { kind: 'whole', value: '0' },
      offset: { kind: 'whole', value: '0' },
      timestamp_ms: { kind: 'limit', value: '0', replaces: 'offset' },
      last_event_id: { kind: 'text', value: '0' },
      max_bytes: { kind: 'whole', value: '1' },
      encoding: { kind: 'choice', value: 'utf8' }
    }
  },
  'GET /topics/:name/offsets': {
    path: '/topics/there/offsets',
    query: { partition: { kind: 'whole', value: '0' }, timestamp_ms: { kind: 'limit', value: '0' } }
  },
  'POST /topics/:name/partitions': {
    path: '/topics/there/partitions',
    body: { partitions: 5 },
    fields: { partitions: { kind: 'whole', isRequired: true } }
  },
  'POST /topics/:name/delete-records': {
    path: '/topics/there/delete-records',
    body: { partition: 0, offset: 0 },
    fields: { partition: { kind: 'whole', isRequired: true }, offset: { kind: 'whole', isRequired: true } }
  },
  'POST /groups/:group/commit': {
    path: '/groups/g/commit',
    body: { topic: 'there', partition: 0, offset: 0 },
    fields: {
      topic: { kind: 'text', isRequired: true },
      partition: { kind: 'whole', isRequired: true },
      offset: { kind: 'whole', isRequired: true },
      member_id: { kind: 'text' },
      generation: { kind: 'whole' }
    }
  },
  'GET /groups/:group/offsets': { path: '/groups/g/offsets', takesAnyName: true },
  'GET /groups/:group/consume': {
    path: '/groups/g/consume',
    takesAnyName: true,
    query: {
      topic: { kind: 'text', isRequired: true, value: 'there' },
      partition: { kind: 'whole', isRequired: true, value: '0' },
      max_records: { kind: 'whole', value: '1' },
      max_bytes: { kind: 'whole', value: '1' },
      encoding: { kind: 'choice', value: 'utf8' },
      max_wait_ms: { kind: 'whole', value: '0' },
      min_bytes: { kind: 'whole', value: '1' }
    }
  },
  'POST /groups/:group/join': {
    path: '/groups/g/join',
    body: { topics: ['there'], member_id: 'm' },
    fields: {
      topics: { kind: 'array', isRequired: true },
      'topics.0': { kind: 'text', isRequired: true },
      member_id: { kind: 'text' }
    }
  },
  'POST /groups/:group/heartbeat': {
    path: '/groups/g/heartbeat',
    takesAnyName: true,
    body: { member_id: 'm', generation: 1 },
    fields: { member_id: { kind: 'text', isRequired: true }, generation: { kind: 'whole', isRequired: true } }
  },
  'POST /groups/:group/leave': {
    path: '/groups/g/leave',
    takesAnyName: true,
    body: { member_id: 'nobody' },
    fields: { member_id: { kind: 'text', isRequired: true } }
  },
  'GET /groups/:group/assignment': {
    path: '/groups/g/assignment',
    query: { member_id: { kind: 'text', isRequired: true, value: 'm' } }
  },
  'GET /groups/:group/stream': {
    path: '/groups/g/stream',
    query: {
      member_id: { kind: 'text', isRequired: true, value: 'm' },
      max_bytes: { kind: 'whole', value: '1' },
      encoding: { kind: 'choice', value: 'utf8' }
    }
  },
  'POST /groups/:group/reset': {
    path: '/groups/g/reset',
    body: { topic: 'there', partition: 0, to: 'earliest' },
    fields: {
      topic: { kind: 'text', isRequired: true },
      partition: { kind: 'whole' },
      to: { kind: 'choice', isRequired: true }
    }
  },
  'GET /groups/:group': { path: '/groups/g' },
  'DELETE /groups/:group': { path: '/groups/nothing', isOfNothing: true },
  'GET /groups': { path: '/groups' },
  'POST /admin/reset-offsets': {
    path: '/admin/reset-offsets',
    body: { topic: 'there' },
    fields: { topic: { kind: 'text', isRequired: true } }
  },
  'POST /schemas': {
    path: '/schemas',
    body: { subject: 'there', type: 'json_schema', schema: '{}' },
    fields: {
      subject: { kind: 'text', isRequired: true },
      type: { kind: 'choice' },
      schema: { kind: 'text', isRequired: true }
    }
  },
  'GET /schemas': { path: '/schemas' },
  'GET /schemas/:schema_id': { path: '/schemas/1' },
  'GET /subjects': { path: '/subjects' },
  'GET /subjects/:subject/versions': { path: '/subjects/there/versions' },
  'GET /subjects/:subject/versions/:version': { path: '/subjects/there/versions/latest' },
  'GET /subjects/:subject/config': { path: '/subjects/there/config', takesAnyName: true },
  'PUT /subjects/:subject/config': {
    path: '/subjects/there/config',
    // Of `..`, which a subject may be called.
    takesAnyName: true,
    body: { compatibility: 'backward' },
    fields: { compatibility: { kind: 'choice' } }
  },
  'GET /admin/schemas/config': { path: '/admin/schemas/config' },
  'PUT /admin/schemas/config': {
    path: '/admin/schemas/config',
    body: { compatibility: 'default' },
    fields: { compatibility: { kind: 'choice' } }
  },
  ...confluentSamples,
  'GET /metrics': { path: '/metrics' },
  'GET /admin/producers': { path: '/admin/producers' },
  'DELETE /admin/producers/:id': { path: '/admin/producers/p', isOfNothing: true },
  'POST /admin/run-retention': { path: '/admin/run-retention' },
  'GET /admin/tiered/:topic/:partition': { path: '/admin/tiered/there/0' },
  'POST /admin/run-compaction': { path: '/admin/run-compaction' },
  'POST /admin/keys': {
    path: '/admin/keys',
    body: {
      name: 'key',
      acls: [{ action: 'read', topic_prefix: '*' }],
      produce_bytes_per_sec: 1,
      consume_bytes_per_sec: 1
    },
    fields: {
      name: { kind: 'text', isRequired: true },
      acls: { kind: 'array', isRequired: true },
      'acls.0': { kind: 'object', isRequired: true },
      'acls.0.action': { kind: 'choice', isRequired: true },
      'acls.0.topic_prefix': { kind: 'text', isRequired: true },
      produce_bytes_per_sec: { kind: 'whole' },
      consume_bytes_per_sec: { kind: 'whole' }
    }
  },
  'GET /admin/keys': { path: '/admin/keys' },
  'DELETE /admin/keys/:key_id': { path: '/admin/keys/key_000000000000', isOfNothing: true },
  'GET /raft': { path: '/raft' },
  'GET /healthz': { path: '/healthz' },
  'GET /readyz': { path: '/readyz' },
  'GET /openapi.json': { path: '/openapi.json' }
}

/** As JSON text: numbers beyond a double among them. */
const wrongValues: Readonly<Record<Kind, readonly string[]>> = {
  text: ['5', '-1', '1.5', 'true', '[]', '{}'],
  choice: ['5', 'true', '[]', '{}', '"nonsense"', '""'],
  switch: ['0', '1', '"true"', '""', '[]', '{}'],
  whole: ['"5"', '-1', '1.5', '1e3', '1e400', '18446744073709551616', `1${'0'.repeat(400)}`, 'true', '[]', '{}'],
  limit: ['"5"', '-2', '1.5', '18446744073709551616', 'true', '[]', '{}'],
  object: ['"x"', '5', 'true', '[]'],
  array: ['"x"', '5', 'true', '{}']
}

/** In a query everything is text. */
const wrongTexts: Readonly<Record<Kind, readonly string[]>> = {
  text: [],
  choice: ['nonsense', '', 'null'],
  switch: ['yes', '', 'null'],
  whole: ['', '-1', '1.5', '1e3', '0x1', 'null', 'abc', '%zz', '%00', '18446744073709551616', '9'.repeat(400)],
  limit: ['', '1.5', '1e3', 'null', 'abc', '%zz', '18446744073709551616', '-9223372036854775809', '9'.repeat(400)],
  object: [],
  array: []
}

/** Stands where a raw JSON text goes. */
const MARK = '\u2063'

function isParent(value: Json | undefined): value is { readonly [name: string]: Json } {
  return typeof value === 'object' && value !== null
}

/** A copy of the body with another value at the path; undefined: without it. */
function changed(body: Json, path: readonly string[], value: Json | undefined): Json {
  const [name = '', ...rest] = path
  if (!isParent(body)) return body
  const inner = rest.length === 0 ? value : changed(body[name] ?? null, rest, value)
  if (Array.isArray(body)) return body.map((item: Json, i) => (String(i) === name ? (inner ?? null) : item))
  const entries = Object.entries(body).filter(([other]) => other !== name)
  return Object.fromEntries(inner === undefined ? entries : [...entries, [name, inner]])
}

/** Bodies with one wrong field each, and what is wrong. */
export function wrongBodies({ body, fields = {} }: Sample): { readonly what: string; readonly text: string }[] {
  if (body === undefined) return []
  const whole = ['5', '"x"', 'null', '[]', 'true'].map(text => ({ what: `a body of ${text}`, text }))
  const each = Object.entries(fields).flatMap(([path, { kind, isRequired }]) => {
    const parts = path.split('.')
    const marked = JSON.stringify(changed(body, parts, MARK))
    const wrong = wrongValues[kind].map(value => ({
      what: `${path}: ${value}`,
      text: marked.replace(`"${MARK}"`, value)
    }))
    // The last of equal names counts.
    const last = marked.lastIndexOf(`"${MARK}"`)
    const twice = `${marked.slice(0, last)}null,"${parts.at(-1)}":${wrongValues[kind][0]}${marked.slice(last + 3)}`
    const double = /^\d+$/.test(parts.at(-1) ?? '') ? [] : [{ what: `${path}, twice, the last one wrong`, text: twice }]
    if (isRequired === undefined) return [...wrong, ...double]
    const missing = JSON.stringify(changed(body, parts, undefined))
    const nothing = JSON.stringify(changed(body, parts, null))
    return [...wrong, ...double, { what: `${path} missing`, text: missing }, { what: `${path}: null`, text: nothing }]
  })
  return [...whole, ...each]
}

/** Queries with one wrong parameter each, and what is wrong. */
export function wrongQueries(sample: Sample): { readonly what: string; readonly text: string }[] {
  const join = (entries: readonly (readonly [string, string])[]): string =>
    entries.map(([name, value]) => `${name}=${value}`).join('&')
  return Object.entries(sample.query ?? {}).flatMap(([name, { kind, isRequired, value }]) => {
    const all = queryOf(sample, name)
    const others = all.filter(([other]) => other !== name)
    const wrong = wrongTexts[kind].map(text => ({ what: `${name}=${text}`, text: join([...others, [name, text]]) }))
    const double = { what: `${name}, twice`, text: join([...all, [name, value]]) }
    return [...wrong, double, ...(isRequired === undefined ? [] : [{ what: `${name} missing`, text: join(others) }])]
  })
}

/** What may stand where a route has a name, and is none: escapes, ways up, and what no file name could be. */
const wrongNames = [
  '..',
  '%2e%2e',
  '.%2E',
  '..%2f..%2fetc%2fpasswd',
  '%2Fetc%2Fpasswd',
  '..%5c..%5cwindows',
  '%00',
  'there%00',
  '%zz',
  '%',
  '%ff%fe',
  '%c0%ae%c0%ae',
  'a%0d%0ab',
  'x'.repeat(300),
  '%F0%9F%92%A5'
]

/** Paths of a pattern with one wrong name each; the other names are good ones. */
export function wrongPaths(pattern: string, sample: Sample): string[] {
  const good = sample.path.split('/')
  const search = queryOf(sample).map(([name, value]) => `${name}=${value}`)
  return pattern.split('/').flatMap((part, i) => {
    if (!part.startsWith(':')) return []
    return wrongNames.map(name => `${good.with(i, name).join('/')}${search.length === 0 ? '' : '?'}${search.join('&')}`)
  })
}
