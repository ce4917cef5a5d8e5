/**
 * One connection to a stream of server-sent events, plain or over TLS: its text as it comes. Whatever breaks is an
 * HttpClientError. The socket is read only as fast as the text is taken.
 */
import { once } from 'node:events'
import { request, type IncomingMessage } from 'node:http'
import { request as requestSecurely } from 'node:https'
import { HttpClientError } from '../../client/http/http-client.ts'
import { trustOf } from '../../client/tls.ts'
import type { BrokerAccess } from '../common-options.ts'
import { broken, refusal, type RawRequest } from '../failures.ts'

/** A broker sends a comment every 15 s: a connection that is silent for so long is dead. */
const SILENCE_MS = 45_000
/** No refusal of a broker is longer. */
const REFUSAL_CHARACTERS_MAX = 64 * 1024

/** Opens it. @param lastId from which it goes on; empty: from where the address says. */
export async function openEvents(
  stream: RawRequest,
  { secret, tls }: Omit<BrokerAccess, 'broker'>,
  lastId: string,
  signal: AbortSignal
): Promise<AsyncGenerator<string>> {
  const response = await start(stream, { secret, tls }, lastId, signal)
  response.setEncoding('utf8')
  if (response.statusCode !== 200) throw await refusalOf(stream, response)
  if (!(response.headers['content-type'] ?? '').startsWith('text/event-stream')) {
    response.destroy()
    throw new HttpClientError(stream, 'foreign', 200, 'the answer is no stream: is this a Millrace broker?')
  }
  return pieces(stream, response)
}

async function start(
  stream: RawRequest,
  { secret, tls }: Omit<BrokerAccess, 'broker'>,
  lastId: string,
  signal: AbortSignal
): Promise<IncomingMessage> {
  const headers = {
    accept: 'text/event-stream',
    ...(secret === null ? {} : { authorization: `Bearer ${secret}` }),
    ...(lastId === '' ? {} : { 'last-event-id': lastId })
  }
  const options = { headers, agent: false, signal }
  const isSecure = stream.url.startsWith('https:')
  const sent = isSecure ? requestSecurely(stream.url, { ...options, ...trustOf(tls) }) : request(stream.url, options)
  sent.setTimeout(SILENCE_MS, () => sent.destroy(new Error(`nothing came for ${SILENCE_MS / 1_000} s`)))
  sent.end()
  try {
    const [response]: IncomingMessage[] = await once(sent, 'response')
    if (response === undefined) throw new Error('an answer that came is gone')
    // The response tells what breaks from here on; without a listener here it would end the process.
    sent.on('error', () => undefined)
    return response
  } catch (error) {
    throw broken(stream, error)
  }
}

async function* pieces(stream: RawRequest, response: IncomingMessage): AsyncGenerator<string> {
  try {
    for await (const piece of response) yield String(piece)
  } catch (error) {
    throw broken(stream, error)
  }
}

/** A refusal with the words of the broker, or of whoever stands in between. */
async function refusalOf(stream: RawRequest, response: IncomingMessage): Promise<HttpClientError> {
  let text = ''
  for await (const piece of pieces(stream, response)) {
    text += piece
    if (text.length > REFUSAL_CHARACTERS_MAX) break
  }
  const status = response.statusCode ?? 0
  return refusal(stream, status, text)
}
