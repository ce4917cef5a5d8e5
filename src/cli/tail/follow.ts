/**
 * A stream that goes on over connections that break and brokers that start again: each connection begins behind the last
 * whole event of the one before, so no record is lost or comes twice. It ends when it is told to, and by what does not
 * pass: a key that is revoked, a topic that is deleted. Main thread.
 *
 *   connecting ──200──▶ reading ──cut, or an end that passes──▶ waiting ──retry──▶ connecting
 *        └──────────────── a failure that passes ────────────────▲
 */
import { HttpClientError } from '../../client/http/http-client.ts'
import { errorTable } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { knownCode, mayPass, refusal, type RawRequest } from '../failures.ts'
import { pause } from '../interrupt.ts'
import { EventParser, type ServerEvent } from './server-events.ts'

/** Characters of one event: the largest record of a broker, 32 MiB, has at most six for each byte in JSON. */
const EVENT_LENGTH_MAX = 256 * 1024 * 1024

export interface FollowParts {
  readonly stream: RawRequest
  /** One connection. Rejects, and ends, with HttpClientError. */
  open(lastId: string): Promise<AsyncIterable<string>>
  /** Ends it all, also while it waits. */
  readonly signal: AbortSignal
  /** Tells the user of an outage, and of its end. */
  notify(text: string): Promise<void>
}

/** Events as they come, those of one piece together. @throws HttpClientError that does not pass */
export async function* follow(parts: FollowParts): AsyncGenerator<readonly ServerEvent[]> {
  const { stream, signal } = parts
  let lastId = ''
  let outage: string | null = null
  while (!signal.aborted) {
    const parser: EventParser = new EventParser(lastId)
    try {
      for await (const piece of await parts.open(lastId)) {
        const events = parser.take(piece)
        if (parser.heldLength > EVENT_LENGTH_MAX) throw endless(stream)
        const end = events.find(({ type }) => type === 'end')
        if (outage !== null && end === undefined) {
          outage = null
          await parts.notify('connected again')
        }
        yield events.filter(event => event !== end)
        if (end !== undefined) throw endOf(stream, end)
      }
      throw new HttpClientError(stream, 'unanswered', 0, 'the other side closed the stream')
    } catch (error) {
      if (signal.aborted) return
      if (!(error instanceof HttpClientError) || !mayPass(error)) throw error
      lastId = parser.lastId
      if (outage === null) await parts.notify(`${error.reason}; trying again`)
      outage = error.reason
    }
    await pause(parser.retryMs ?? limits.streamRetryMs, signal)
  }
}

function endless(stream: RawRequest): HttpClientError {
  const reason = 'an event of the stream does not end: is this a Millrace broker?'
  return new HttpClientError(stream, 'foreign', 200, reason)
}

/** What the broker says when it ends a stream: a refusal that comes late. */
function endOf(stream: RawRequest, { data }: ServerEvent): HttpClientError {
  const code = knownCode(refusal(stream, 0, data).code)
  if (code === null) return new HttpClientError(stream, 'unanswered', 0, `the broker ended the stream: ${data}`)
  return refusal(stream, errorTable[code].http, data)
}
