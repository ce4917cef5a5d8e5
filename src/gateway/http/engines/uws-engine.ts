/**
 * The HTTP engine on uWebSockets.js. Main thread. It owns a listener with its apps, and the replies in progress.
 *
 * What the library does differently from node:http, and this engine leaves as it is: a second request that was sent
 * behind one whose answer is not there yet closes the connection; malformed requests are refused by its parser in HTML;
 * idle connections and stalled readers are cut after ten seconds, and so are connections whose headers, or TLS
 * handshake and headers, take longer, and bodies that bring less than 16 KiB a second; it looks every four seconds.
 * It must never touch a response after its abort or its end, and never keep a body chunk: it is emptied on return.
 */
import { STATUS_CODES } from 'node:http'
import { createServer } from 'node:net'
import type { Clock } from '../../../base/clock.ts'
import type { Certificate } from '../../shared/certificates.ts'
import { textOfAddress } from '../../shared/address.ts'
import { AnswerPace } from './answer-pace.ts'
import type { Lateness, PaceLook } from './answer-pace.ts'
import { addressRefused, headFaultOf, NO_HEADERS, readLength, WHOLE_ANSWER_BYTES_MAX, withoutLength } from './engine.ts'
import type {
  AnswerHolding,
  EngineOptions,
  HeadFault,
  Headers,
  HttpEngine,
  Reply,
  ReplyHead,
  ReplyWatcher,
  RequestHandler,
  RequestHead
} from './engine.ts'
import type { RequestMeter } from '../probe.ts'
import { ReplySet } from './reply-set.ts'
import type { WatchedReply } from './reply-set.ts'
import { UwsListener } from './uws-listener.ts'
import { UwsOpenAnswer } from './uws-open-answer.ts'
import type { Uws, UwsRequest, UwsResponse } from './uws-shape.ts'

const EMPTY = Buffer.alloc(0)

/** Status line text per status, made once: `200 OK`. */
const statusLines = new Map(Object.entries(STATUS_CODES).map(([status, text]) => [Number(status), `${status} ${text}`]))

function writeHead(response: UwsResponse, head: ReplyHead, standing: Headers): void {
  response.writeStatus(statusLines.get(head.status) ?? String(head.status))
  if (head.contentType !== null) response.writeHeader('content-type', head.contentType)
  for (const [name, value] of standing) response.writeHeader(name, value)
  if (head.headers === undefined) return
  for (const [name, value] of head.headers) response.writeHeader(name, value)
}

class UwsReply implements Reply, WatchedReply {
  watcher: ReplyWatcher | null = null
  meter: RequestMeter | null = null
  holding: AnswerHolding | null = null
  isAnswered = false
  standingHeaders = NO_HEADERS
  #response: UwsResponse | null
  readonly #engine: UwsEngine
  readonly #isHeadRequest: boolean
  /** Set by begin(), cleared when it is written, so that head and first bytes leave together. */
  #unwrittenHead: ReplyHead | null = null
  #totalBytes = 0
  /** null: the socket took at once whatever there was. */
  #pace: AnswerPace | null = null
  /** Copies of what the socket did not take, in order. Bounded by the reply budget. */
  readonly #pending: Buffer[] = []
  #pendingBytes = 0
  /** null: the answer has a known end, or has not begun. */
  #open: UwsOpenAnswer | null = null

  constructor(response: UwsResponse, isHeadRequest: boolean, engine: UwsEngine) {
    this.#response = response
    this.#isHeadRequest = isHeadRequest
    this.#engine = engine
  }

  get isClosed(): boolean {
    return this.#response === null
  }

  get clientAddress(): string {
    return this.#response === null ? '' : textOfAddress(new Uint8Array(this.#response.getRemoteAddress()))
  }

