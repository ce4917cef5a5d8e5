/**
 * What the documentation says of a route: data beside it, from which document.ts writes the description of the API. Pure.
 * What holds for all routes, or for all of a kind, is added there: answers without a key, wrong hosts, bodies too large.
 */
import type { ErrorCode } from '../../../model/errors.ts'
import { JSON_TYPE, MSGPACK_TYPE } from '../accept.ts'
import type { Schema } from './schema.ts'

/** Themes, in the order in which they are shown. */
export const tags = {
  topics: 'Topics, their configuration and offsets.',
  records: 'Producing and consuming.',
  groups: 'Consumer groups: committed offsets and members.',
  schemas: 'Schemas of records: their versions and how they go together.',
  confluent: "The same, as clients of Confluent's schema registry know it.",
  admin: 'Keys, producers, cleaning and copies.',
  health: 'How the broker is, and what it counts.'
} as const
export type Tag = keyof typeof tags

/** A parameter of the path, the query or the headers. */
export interface Parameter {
  readonly about: string
  readonly schema: Schema
  /** Of a query or header: 400 without it. A path always has its own. */
  readonly isRequired?: true
}

export type Parameters = Readonly<Record<string, Parameter>>

/** Schemas of a body by its media type. */
export type Content = Readonly<Record<string, Schema>>

/** An answer that is sent with a certain status. */
export interface AnswerDocs {
  readonly about: string
  /** Left out: it has no body. */
  readonly content?: Content
}

export interface RouteDocs {
  /** Name of the operation in generated clients: a verb first, never changed. */
  readonly id: string
  readonly tag: Tag
  /** One sentence. */
  readonly about: string
  /** More of them. */
  readonly details?: string
  readonly path?: Parameters
  readonly query?: Parameters
  readonly headers?: Parameters
  readonly body?: Content
  /** By status: every success, and refusals that have fields beside those of an error. */
  readonly answers: Readonly<Record<number, AnswerDocs>>
  /** What it may be refused with beside what every route of its kind may. */
  readonly errors?: readonly ErrorCode[]
}

/** The names in a pattern: `'topic' | 'partition'` of `/admin/tiered/:topic/:partition`. */
export type NamesOf<Pattern extends string> = Pattern extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesOf<`/${Rest}`>
  : Pattern extends `${string}:${infer Name}`
    ? Name
    : never

/** Docs for a route with that pattern: they say what each of its names is. */
export type DocsOf<Pattern extends string> = RouteDocs &
  ([NamesOf<Pattern>] extends [never] ? object : { readonly path: Readonly<Record<NamesOf<Pattern>, Parameter>> })

/** An answer of JSON. */
export function json(about: string, schema: Schema): AnswerDocs {
  return { about, content: { [JSON_TYPE]: schema } }
}

/** An answer of JSON, or of MessagePack to who accepts that: the same fields, bytes where JSON has text of them. */
export function jsonOrMsgpack(about: string, schema: Schema): AnswerDocs {
  const more = 'In MessagePack keys, values and values of headers are bin.'
  return { about: `${about} ${more}`, content: { [JSON_TYPE]: schema, [MSGPACK_TYPE]: schema } }
}

/** A body of either. */
export function jsonOrMsgpackBody(schema: Schema): Content {
  return { [JSON_TYPE]: schema, [MSGPACK_TYPE]: schema }
}

/** A body of JSON. */
export function jsonBody(schema: Schema): Content {
  return { [JSON_TYPE]: schema }
}
