/**
 * What the gateway needs of an HTTP server, so that uWebSockets.js and node:http are interchangeable. Main thread.
 *
 *   listen ─▶ handler(head, reply) ─▶ sink.onBodyChunk … isLast ─▶ reply.send | reply.begin, reply.chunk …
 *                                                          | reply.open, reply.push …, reply.finish
 *                                                          reply.watcher.onReplyClosed, exactly once
 *
 * Invariants of every engine: a handler is called once per request; a reply is answered at most once; after
 * onReplyClosed nothing is written and no chunk of the body comes. Connections go on after an error answer where HTTP
 * permits; the rest of a body that nobody wants is read and dropped.
 */
import type { Clock } from '../../../base/clock.ts'
import { limits } from '../../../model/limits.ts'
import type { Certificate } from '../../shared/certificates.ts'
import { listenError } from '../../shared/listen-on.ts'
import type { PaceLook } from './answer-pace.ts'
import type { HttpProbe, RequestMeter } from '../probe.ts'

/** What came before the body. Plain strings: it stays valid. */
export interface RequestHead {
  /** As sent: upper case. */
  readonly method: string
  /** Path as sent, percent signs included, no query. */
  readonly path: string
  /** What follows the question mark, as sent; empty if there is none. */
  readonly query: string
  /** Empty if there is none. */
  readonly host: string
  /** Where the page that asks came from; empty if it is none. */
  readonly origin: string
  readonly contentType: string
  /** Accept; empty if there is none. */
  readonly accept: string
  /** As sent; null: the header is not there. Secrets: only authenticate.ts reads them. */
  readonly authorization: string | null
  /** X-Es-Key, likewise. */
  readonly apiKey: string | null
  /** Last-Event-ID: where a stream goes on; null: the header is not there. */
  readonly lastEventId: string | null
  /** −1: none was sent (no body, or a chunked one). */
  readonly contentLength: number
  readonly isChunked: boolean
  /** Why it is not certain where the request ends, or for whom it is: nothing of it may be carried out. null: it is. */
  readonly fault: HeadFault | null
}

/** A header that is not as HTTP has it. */
export interface HeadFault {
  readonly field: string
  readonly problem: string
}

/** Takes a body piece by piece. */
export interface BodySink {
  /** @param chunk borrowed until return. isLast comes exactly once, perhaps with an empty chunk, unless the request is aborted. */
  onBodyChunk(chunk: Buffer, isLast: boolean): void
}

/** Hears the end of a reply. */
export interface ReplyWatcher {
  /** The answer is with the system (aborted: false), or the connection is gone before that (true). */
  onReplyClosed(aborted: boolean): void
  /** Of an open answer: the socket has taken all that was pushed, after a push that it did not take. Never inside a push. */
  onReplyDrained?(): void
}

/** What an answer holds of the reply memory, as far as its engine is concerned. */
export interface AnswerHolding {
  /** True while others want what the answers of the same party hold. */
  readonly isShort: boolean
  /** The socket took so many bytes more of the body: they are with the system. */
  take(bytes: number): void
}

/** Names and values, in order. */
export type Headers = readonly (readonly [string, string])[]

export const NO_HEADERS: Headers = []

export interface ReplyHead {
  readonly status: number
  /** null: an answer that has no body by its status (204). */
  readonly contentType: string | null
  readonly headers?: Headers
  /** Close the connection after this answer. */
  readonly mustClose?: boolean
}

/** The same head for an answer that says nothing of a body but its type. */
export function withoutLength({ contentType, headers = NO_HEADERS, ...rest }: ReplyHead): ReplyHead {
  const typed: Headers = contentType === null ? headers : [['content-type', contentType], ...headers]
  return { ...rest, contentType: null, headers: typed }
}

/** The answer to one request. All calls are allowed, and do nothing, once it is closed. */
export interface Reply {
  readonly isClosed: boolean
  /** True once send or begin was called. */
  readonly isAnswered: boolean
  watcher: ReplyWatcher | null
  /** Headers that are sent whatever the answer is. */
  standingHeaders: Headers
  /** Is told the status, and the end. */
  meter: RequestMeter | null
  /** Is told what the socket takes; null: nothing is held for this answer. */
  holding: AnswerHolding | null
  /** Who asks, as text: an IPv4 address in its own form also where it came in one of IPv6. Empty once it is closed. */
  readonly clientAddress: string
  /** The whole answer. @param body borrowed until return. A HEAD request gets its length only. */
  send(head: ReplyHead, body: Buffer): void
  /** The first part of an answer of that many bytes; chunk() brings them all. */
  begin(head: ReplyHead, totalBytes: number): void
  /** The next bytes[start, end) of the body, borrowed until return; what the socket does not take at once is copied. */
  chunk(bytes: Buffer, start: number, end: number): void
  /**
   * The head of an answer without a known end, sent with its first part. What is asked with HEAD gets the head only, and
   * is closed. It is for as long as it takes: no meter waits for its end.
   * @param filler a few bytes that mean nothing to the client between two parts: sent to learn whether it takes more.
   */
  open(head: ReplyHead, filler: Buffer): void
  /**
   * The next part of an open answer. @param bytes not empty, and not changed any more: they may be kept as they are.
   * @returns false: the socket has not taken all; onReplyDrained says when it has. What is pushed meanwhile is kept too.
   */
  push(bytes: Buffer): boolean
  /** Ends an open answer. Its head has told the client that the connection ends with it. */
  finish(): void
  /** Cuts the connection: for a reply that began and cannot be finished. */
  abort(): void
}

