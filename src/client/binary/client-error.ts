/**
 * Errors of the client library: one class, told apart by `kind`. Any thread.
 * Programs read them; only this library makes them, by the functions below.
 */
import { inspect } from 'node:util'
import type { Written } from '../../model/errors.ts'
import { Es01Error } from '../es01/errors.ts'
import { isUntrusted, untrustedReason } from '../tls.ts'
import { mayPass, retryAfterMsOf } from './refusals.ts'

/** Each kind of failure. docs/client.md says what they mean; a test compares. */
export const clientErrorKinds = [
  /** The broker said no. */
  'refused',
  /** There is no connection, or it was lost. */
  'connection',
  /** No answer in time. */
  'timeout',
  /** What listens there does not speak ES01 as specified. */
  'protocol',
  /** The certificate of the broker is not trusted. */
  'untrusted',
  /** `send` beyond `bufferBytes`. */
  'buffer-full',
  /** The place of a consumer is behind the end of its partition: what it stood behind is gone. */
  'out-of-range',
  /** By this program. */
  'closed',
  /** An argument is. */
  'invalid'
] as const

export type ClientErrorKind = (typeof clientErrorKinds)[number]

/** What more is known of a failure. */
interface Facts {
  readonly retryable?: boolean
  readonly retryAfterMs?: number | null
  readonly cause?: unknown
}

let make: (kind: ClientErrorKind, written: Written, message: string, facts: Facts) => ClientError

/** What became of a call that did not succeed. */
export class ClientError extends Error {
  override readonly name = 'ClientError'
  readonly kind: ClientErrorKind
  /** Whether the records of a produce are in the log: no, yes, or unknown. */
  readonly written: Written
  /** Whether the same call may succeed later, with nothing changed. Of a produce that is safe only where `written` is no. */
  readonly retryable: boolean
  /** How long the broker said to wait; null if it did not. */
  readonly retryAfterMs: number | null

  private constructor(kind: ClientErrorKind, written: Written, message: string, facts: Facts) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.kind = kind
    this.written = written
    this.retryable = facts.retryable ?? false
    this.retryAfterMs = facts.retryAfterMs ?? null
  }

  static {
    make = (kind, written, message, facts) => new ClientError(kind, written, message, facts)
  }
}

/** Makes one. The constructor is not published. */
export function clientError(kind: ClientErrorKind, written: Written, message: string, facts: Facts = {}): ClientError {
  return make(kind, written, message, facts)
}

/** @returns the same failure with another verdict about the log. */
export function withWritten(failure: ClientError, written: Written): ClientError {
  if (failure.written === written) return failure
  const { kind, message, retryable, retryAfterMs } = failure
  return clientError(kind, written, message, { retryable, retryAfterMs, cause: failure })
}

/** What a connection failed with, as an error of this library; anything else is a bug and thrown on. */
export function clientErrorOf(error: unknown): ClientError {
  if (error instanceof ClientError) return error
  if (!(error instanceof Es01Error)) throw error
  const { kind, written, message } = error
  if (kind === 'refused') {
    const facts = { retryable: mayPass(message), retryAfterMs: retryAfterMsOf(message), cause: error }
    return clientError('refused', written, message, facts)
  }
  if (isUntrusted(codeOf(error.cause))) {
    return clientError('untrusted', 'no', untrustedReason(message), { cause: error })
  }
  return clientError(kind, written, message, { retryable: kind !== 'protocol', cause: error })
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

/** The failure of a call to a client that was closed. @param written what may have become of records that had left. */
export function closedError(written: Written = 'no', cause?: unknown): ClientError {
  return clientError('closed', written, 'the client was closed', { cause })
}

/** The failure of a call whose arguments cannot be sent. */
export function invalidError(problem: string): ClientError {
  return clientError('invalid', 'no', problem)
}

/** The same because of one value: says which, what it is and what it may be. */
export function invalidField(field: string, value: unknown, allowed: string): ClientError {
  const seen = inspect(value, { depth: 0, maxStringLength: 100, breakLength: Infinity })
  return invalidError(`${field} is ${seen}: ${allowed}`)
}
