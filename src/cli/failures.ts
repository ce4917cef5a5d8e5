/**
 * Failures of requests that do not go through the HttpClient, since their answers are no JSON: the same errors, so that
 * they are told in the same way; which failures pass by themselves; and how they are told to a program. Pure.
 */
import { connectionReason } from '../client/http/exchange.ts'
import { HttpClientError, parseExact } from '../client/http/http-client.ts'
import { errorTable, type ErrorCode } from '../model/errors.ts'
import type { ExitCode } from './io.ts'

export interface RawRequest {
  readonly method: string
  readonly url: string
}

/** Behind a refusal for want of a key, or for a wrong one. */
export const KEY_HINT = '. Give a key with --auth-file, --auth or MILLRACE_KEY'

/** What went wrong, for a program: one line. */
export function failureJson(
  error: Pick<HttpClientError, 'reason' | 'method' | 'url' | 'status' | 'code' | 'written'>,
  exitCode: ExitCode
): string {
  const { reason, method, url, status, code, written } = error
  return `${JSON.stringify({ error: reason, method, url, status, code, written, exit_code: exitCode })}\n`
}

/** A connection that broke, or could not be made. */
export function broken(request: RawRequest, error: unknown): HttpClientError {
  const reason = error instanceof Error ? connectionReason(error.message) : String(error)
  return new HttpClientError(request, 'unanswered', 0, reason)
}

/** A refusal in the words of the broker, or of whoever stands in between. @param text the body of the answer. */
export function refusal(request: RawRequest, status: number, text: string): HttpClientError {
  const decoded = decode(text)
  if (typeof decoded !== 'object' || decoded === null || !('error' in decoded)) {
    return new HttpClientError(request, 'refused', status, text.trim().slice(0, 300))
  }
  const code = 'code' in decoded && typeof decoded.code === 'string' ? decoded.code : null
  return new HttpClientError(request, 'refused', status, String(decoded.error), { code, written: 'no' })
}

function decode(text: string): unknown {
  try {
    return parseExact(text)
  } catch (error) {
    if (error instanceof SyntaxError) return null
    throw error
  }
}

/** A code of the broker's table; null if it is none that we know. */
export function knownCode(code: string | null): ErrorCode | null {
  return code !== null && Object.hasOwn(errorTable, code) ? (code as ErrorCode) : null
}

/** Whether asking again can help. */
export function mayPass({ kind, code, status }: HttpClientError): boolean {
  if (kind === 'unreachable' || kind === 'unanswered') return true
  if (kind !== 'refused') return false
  const known = knownCode(code)
  return known === null ? status === 429 || status >= 500 : errorTable[known].retry === 'same'
}