/** @returns who takes the body; null: nobody does. It must not throw. */
export type RequestHandler = (head: RequestHead, reply: Reply) => BodySink | null

/** What a parser refuses before there is a request. */
export type RefusalBody = (status: number, problem: string) => Buffer

/** When an engine closes a connection by itself; a client that waits for its answer is never idle. */
export interface ConnectionTimeouts {
  /** No request is in progress. */
  readonly idleMs: number
  /** The client takes nothing of an answer (uWebSockets.js only; a ReaderWatch looks besides). */
  readonly responseMs: number
}

export interface EngineOptions extends ConnectionTimeouts {
  readonly handler: RequestHandler
  readonly refusalBody: RefusalBody
  readonly clock: Clock
  readonly connectionsMax: number
  readonly probe: HttpProbe
  /** A client did not speak TLS where that is spoken. uWebSockets.js tells nobody why it closed a connection: there it is never called. */
  readonly onPlainClient: (remoteAddress: string) => void
  /** null: without TLS. */
  readonly certificate: Certificate | null
}

export interface HttpEngine {
  readonly name: 'uws' | 'node'
  /**
   * Takes the address for this process alone. Port 0: the system picks one.
   * @returns the port. Rejects with an Error whose message is fit for the user and whose `code` is EADDRINUSE and the like.
   */
  listen(host: string, port: number): Promise<number>
  /** Cuts off every client that takes its answer too slowly. @returns replies in progress. */
  cutLate(look: PaceLook): number
  /** New connections get this one, open ones go on. @throws Error, and nothing has changed, if it cannot be used. */
  useCertificate(certificate: Certificate): void
  /** No new connections; idle ones close; requests in progress are waited for, then at the deadline cut. */
  stop(deadlineMs: number): Promise<void>
}

/** Digits of a length beyond which no body is taken anyway. */
const LENGTH_DIGITS_MAX = 15

/** A Content-Length as a number; −1 if it is none. @param text empty: there is none. */
export function readLength(text: string): number {
  return /^\d+$/.test(text) && text.length <= LENGTH_DIGITS_MAX ? Number(text) : -1
}

/** What the headers that say where a request ends, and for whom it is, are by number and value. */
export interface FramingHeaders {
  readonly hostCount: number
  readonly lengthCount: number
  readonly codingCount: number
  /** Content-Length, the first; empty: none. */
  readonly length: string
  /** Transfer-Encoding, the first; empty: none. */
  readonly coding: string
}

/**
 * Judges them as a careful server must (RFC 9112, 3.2 and 6.3): who reads them otherwise, such as a proxy in front,
 * would see another request. What both parsers refuse by themselves is refused here again.
 */
export function headFaultOf({ hostCount, lengthCount, codingCount, length, coding }: FramingHeaders): HeadFault | null {
  if (hostCount > 1) return { field: 'host', problem: 'is given twice' }
  if (lengthCount > 1) return { field: 'content-length', problem: 'is given twice' }
  if (lengthCount > 0 && readLength(length) < 0) {
    return { field: 'content-length', problem: `must be a whole number of up to ${LENGTH_DIGITS_MAX} digits` }
  }
  if (codingCount === 0) return null
  if (lengthCount > 0) return { field: 'transfer-encoding', problem: 'must not come with a content-length' }
  const isChunked = codingCount === 1 && coding.toLowerCase() === 'chunked'
  return isChunked ? null : { field: 'transfer-encoding', problem: 'must be chunked and nothing else' }
}

/** Answers above this leave in pieces as the socket takes them. */
export const WHOLE_ANSWER_BYTES_MAX = 64 * 1024

/** True if an answer before the end of this body must close the connection: its rest is too long, or of unknown length. */
export function isTooLongToDrain(head: RequestHead): boolean {
  return head.isChunked || head.fault !== null || head.contentLength > limits.drainedBodyBytesMax
}

/** An address that cannot be had, with the code that the system gave. */
export function addressRefused(host: string, port: number, code: string): Error {
  const address = `${host.includes(':') ? `[${host}]` : host}:${port}`
  return Object.assign(listenError({ address, protocol: 'HTTP', flag: '--bind' }, code), { code })
}
