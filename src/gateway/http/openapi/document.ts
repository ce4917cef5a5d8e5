/**
 * The description of the API in OpenAPI 3.1, written from the table of routes that serves. Pure; main thread.
 * What every route of a kind may answer is added here: it follows from the access that an operation takes, from the path,
 * and from there being a body.
 */
import { assert } from '../../../base/assert.ts'
import { operations } from '../../../model/access.ts'
import { errorTable, type ErrorCode } from '../../../model/errors.ts'
import { JSON_TYPE } from '../accept.ts'
import { CONFLUENT_TYPE, isConfluentPath } from '../confluent/face.ts'
import { confluentAnswerOf } from '../confluent/refusal.ts'
import type { Route } from '../route.ts'
import { nouns } from './nouns.ts'
import { tags, type Content, type Parameters, type RouteDocs } from './route-docs.ts'
import { noun, type Schema } from './schema.ts'

const ALL_ERRORS = ['FIELD_INVALID', 'HOST_REFUSED', 'STOPPING', 'INTERNAL'] as const
const KEY_ERRORS = ['NOT_READY', 'UNAUTHENTICATED', 'KEY_REVOKED'] as const
const BODY_ERRORS = ['MEDIA_TYPE', 'BODY_TOO_LARGE', 'BODY_TIMEOUT', 'BODY_NOT_JSON', 'OVERLOADED'] as const

/** Any of them lets a request in. Not asked for while `auth` is disabled, and then ignored. */
const securitySchemes = {
  bearer: { type: 'http', scheme: 'bearer', description: 'The secret of a key. It counts where both are there.' },
  esKey: { type: 'apiKey', in: 'header', name: 'X-Es-Key', description: 'The secret of a key.' },
  basic: { type: 'http', scheme: 'basic', description: 'The secret of a key as the password of any user.' }
} as const
const withKey = [{ bearer: [] }, { esKey: [] }]
const withKeyOrPassword = [...withKey, { basic: [] }]

const text = { type: 'string' } as const
const headers: Readonly<Record<number, object>> = {
  401: { 'WWW-Authenticate': { description: 'The scheme by which a key is sent.', schema: text } },
  429: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } },
  503: { 'Retry-After': { $ref: '#/components/headers/RetryAfter' } }
}

/** Every code that a route may be refused with. */
export function errorsOf({ operation, docs }: Route): readonly ErrorCode[] {
  const need = operations[operation]
  const mayBeForbidden = need !== 'nothing' && need !== 'key'
  const all = [
    ...(docs.errors ?? []),
    ...ALL_ERRORS,
    ...(need === 'nothing' ? [] : KEY_ERRORS),
    ...(mayBeForbidden ? (['FORBIDDEN'] as const) : []),
    ...(docs.body === undefined ? [] : BODY_ERRORS)
  ]
  return [...new Set<ErrorCode>(all)]
}

const contentOf = (content: Content): object =>
  Object.fromEntries(Object.entries(content).map(([type, schema]) => [type, { schema }]))

/** One way in which a request is refused. */
interface Refusal {
  readonly status: number
  /** As the body of the answer has it. */
  readonly code: string
  readonly about: string
}

const isForConfluent = ({ pattern }: Route): boolean => isConfluentPath(pattern)

/** Every way in which a route may refuse. */
function refusalsOf(route: Route): readonly Refusal[] {
  const codes = errorsOf(route)
  if (isForConfluent(route)) return codes.flatMap(code => confluentRefusalsOf(code, route.docs))
  return codes.map(code => ({ status: errorTable[code].http, code, about: errorTable[code].text }))
}

/** In the shape for Confluent's clients one error has several codes, by the field that is not valid. */
function confluentRefusalsOf(code: ErrorCode, { path, query, body }: RouteDocs): readonly Refusal[] {
  const inBody = Object.values(body ?? {}).flatMap(({ properties }) => Object.keys(properties ?? {}))
  const names = [null, ...Object.keys({ ...path, ...query }), ...inBody]
  const answers = new Map(names.map(name => confluentAnswerOf(code, name)).map(answer => [answer.join(), answer]))
  const about = errorTable[code].text
  return [...answers.values()].map(([status, errorCode]) => ({ status, code: String(errorCode), about }))
}

