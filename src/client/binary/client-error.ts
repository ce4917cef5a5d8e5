/** Errors of the client library: one class, told apart by `kind`. Any thread. */
import type { Written } from '../../model/errors.ts'
import { Es01Error } from '../es01/errors.ts'
import { isUntrusted, untrustedReason } from '../tls.ts'
import { mayPass, retryAfterMsOf } from './refusals.ts'

/**
 * refused: the broker said no. connection: there is none, or it was lost. timeout: no answer in time. protocol: what
 * listens there does not speak ES01 as specified. untrusted: its certificate is not. buffer-full: `send` beyond
 * `bufferBytes`. closed: by this program. invalid: an argument is.
 */
export type ClientErrorKind =
  'refused' | 'connection' | 'timeout' | 'protocol' | 'untrusted' | 'buffer-full' | 'closed' | 'invalid'

/** What more is known of a failure. */
export interface ClientErrorFacts {
  readonly isRetryable?: boolean
  readonly retryAfterMs?: number | null
  readonly cause?: unknown
}

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

  constructor(kind: ClientErrorKind, written: Written, message: string, facts: ClientErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause })
    this.kind = kind
    this.written = written
    this.retryable = facts.isRetryable ?? false
    this.retryAfterMs = facts.retryAfterMs ?? null
  }

  /** @returns the same failure with another verdict about the log. */
  withWritten(written: Written): ClientError {
    const { retryable: isRetryable, retryAfterMs } = this
    return new ClientError(this.kind, written, this.message, { isRetryable, retryAfterMs, cause: this })
  }
}

/** What a connection failed with, as an error of this library; anything else is a bug and thrown on. */
export function clientErrorOf(error: unknown): ClientError {
  if (error instanceof ClientError) return error
  if (!(error instanceof Es01Error)) throw error
  const { kind, written, message } = error
  if (kind === 'refused') {
    const facts = { isRetryable: mayPass(message), retryAfterMs: retryAfterMsOf(message), cause: error }
    return new ClientError('refused', written, message, facts)
  }
  if (isUntrusted(codeOf(error.cause))) {
    return new ClientError('untrusted', 'no', untrustedReason(message), { cause: error })
  }
  return new ClientError(kind, written, message, { isRetryable: kind !== 'protocol', cause: error })
}

function codeOf(cause: unknown): string {
  return cause instanceof Error && 'code' in cause ? String(cause.code) : ''
}

/** The failure of a call to a client that was closed. */
export function closedError(): ClientError {
  return new ClientError('closed', 'no', 'the client was closed')
}

/** The failure of a call whose arguments cannot be sent. */
export function invalidError(problem: string): ClientError {
  return new ClientError('invalid', 'no', problem)
}
