/**
 * A refusal as a stream that ends at once. EventSource gives up for good on any status but 200, and its place is lost with
 * it; behind a stream that ended it waits and comes again with its last id. Pure; main thread.
 * Only what may be tried again as it is may be told so: a client would come again for ever with what is never taken.
 */
import { errorTable, type ErrorCode } from '../../../model/errors.ts'
import { endEvent, openingText } from '../../../wire/json/event-text.ts'
import { asksForEvents } from '../accept.ts'
import type { ReplyHead, RequestHead } from '../engines/engine.ts'
import { STREAM_HEAD } from './stream-head.ts'

/** Whether the client of a request to a stream is one that takes a refusal as events: Accept names their type. */
export function takesRefusalAsEvents({ method, accept }: Pick<RequestHead, 'method' | 'accept'>): boolean {
  return method === 'GET' && asksForEvents(accept)
}

/** Whether a refusal with that code passes by itself. */
export function mayBeTriedAgain(code: ErrorCode): boolean {
  return errorTable[code].retry === 'same'
}

/** The answer to a stream that is refused for now. */
interface RefusedStream {
  readonly head: ReplyHead
  readonly body: Buffer
}

/** @param text what may be told of it. @param retryMs after which the client is to come again. */
export function refusedStream(code: ErrorCode, text: string, requestId: string, retryMs: number): RefusedStream {
  const { headers = [], ...rest } = STREAM_HEAD
  const head: ReplyHead = { ...rest, headers: [...headers, ['x-request-id', requestId]], mustClose: true }
  return { head, body: Buffer.concat([openingText(retryMs, null), endEvent({ code }, text)]) }
}