/** Headers that every answer with that status has. */
function headersOf(route: Route, status: number): object {
  const requestId = { 'X-Request-Id': { description: 'Of this refusal; the log of the broker has it.', schema: text } }
  return { ...headers[status], ...(isForConfluent(route) && status >= 400 ? requestId : {}) }
}

/** The answers of a route by status. `x-error-codes`: what the code of a refusal may be. */
function answersOf(route: Route): object {
  const byStatus = Map.groupBy(refusalsOf(route), ({ status }) => status)
  const { answers } = route.docs
  const error = isForConfluent(route) ? { [CONFLUENT_TYPE]: noun('ConfluentError') } : { [JSON_TYPE]: noun('Error') }
  const statuses = new Set([...Object.keys(answers).map(Number), ...byStatus.keys()])
  const entries = [...statuses]
    .sort((a, b) => a - b)
    .map(status => {
      const { about, content } = answers[status] ?? { content: error }
      const refusals = byStatus.get(status)
      const sent = headersOf(route, status)
      return [
        status,
        {
          description: about ?? refusals?.map(refusal => `\`${refusal.code}\`: ${refusal.about}`).join('\n\n'),
          ...(Object.keys(sent).length === 0 ? {} : { headers: sent }),
          ...(content === undefined ? {} : { content: contentOf(content) }),
          ...(refusals === undefined ? {} : { 'x-error-codes': [...new Set(refusals.map(({ code }) => code))] })
        }
      ]
    })
  return Object.fromEntries(entries)
}

function parametersOf(parameters: Parameters, place: 'path' | 'query' | 'header'): object[] {
  return Object.entries(parameters).map(([name, { about, schema, isRequired }]) => {
    return { name, in: place, description: about, required: place === 'path' || isRequired === true, schema }
  })
}

/** A pattern as OpenAPI writes it: `/topics/{name}`. */
export function pathOf(pattern: string): string {
  return pattern.replaceAll(/:(\w+)/g, '{$1}')
}

function securityOf(route: Route): readonly object[] {
  if (operations[route.operation] === 'nothing') return []
  return isForConfluent(route) ? withKeyOrPassword : withKey
}

function operationOf(route: Route): object {
  const { pattern, docs, operation } = route
  const names = [...pattern.matchAll(/:(\w+)/g)].map(match => match[1])
  assert(names.join() === Object.keys(docs.path ?? {}).join(), 'the names of a path are documented, in order')
  const parameters = [
    ...parametersOf(docs.path ?? {}, 'path'),
    ...parametersOf(docs.query ?? {}, 'query'),
    ...parametersOf(docs.headers ?? {}, 'header')
  ]
  const takes = `Takes of a key: ${operations[operation]}.`
  return {
    operationId: docs.id,
    tags: [docs.tag],
    summary: docs.about,
    description: docs.details === undefined ? takes : `${docs.details} ${takes}`,
    security: securityOf(route),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(docs.body === undefined ? {} : { requestBody: { required: true, content: contentOf(docs.body) } }),
    responses: answersOf(route)
  }
}

/** The description of the API of these routes. @param version of the broker. */
export function openApiDocument(routes: readonly Route[], version: string): object {
  const ids = new Set(routes.map(({ docs }) => docs.id))
  assert(ids.size === routes.length, 'no two routes have one operation id')
  const patterns = [...new Set(routes.map(({ pattern }) => pattern))]
  const paths = patterns.map(pattern => {
    const here = routes.filter(route => route.pattern === pattern)
    return [pathOf(pattern), Object.fromEntries(here.map(route => [route.method.toLowerCase(), operationOf(route)]))]
  })
  const schemas: Readonly<Record<string, Schema>> = nouns
  return {
    openapi: '3.1.0',
    info: {
      title: 'Millrace',
      version,
      summary: 'A durable, Kafka-shaped event log.',
      description:
        'HEAD works wherever GET does. Whole numbers up to 2^64 − 1 are exact in both directions. Fields and parameters ' +
        'that are not known are passed over; an optional field that is null counts as absent. Where no authentication is ' +
        'asked for (`--auth disabled`), no key is needed anywhere.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' }
    },
    tags: Object.entries(tags).map(([name, description]) => ({ name, description })),
    paths: Object.fromEntries(paths),
    components: {
      schemas,
      securitySchemes,
      headers: { RetryAfter: { description: 'Whole seconds.', schema: { type: 'integer', minimum: 0 } } }
    }
  }
}
