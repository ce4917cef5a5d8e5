/**
 * One HTTP request and its whole answer, by node:http and node:https: the built-in fetch refuses ports that browsers avoid,
 * and its trust cannot be set. Any thread. A timeout rejects with an error named TimeoutError, or ETIMEDOUT as code where
 * there was not even a connection.
 * A connection that was kept open may have been closed by the other side just before it is used again. What may be done
 * twice (all but POST) is then sent once more on a new one; nothing else is ever sent again.
 */
import { Agent as PlainAgent, request as startPlainly, type IncomingMessage, type RequestOptions } from 'node:http'
import { Agent as SecureAgent, request as startSecurely } from 'node:https'
import { trustOf, type ClientTls } from '../tls.ts'

export interface OutgoingRequest {
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  /** Left out: none. */
  readonly body?: string
}

export interface IncomingAnswer {
  readonly status: number
  readonly statusText: string
  readonly text: string
}

/** The other side took a request and closed. */
export const HUNG_UP = 'the other side closed the connection without an answer'

/** Sends and waits for the whole answer. */
export type Exchange = (request: OutgoingRequest, timeoutMs: number) => Promise<IncomingAnswer>

/** How a request of an address begins. */
interface Way {
  start(url: string, options: RequestOptions): ReturnType<typeof startPlainly>
  /** Keeps connections open; false: one of its own. */
  readonly agent: PlainAgent | false
}

/** The way for this address. */
export function exchangeFor(url: string, tls: ClientTls): Exchange {
  const trust = trustOf(tls)
  const way: Way = url.startsWith('https:')
    ? {
        start: (to, options) => startSecurely(to, { ...options, ...trust }),
        agent: new SecureAgent({ keepAlive: true })
      }
    : { start: startPlainly, agent: new PlainAgent({ keepAlive: true }) }
  return async (request, timeoutMs) => {
    const first = await attempt(way, request, timeoutMs)
    if (!('failure' in first)) return first
    if (!first.isStale || request.method === 'POST') throw first.failure
    // Not on another that was kept open: it may be closed as well.
    const second = await attempt({ ...way, agent: false }, request, timeoutMs)
    if ('failure' in second) throw second.failure
    return second
  }
}

interface Failed {
  readonly failure: Error
  /** The connection had served before, and ended without a word of an answer. */
  readonly isStale: boolean
}

function attempt({ start, agent }: Way, request: OutgoingRequest, timeoutMs: number): Promise<IncomingAnswer | Failed> {
  const { url, method, headers, body } = request
  return new Promise(resolve => {
    const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
    const sent = start(url, { method, agent, headers: { ...headers, ...length } })
    // One clock for all of it: the library's own counts silence only.
    const timer = setTimeout(() => sent.destroy(timeoutError(sent.socket?.connecting === false)), timeoutMs)
    const fail = (failure: NodeJS.ErrnoException, isStale: boolean): void => {
      clearTimeout(timer)
      resolve({ failure, isStale })
    }
    sent.on('error', (error: NodeJS.ErrnoException) => {
      fail(error, sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE'))
    })
    sent.on('response', response => {
      response.on('error', error => fail(error, false))
      readAll(response, answer => {
        clearTimeout(timer)
        resolve(answer)
      })
    })
    sent.end(body)
  })
}

function readAll(response: IncomingMessage, take: (answer: IncomingAnswer) => void): void {
  const chunks: Buffer[] = []
  response.on('data', (chunk: Buffer) => chunks.push(chunk))
  response.on('end', () => {
    const { statusCode: status = 0, statusMessage: statusText = '' } = response
    take({ status, statusText, text: Buffer.concat(chunks).toString() })
  })
}

/** What node:http says of a connection that ended too early, in words for people; any other message as it is. */
export function connectionReason(message: string): string {
  if (message === 'socket hang up') return HUNG_UP
  return message === 'aborted' ? 'the connection broke' : message
}

function timeoutError(isConnected: boolean): Error {
  if (isConnected) return new DOMException('no answer in time', 'TimeoutError')
  return Object.assign(new Error('no connection in time'), { code: 'ETIMEDOUT' })
}
