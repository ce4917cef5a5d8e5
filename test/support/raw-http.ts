/** HTTP requests byte by byte, for what no client library would send. One connection each. */
import assert from 'node:assert/strict'
import { connect } from 'node:net'

export interface RawAnswer {
  readonly status: number
  /** Names in lower case. */
  readonly headers: ReadonlyMap<string, string>
  readonly body: string
  /** The other side closed the connection. */
  readonly isClosed: boolean
}

export interface RawRequest {
  readonly method: string
  /** As it goes on the wire. */
  readonly path: string
  /** With their line ends. */
  readonly headers?: string
  /** Announced by its length, unless the headers say how it comes. */
  readonly body?: string | Buffer
}

const TIMEOUT_MS = 15_000

export function requestBytes({ method, path, headers = '', body }: RawRequest): Buffer {
  const content = Buffer.from(body ?? '')
  const isFramed = /^(content-length|transfer-encoding):/im.test(headers)
  const length = body === undefined || isFramed ? '' : `Content-Length: ${content.length}\r\n`
  const head = `${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${headers}${length}\r\n`
  return Buffer.concat([Buffer.from(head, 'latin1'), content])
}

/** What of an answer is here; null: not all of it. */
function answerOf(received: Buffer, isHead: boolean, isClosed: boolean): RawAnswer | null {
  const headEnd = received.indexOf('\r\n\r\n')
  if (headEnd < 0) return null
  const [statusLine = '', ...lines] = received.toString('latin1', 0, headEnd).split('\r\n')
  const headers = new Map(
    lines.map(line => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()])
  )
  const status = Number(statusLine.split(' ')[1])
  const length = headers.get('content-length')
  const bodyBytes = received.length - headEnd - 4
  // A stream has no end: its head is what there is to see of it here.
  const isStream = headers.get('content-type')?.startsWith('text/event-stream') === true
  const isWhole = isHead || isStream || status === 204 || (length !== undefined && bodyBytes >= Number(length))
  if (!isWhole && !isClosed) return null
  return { status, headers, body: received.toString('utf8', headEnd + 4), isClosed }
}

/**
 * Sends those bytes. @param mode end: our side is closed behind them, as a client that leaves does. closed: the answer is
 * taken as whole only when the other side has closed.
 * @returns null: the connection ended without an answer.
 */
export function sendBytes(url: string, bytes: Buffer, mode?: 'end' | 'closed'): Promise<RawAnswer | null> {
  const { hostname, port } = new URL(url)
  const isHead = bytes.subarray(0, 5).toString('latin1') === 'HEAD '
  return new Promise((resolve, reject) => {
    const socket = connect(Number(port), hostname)
    let received = Buffer.alloc(0)
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no whole answer to ${bytes.subarray(0, 200).toString('latin1')}: ${received.toString()}`))
    }, TIMEOUT_MS)
    const finish = (answer: RawAnswer | null): void => {
      clearTimeout(timer)
      resolve(answer)
      socket.destroy()
    }
    socket.on('connect', () => (mode === 'end' ? socket.end(bytes) : socket.write(bytes)))
    socket.on('data', (chunk: Buffer) => {
      received = Buffer.concat([received, chunk])
      const answer = answerOf(received, isHead, false)
      if (answer !== null && mode === undefined) finish(answer)
    })
    // A reset is one of the ways in which the other side closes; the close event follows.
    socket.on('error', () => undefined)
    socket.on('close', () => finish(answerOf(received, isHead, true)))
  })
}

/** One request that gets an answer. */
export async function sendRaw(url: string, request: RawRequest): Promise<RawAnswer> {
  const answer = await sendBytes(url, requestBytes(request))
  assert.ok(answer !== null, `${request.method} ${request.path} got no answer`)
  return answer
}
