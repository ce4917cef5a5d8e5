/**
 * One HTTP request and its whole answer: plain by the built-in fetch, over TLS by node:https, whose trust can be set.
 * Any thread. It never retries. A timeout rejects with an error named TimeoutError.
 */
import { Agent, request as startRequest } from 'node:https'
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

/** Sends and waits for the whole answer. */
export type Exchange = (request: OutgoingRequest, timeoutMs: number) => Promise<IncomingAnswer>

/** The way for this address. */
export function exchangeFor(url: string, tls: ClientTls): Exchange {
  return url.startsWith('https:') ? overTls(tls) : overPlain
}

const overPlain: Exchange = async ({ url, ...request }, timeoutMs) => {
  const response = await fetch(url, { ...request, signal: AbortSignal.timeout(timeoutMs) })
  const { status, statusText } = response
  return { status, statusText, text: await response.text() }
}

function overTls(tls: ClientTls): Exchange {
  const agent = new Agent({ keepAlive: true, ...trustOf(tls) })
  return ({ url, method, headers, body }, timeoutMs) =>
    new Promise((resolve, reject) => {
      const length = body === undefined ? {} : { 'content-length': Buffer.byteLength(body) }
      const sent = startRequest(url, { method, agent, headers: { ...headers, ...length } })
      // One clock for all of it: the library's own counts silence only.
      const timer = setTimeout(() => sent.destroy(new DOMException('no answer in time', 'TimeoutError')), timeoutMs)
      const fail = (error: Error): void => {
        clearTimeout(timer)
        reject(error)
      }
      sent.on('error', fail)
      sent.on('response', response => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.on('error', fail)
        response.on('end', () => {
          clearTimeout(timer)
          const { statusCode: status = 0, statusMessage: statusText = '' } = response
          resolve({ status, statusText, text: Buffer.concat(chunks).toString() })
        })
      })
      sent.end(body)
    })
}
