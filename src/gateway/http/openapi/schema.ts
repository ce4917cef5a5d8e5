/**
 * JSON Schema (2020-12), as much of it as the description of the API needs, and short words to write it with. Pure; any
 * thread. Numbers of 64 bits are `integer` with the formats int64 and uint64: a maximum would be no number of JSON's.
 */
import type { NounName } from './noun-names.ts'

type Primitive = 'string' | 'integer' | 'number' | 'boolean' | 'object' | 'array' | 'null'

/** One schema. What is not said of a value is allowed. */
export interface Schema {
  readonly $ref?: string
  readonly type?: Primitive | readonly Primitive[]
  readonly description?: string
  readonly format?: 'int64' | 'uint64' | 'double'
  readonly const?: string
  readonly enum?: readonly (string | null)[]
  readonly default?: string | number | null
  readonly minimum?: number
  readonly maximum?: number
  readonly minLength?: number
  readonly pattern?: string
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: Schema | false
  readonly prefixItems?: readonly Schema[]
  readonly properties?: Schemas
  readonly required?: readonly string[]
  readonly additionalProperties?: Schema
  readonly oneOf?: readonly Schema[]
}

/** Schemas by the name of a field, or of a noun. */
export type Schemas = Readonly<Record<string, Schema>>

const U32_MAX = 0xffff_ffff

const NOUNS_AT = '#/components/schemas/'

/** One of the nouns, by its name. */
export function noun(name: NounName): Schema {
  return { $ref: NOUNS_AT + name }
}

/** The name of a noun that was made so; null: it is none. */
export function nameOfNoun({ $ref }: Schema): NounName | null {
  return $ref === undefined ? null : ($ref.slice(NOUNS_AT.length) as NounName)
}

/** A string. @param description empty: there is nothing to say. */
export function text(description = '', rest: Schema = {}): Schema {
  return { type: 'string', ...(description === '' ? {} : { description }), ...rest }
}

/** One of some words. */
export function choice(words: readonly string[], description = '', rest: Schema = {}): Schema {
  return text(description, { enum: words, ...rest })
}

/** A whole number from 0 that fits into 32 bits. */
export function u32(description = '', rest: Schema = {}): Schema {
  return { type: 'integer', minimum: 0, maximum: U32_MAX, ...(description === '' ? {} : { description }), ...rest }
}

/** A whole number from 0 to 2^63 − 1: of offsets and counts that the broker made, which are exact in a double besides. */
export function whole(description = '', rest: Schema = {}): Schema {
  return { type: 'integer', format: 'int64', minimum: 0, ...(description === '' ? {} : { description }), ...rest }
}

/** A whole number from 0 to 2^64 − 1. */
export function u64(description = '', rest: Schema = {}): Schema {
  return whole(description, { format: 'uint64', ...rest })
}

/** A time in Unix milliseconds. */
export function time(description: string): Schema {
  return { type: 'integer', format: 'int64', description }
}

/** The same, or null. Of a noun, which has no type here, it is one or the other. */
export function orNull(schema: Schema): Schema {
  const { type, enum: words } = schema
  if (type === undefined) return { oneOf: [schema, { type: 'null' }] }
  const types = Array.isArray(type) ? type : [type]
  return { ...schema, type: [...types, 'null'], ...(words === undefined ? {} : { enum: [...words, null] }) }
}

/** A list. */
export function list(items: Schema, description = '', rest: Schema = {}): Schema {
  return { type: 'array', items, ...(description === '' ? {} : { description }), ...rest }
}

/** An object with those fields. @param optional fields that may be left out. */
export function fields(required: Schemas, optional: Schemas = {}, description = ''): Schema {
  const names = Object.keys(required)
  return {
    type: 'object',
    ...(description === '' ? {} : { description }),
    properties: { ...required, ...optional },
    ...(names.length === 0 ? {} : { required: names })
  }
}

/** An object whose fields have names of any kind. */
export function table(values: Schema, description: string): Schema {
  return { type: 'object', description, additionalProperties: values }
}
