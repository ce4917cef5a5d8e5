/** What a row of the table of routes has. Pure; main thread. */
import { operations, type Operation } from '../../model/access.ts'
import type { BodySink } from './engines/engine.ts'
import type { Exchange } from './exchange.ts'
import type { DocsOf, RouteDocs } from './openapi/route-docs.ts'

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** Segments as they stand, `:name` for any one segment. */
  readonly pattern: string
  /** What it is for access: model/access.ts says what that takes. The use case that it calls asks for it. */
  readonly operation: Operation
  /** What GET /openapi.json says of it. */
  readonly docs: RouteDocs
  /** Served also while the broker is not ready, and to everybody. */
  readonly isOpen: boolean
  /** Its answer is a stream of events. */
  readonly isStream: boolean
  /** Answers, or returns who takes the body and answers later. What it throws becomes the answer. */
  readonly run: (exchange: Exchange) => BodySink | null
}

/** One row. */
export function route<Pattern extends string>(
  method: Route['method'],
  pattern: Pattern,
  run: Route['run'],
  operation: Operation,
  docs: DocsOf<Pattern>
): Route {
  return { method, pattern, run, operation, docs, isOpen: operations[operation] === 'nothing', isStream: false }
}

/** The row of a stream of events. */
export function streamRoute<Pattern extends string>(
  pattern: Pattern,
  run: Route['run'],
  operation: Operation,
  docs: DocsOf<Pattern>
): Route {
  return { ...route('GET', pattern, run, operation, docs), isStream: true }
}
