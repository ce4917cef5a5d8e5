/**
 * Errors as HTTP answers. Main thread. Every refusal of this gateway leaves through here, so all have one shape:
 * `{"error": text, "code", "retry", "written", "request_id"}`; on the routes for Confluent's clients in theirs, where the id
 * of the request is a header: what reads that body may take no other field. To EventSource what may be tried again is told as a
 * stream that ends (streams/refused-stream.ts); it is counted and logged as any other.
 * A 500 tells an id and nothing else; what happened stands in the log under that id, at level debug also of all others.
 */
import type { Logger } from '../../base/logger.ts'
import { errorTable, toBrokerError } from '../../model/errors.ts'
import type { BrokerError, ErrorCode } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { isInternal, logFailure, toldOf } from '../shared/internal-failures.ts'
import { newRequestId } from '../shared/request-ids.ts'
import { JSON_TYPE } from './accept.ts'
import { CONFLUENT_TYPE, isConfluentPath } from './confluent/face.ts'
import { confluentRefusal } from './confluent/refusal.ts'
import type { Headers, Reply, RequestHead } from './engines/engine.ts'
import type { HttpProbe } from './probe.ts'
import { mayBeTriedAgain, refusedStream } from './streams/refused-stream.ts'

/** Of a 503. */
const RETRY_AFTER_SECONDS = 1
/** Of every 401 (RFC 9110): the scheme by which a key is sent. */
const AUTHENTICATE = ['www-authenticate', 'Bearer'] as const
/** The same where a user and a password do too. */
const AUTHENTICATE_CONFLUENT = ['www-authenticate', 'Basic realm="millrace", Bearer'] as const

/** What of a refusal is not the error's. */
export interface RefusalOptions {
  /** The body is not read to its end: the connection cannot go on. */
  readonly mustClose?: boolean
  /** The client is one that takes what may be tried again as events. */
  readonly asEvents?: boolean
  /** Fields beside those of every error. */
  readonly report?: Readonly<Record<string, string | number>>
}

function bodyOf(
  code: ErrorCode,
  text: string,
  written: string,
  requestId: string,
  report: RefusalOptions['report'] = {}
): Buffer {
  const { retry } = errorTable[code]
  return Buffer.from(JSON.stringify({ ...report, error: text, code, retry, written, request_id: requestId }))
}

/** The body of a refusal by an HTTP parser, before there is a request. */
export function refusalBody(status: number, problem: string): Buffer {
  return bodyOf('FRAME_INVALID', `malformed request (${status}): ${problem}`, 'no', newRequestId())
}

export class Failures {
  readonly #logger: Logger
  readonly #probe: HttpProbe

  constructor(logger: Logger, probe: HttpProbe) {
    this.#logger = logger
    this.#probe = probe
  }

  /**
   * Answers with an error of whatever kind: a BrokerError by its table, anything else as a bug.
   */
  answer(head: RequestHead, reply: Reply, error: unknown, how: RefusalOptions = {}): void {
    const { mustClose = false, asEvents = false, report } = how
    const refusal = toBrokerError(error)
    const { method, path } = head
    const { requestId, text } = toldOf(refusal)
    this.#probe.refused(refusal.code)
    if (reply.isAnswered && !reply.isClosed) {
      // The status is out and the answer cannot be finished: a cut connection is the only honest sign left.
      logFailure(this.#logger, requestId, refusal, { method, path })
      reply.abort()
      return
    }
    if (isInternal(refusal)) logFailure(this.#logger, requestId, refusal, { method, path })
    else this.#logger.debug({ request_id: requestId, method, path, code: refusal.code, text }, 'a request was refused')
    if (asEvents && mayBeTriedAgain(refusal.code)) {
      const afterSeconds = retryAfterSecondsOf(refusal)
      const retryMs = afterSeconds === null ? limits.streamRetryMs : afterSeconds * 1000
      const stream = refusedStream(refusal.code, text, requestId, retryMs)
      reply.send(stream.head, stream.body)
      return
    }
    const headers = headersOf(refusal, isConfluentPath(path))
    if (isConfluentPath(path)) {
      const { status, body } = confluentRefusal(method, refusal, text)
      const all: Headers = [...headers, ['x-request-id', requestId]]
      reply.send({ status, contentType: CONFLUENT_TYPE, headers: all, mustClose }, body)
      return
    }
    const body = bodyOf(refusal.code, text, refusal.written, requestId, report)
    reply.send({ status: refusal.spec.http, contentType: JSON_TYPE, headers, mustClose }, body)
  }
}

/** When it is told to try again; null: it is not told. */
function retryAfterSecondsOf({ details, spec }: BrokerError): number | null {
  if (spec.http === 503) return RETRY_AFTER_SECONDS
  return spec.http === 429 ? Number(details['retryAfterSeconds']) : null
}

function headersOf(refusal: BrokerError, isConfluent: boolean): Headers {
  const { code, details, spec } = refusal
  const headers: (readonly [string, string])[] = []
  if (spec.http === 401) headers.push(isConfluent ? AUTHENTICATE_CONFLUENT : AUTHENTICATE)
  const afterSeconds = retryAfterSecondsOf(refusal)
  if (afterSeconds !== null) headers.push(['retry-after', String(afterSeconds)])
  if (code === 'METHOD_NOT_ALLOWED') headers.push(['allow', String(details['allow'])])
  return headers
}
