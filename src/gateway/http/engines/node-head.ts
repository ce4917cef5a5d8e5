/** What came before the body of a request, as node:http shows it. Pure; main thread. */
import type { IncomingMessage } from 'node:http'
import { headFaultOf, readLength } from './engine.ts'
import type { HeadFault, RequestHead } from './engine.ts'

/** Sent twice, the two are one text, which is no secret. */
function textOf(header: string | string[] | undefined): string | null {
  return header === undefined ? null : String(header)
}

/** The head of a request in the form of every engine. */
export function readHead(request: IncomingMessage): RequestHead {
  const { headers } = request
  const length = headers['content-length'] ?? ''
  const url = request.url ?? '/'
  const mark = url.indexOf('?')
  return {
    method: request.method ?? 'GET',
    path: mark < 0 ? url : url.slice(0, mark),
    query: mark < 0 ? '' : url.slice(mark + 1),
    host: headers.host ?? '',
    origin: headers.origin ?? '',
    contentType: headers['content-type'] ?? '',
    accept: headers.accept ?? '',
    authorization: headers.authorization ?? null,
    apiKey: textOf(headers['x-es-key']),
    lastEventId: textOf(headers['last-event-id']) || null,
    contentLength: readLength(length),
    isChunked: headers['transfer-encoding'] !== undefined,
    fault: readFault(request, length)
  }
}

/** Of equal headers node:http shows the first one, or joins them. */
function readFault({ headers, rawHeaders }: IncomingMessage, length: string): HeadFault | null {
  const count = (wanted: string): number =>
    rawHeaders.reduce((sum, name, i) => (i % 2 === 0 && name.toLowerCase() === wanted ? sum + 1 : sum), 0)
  return headFaultOf({
    hostCount: count('host'),
    lengthCount: count('content-length'),
    codingCount: count('transfer-encoding'),
    length,
    coding: headers['transfer-encoding'] ?? ''
  })
}