  send(head: ReplyHead, body: Buffer): void {
    if (this.#response === null || this.isAnswered) return
    if (body.length > WHOLE_ANSWER_BYTES_MAX && !this.#isHeadRequest) {
      this.begin(head, body.length)
      this.chunk(body, 0, body.length)
    } else this.#finish(this.#response, head, body, body.length)
  }

  /** The whole answer in one write. @param body left out for a HEAD request, which gets its length only. */
  #finish(response: UwsResponse, head: ReplyHead, body: Buffer, bodyBytes: number): void {
    this.isAnswered = true
    if (this.meter !== null) this.meter.status = head.status
    const mustClose = head.mustClose === true || this.#engine.isStopping
    response.cork(() => {
      writeHead(response, head, this.standingHeaders)
      // Without an argument it sends no length, as a 204 must not; an undefined one would be taken for a number.
      if (head.contentType === null && !mustClose) response.endWithoutBody()
      else if (head.contentType === null) response.endWithoutBody(0, true)
      else if (this.#isHeadRequest) response.endWithoutBody(bodyBytes, mustClose)
      else response.end(body, mustClose)
    })
    this.close(false)
  }

  begin(head: ReplyHead, totalBytes: number): void {
    if (this.#response === null || this.isAnswered) return
    if (this.#isHeadRequest || totalBytes === 0) {
      this.#finish(this.#response, head, EMPTY, totalBytes)
      return
    }
    this.isAnswered = true
    if (this.meter !== null) this.meter.status = head.status
    this.#unwrittenHead = head
    this.#totalBytes = totalBytes
  }

  chunk(bytes: Buffer, start: number, end: number): void {
    const response = this.#response
    if (response === null || this.#totalBytes === 0) return
    if (this.#pending.length > 0) {
      this.#keep(bytes, start, end)
      return
    }
    let takenBytes = 0
    response.cork(() => {
      if (this.#unwrittenHead !== null) writeHead(response, this.#unwrittenHead, this.standingHeaders)
      this.#unwrittenHead = null
      takenBytes = this.#push(response, bytes.subarray(start, end))
      if (takenBytes === end - start) return
      this.#keep(bytes, start + takenBytes, end)
      this.#pace ??= new AnswerPace()
      this.#pace.begin(this.#engine.clock.monotonicMs(), this.#pendingBytes)
      response.onWritable(() => this.#drain())
    })
    this.holding?.take(takenBytes)
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    this.#pending.push(Buffer.from(bytes.subarray(start, end)))
    this.#pendingBytes += end - start
  }

  /** @returns how many bytes the socket took. Closes the reply with its last byte. */
  #push(response: UwsResponse, bytes: Buffer): number {
    const before = response.getWriteOffset()
    const [isTaken, isComplete] = response.tryEnd(bytes, this.#totalBytes)
    if (isComplete) {
      this.close(false)
      return bytes.length
    }
    return isTaken ? bytes.length : response.getWriteOffset() - before
  }

  /** @returns true if everything that waited is gone. */
  #drain(): boolean {
    while (this.#response !== null) {
      const bytes = this.#pending[0]
      if (bytes === undefined) break
      const takenBytes = this.#push(this.#response, bytes)
      const isWhole = takenBytes === bytes.length
      if (isWhole) this.#pending.shift()
      else this.#pending[0] = bytes.subarray(takenBytes)
      this.#pendingBytes -= takenBytes
      if (takenBytes > 0) this.#pace?.took(this.#engine.clock.monotonicMs(), takenBytes)
      this.holding?.take(takenBytes)
      if (!isWhole) return false
    }
    this.#pace?.end()
    return true
  }

  open(head: ReplyHead, filler: Buffer): void {
    if (this.#response === null || this.isAnswered) return
    if (this.#isHeadRequest) {
      this.#finish(this.#response, withoutLength(head), EMPTY, 0)
      return
    }
    this.isAnswered = true
    this.meter?.endAs(head.status)
    this.meter = null
    const writeHeadNow = (response: UwsResponse): void => {
      writeHead(response, head, this.standingHeaders)
      response.writeHeader('connection', 'close')
    }
    const onDrained = (): void => this.watcher?.onReplyDrained?.()
    this.#open = new UwsOpenAnswer(this.#response, {
      clock: this.#engine.clock,
      filler,
      writeHead: writeHeadNow,
      onDrained
    })
  }

  push(bytes: Buffer): boolean {
    return this.#open?.push(bytes) ?? false
  }

  finish(): void {
    if (this.#open === null) return
    this.#open.end()
    this.close(false)
  }

  lookAtPace(look: PaceLook): Lateness | null {
    if (this.#open !== null) return this.#open.pace.look(look, this.holding?.isShort === true)
    return this.#pace?.look(look, this.holding?.isShort === true, this.#pendingBytes) ?? null
  }

  abort(): void {
    this.#response?.close()
  }

  /** Drops every reference to the response and tells the watcher, once. */
  close(aborted: boolean): void {
    if (this.#response === null) return
    this.#response = null
    this.#open = null
    this.#unwrittenHead = null
    this.#pending.length = 0
    this.#pendingBytes = 0
    this.#engine.replies.forget(this)
    this.meter?.end()
    this.watcher?.onReplyClosed(aborted)
  }
}

/** The header as sent; null: it is not there. The library tells that from an empty one only where it walks all headers. */
function credentialOf(request: UwsRequest, name: string): string | null {
  const value = request.getHeader(name)
  if (value !== '') return value
  let found: string | null = null
  request.forEach(header => {
    if (header === name) found = ''
  })
  return found
}

/** Headers of the request at hand that say where it ends. Counted by a function of its own: no closure per request. */
let lengthCount = 0
let codingCount = 0

function countHeader(name: string): void {
  if (name === 'content-length') lengthCount++
  else if (name === 'transfer-encoding') codingCount++
}

/** The library takes the first of equal headers and any coding for chunked. Going over all costs 0.5 µs (measured). */
function readFault(request: UwsRequest, length: string, coding: string): HeadFault | null {
  lengthCount = 0
  codingCount = 0
  request.forEach(countHeader)
  // Several hosts are refused by its parser.
  return headFaultOf({ hostCount: 1, lengthCount, codingCount, length, coding })
}

function readHead(request: UwsRequest): RequestHead {
  const length = request.getHeader('content-length')
  const apiKey = request.getHeader('x-es-key') || null
  const coding = request.getHeader('transfer-encoding')
  const method = request.getCaseSensitiveMethod()
  const hasNoBody = length === '' && coding === '' && (method === 'GET' || method === 'HEAD')
  return {
    method,
    path: request.getUrl(),
    query: request.getQuery() ?? '',
    host: request.getHeader('host'),
    origin: request.getHeader('origin'),
    contentType: request.getHeader('content-type'),
    accept: request.getHeader('accept'),
    // Empty headers are worth a walk only where the other one would count instead.
    authorization:
      apiKey === null ? request.getHeader('authorization') || null : credentialOf(request, 'authorization'),
    apiKey,
    lastEventId: request.getHeader('last-event-id') || null,
    contentLength: readLength(length),
    isChunked: coding !== '',
    fault: hasNoBody ? null : readFault(request, length, coding)
  }
}

/** Why an address cannot be listened on: the library says only that it cannot. */
function findListenFault(host: string, port: number): Promise<string> {
  return new Promise(resolve => {
    const probe = createServer()
    probe.once('error', error => resolve('code' in error ? String(error.code) : error.message))
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve('EADDRINUSE')))
  })
}

export class UwsEngine implements HttpEngine {
  readonly name = 'uws'
  isStopping = false
  readonly #listener: UwsListener
  readonly #handler: RequestHandler
  readonly clock: Clock
  readonly replies: ReplySet<UwsReply>

  /** @throws Error of one line if the certificate cannot be used. */
  constructor(uws: Uws, options: EngineOptions) {
    this.#handler = options.handler
    this.clock = options.clock
    this.replies = new ReplySet(options.probe)
    this.#listener = new UwsListener({
      ...options,
      uws,
      onRequest: (response, request) => this.#onRequest(response, request)
    })
  }

  #onRequest(response: UwsResponse, request: UwsRequest): void {
    const head = readHead(request)
    const reply = new UwsReply(response, head.method === 'HEAD', this)
    this.replies.add(reply)
    response.onAborted(() => reply.close(true))
    const sink = this.#handler(head, reply)
    if (sink === null || reply.isClosed) return
    response.onData((chunk, isLast) => {
      if (!reply.isClosed) sink.onBodyChunk(Buffer.from(chunk), isLast)
    })
  }

  async listen(host: string, port: number): Promise<number> {
    const boundPort = this.#listener.listen(host, port)
    if (boundPort >= 0) return boundPort
    const fault = await findListenFault(host, port)
    this.isStopping = true
    this.#listener.close()
    throw addressRefused(host, port, fault)
  }

  cutLate(look: PaceLook): number {
    return this.replies.cutLate(look)
  }

  useCertificate(certificate: Certificate): void {
    this.#listener.useCertificate(certificate)
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    this.#listener.closeDoor()
    await this.replies.whenIdle(deadlineMs)
    // A socket that was accepted just before is with its app a turn of the loop later.
    await new Promise(resolve => setImmediate(resolve))
    this.#listener.close()
  }
}
