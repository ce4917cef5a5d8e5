/**
 * Holds answers against the description of the API. It is stricter than the description: a field that is not described is
 * a fault here, though clients are to pass over it; and so is a status, a media type, a code or a header that is not.
 */
import assert from 'node:assert/strict'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { unpack } from 'msgpackr'
import { MSGPACK_TYPE } from '../../src/gateway/http/accept.ts'
import type { Route } from '../../src/gateway/http/route.ts'
import { pathOf } from '../../src/gateway/http/openapi/document.ts'
import type { Schema } from '../../src/gateway/http/openapi/schema.ts'

interface DescribedContent {
  readonly content?: Readonly<Record<string, { readonly schema: Schema }>>
}

interface DescribedAnswer extends DescribedContent {
  readonly description: string
  readonly headers?: Readonly<Record<string, unknown>>
  readonly 'x-error-codes'?: readonly string[]
}

export interface DescribedOperation {
  readonly operationId: string
  readonly security: readonly object[]
  readonly parameters?: readonly {
    readonly name: string
    readonly in: 'path' | 'query' | 'header'
    readonly required: boolean
    readonly schema: Schema
  }[]
  readonly requestBody?: DescribedContent
  readonly responses: Readonly<Record<string, DescribedAnswer>>
}

/** As much of a description as the tests look at. */
export interface Description {
  readonly openapi: string
  readonly info: { readonly version: string }
  readonly paths: Readonly<Record<string, Readonly<Record<string, DescribedOperation>>>>
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> }
}

/** What of an answer is looked at. */
export interface AnswerToCheck {
  readonly status: number
  /** Header by its name in lower case; null or undefined: it is not there. */
  header(name: string): string | null | undefined
  /** Bytes where it may be no text. */
  readonly body: string | Buffer
}

export type RouteToCheck = Pick<Route, 'method' | 'pattern'>

/** The validator of JSON Schema's own dialect, strict: what it does not know is a fault of the schema. */
export function newAjv(): Ajv2020 {
  const formats = { int64: true, uint64: true, double: true } as const
  const ajv = new Ajv2020({ strict: true, allowUnionTypes: true, allErrors: true, formats })
  // Where a schema that is taken out of the description finds the others.
  return ajv.addKeyword('components')
}

/** The same description with every object closed: of a schema that names fields, others are none. */
export function closed<T>(description: T): T {
  if (Array.isArray(description)) return description.map(closed) as T
  if (typeof description !== 'object' || description === null) return description
  const inner = Object.entries(description).map(([name, value]) => [name, closed(value as unknown)] as const)
  const isObject = 'properties' in description && !('additionalProperties' in description)
  return Object.fromEntries(isObject ? [...inner, ['additionalProperties', false]] : inner) as T
}

export class DescriptionChecker {
  readonly #description: Description
  readonly #ajv = newAjv()
  readonly #validators = new Map<Schema, ValidateFunction>()
  /** `GET /topics 200` of every answer that was held against it. */
  readonly seen = new Set<string>()

  constructor(description: Description) {
    this.#description = closed(description)
  }

  operation({ method, pattern }: RouteToCheck): DescribedOperation {
    const operation = this.#description.paths[pathOf(pattern)]?.[method.toLowerCase()]
    assert.ok(operation !== undefined, `${method} ${pattern} is not described`)
    return operation
  }

  /** Every success that is described, written as in `seen`. */
  successes(routes: readonly RouteToCheck[]): string[] {
    return routes.flatMap(route =>
      Object.keys(this.operation(route).responses)
        .filter(status => status.startsWith('2'))
        .map(status => `${route.method} ${route.pattern} ${status}`)
    )
  }

  /** What of the answer is not described; empty: nothing. */
  faultsOf(route: RouteToCheck, answer: AnswerToCheck): string[] {
    const { status } = answer
    const body = answer.body.toString()
    this.seen.add(`${route.method} ${route.pattern} ${status}`)
    const described = this.operation(route).responses[status]
    if (described === undefined) return [`status ${status} is not described: ${body.slice(0, 300)}`]
    const { content, headers = {}, 'x-error-codes': codes = [] } = described
    const faults = Object.keys(headers)
      .filter(name => (answer.header(name.toLowerCase()) ?? null) === null)
      .map(name => `the header ${name} is missing`)
    if (content === undefined) return body === '' ? faults : [...faults, `a body that is not described: ${body}`]
    const type = answer.header('content-type') ?? ''
    const schema = content[type]?.schema
    if (schema === undefined) return [...faults, `the content type '${type}' is not described`]
    const value = valueOf(type, answer.body)
    if (status >= 400) faults.push(...codeFaults(value, codes))
    return [...faults, ...this.schemaFaults(schema, value)]
  }

  /** Fails if anything of the answer is not described. */
  check(route: RouteToCheck, answer: AnswerToCheck, what = ''): void {
    assert.deepEqual(this.faultsOf(route, answer), [], `${route.method} ${route.pattern} ${what}`)
  }

  /** What of a JSON body that the broker takes is not described. */
  requestFaults(route: RouteToCheck, value: unknown): string[] {
    const schema = this.operation(route).requestBody?.content?.['application/json']?.schema
    return schema === undefined ? ['no body is described'] : this.schemaFaults(schema, value)
  }

  /** Why the value is not one of the schema. */
  schemaFaults(schema: Schema, value: unknown): string[] {
    let validator = this.#validators.get(schema)
    if (validator === undefined) {
      const { components } = this.#description
      validator = this.#ajv.compile({ ...schema, components })
      this.#validators.set(schema, validator)
    }
    if (validator(value)) return []
    const shown = JSON.stringify(value).slice(0, 500)
    return (validator.errors ?? []).map(
      ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}: ${shown}`
    )
  }
}

/** What the body says, as JSON would have it. */
function valueOf(type: string, body: string | Buffer): unknown {
  if (type.endsWith('json')) return JSON.parse(body.toString())
  return type === MSGPACK_TYPE ? plain(unpack(Buffer.from(body))) : body.toString()
}

/** Bytes as text, and whole numbers as numbers. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString()
  if (typeof value === 'bigint') return Number(value)
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
}

function codeFaults(value: unknown, codes: readonly string[]): string[] {
  const fields = typeof value === 'object' ? { ...value } : {}
  const { code = 'none', error_code: errorCode = code } = fields as Readonly<Record<string, unknown>>
  const shown = String(errorCode)
  return codes.includes(shown) ? [] : [`the code ${shown} is not described: ${JSON.stringify(value)}`]
}
