/**
 * The HTTP engine on node:http, for systems where uWebSockets.js does not load. Main thread. It owns one server, its
 * connections and the replies in progress, and behaves like the other engine where engine.ts says so.
 * Unlike it, it answers requests that wait behind one in progress in their turn, and refuses malformed ones in JSON. A
 * request behind an answer without a known end closes the connection here too.
 */
import { createServer, STATUS_CODES } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { Server as SecureServer } from 'node:https'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { TLSSocket } from 'node:tls'
import { assert } from '../../../base/assert.ts'
import type { Clock } from '../../../base/clock.ts'
import { limits } from '../../../model/limits.ts'
import { plainAddress } from '../../shared/address.ts'
import { isPlainClient } from '../../shared/plain-clients.ts'
import type { Certificate } from '../../shared/certificates.ts'
import { AnswerPace } from './answer-pace.ts'
import type { Lateness, PaceLook } from './answer-pace.ts'
import { addressRefused, NO_HEADERS, WHOLE_ANSWER_BYTES_MAX, withoutLength } from './engine.ts'
import type {
  AnswerHolding,
  BodySink,
  EngineOptions,
  HttpEngine,
  RefusalBody,
  Reply,
  ReplyHead,
  ReplyWatcher,
  RequestHandler,
  RequestHead
} from './engine.ts'
import { JSON_TYPE } from '../accept.ts'
import { readHead } from './node-head.ts'
import { NodeOpenAnswer } from './node-open-answer.ts'
import type { HttpProbe, RequestMeter } from '../probe.ts'
import { ReplySet } from './reply-set.ts'
import type { WatchedReply } from './reply-set.ts'

const EMPTY = Buffer.alloc(0)

/** Bytes handed to the socket at once: between two such pieces a client shows that it reads. */
const PIECE_BYTES = WHOLE_ANSWER_BYTES_MAX

/** Between two looks at the connections that owe their headers. */
const CONNECTION_LOOK_MS = 1_000

function pemOf({ cert, key }: Certificate): { cert: string; key: string } {
  return { cert, key }
}

/** Parser faults that have a status of their own. */
const refusalStatuses: ReadonlyMap<string, number> = new Map([
  ['HPE_HEADER_OVERFLOW', 431],
  ['ERR_HTTP_REQUEST_TIMEOUT', 408]
])

/** What the parser has against it, in words. */
function problemOf(error: Error, status: number): string {
  if (status === 431) return `its headers are over the limit of ${limits.httpHeaderBytesMax} bytes`
  if (status === 408) return 'it did not come in time'
  return 'reason' in error && typeof error.reason === 'string' ? error.reason : error.message
}

class NodeReply implements Reply, WatchedReply {
  watcher: ReplyWatcher | null = null
  meter: RequestMeter | null = null
  holding: AnswerHolding | null = null
  isAnswered = false
  isClosed = false
  standingHeaders = NO_HEADERS
  readonly #response: ServerResponse
  /** The response has its socket only once its turn has come. */
  readonly #socket: Socket
  readonly #isHeadRequest: boolean
  readonly #engine: NodeEngine
  /** What has not been handed to the socket: how much there will be, and what of it is here. */
  #leftBytes = 0
  readonly #pending: Buffer[] = []
  #pendingBytes = 0
  readonly #pace = new AnswerPace()
  /** Bytes of the outstanding write; 0: there is none. */
  #writingBytes = 0
  /** null: the answer has a known end, or has not begun. */
  #open: NodeOpenAnswer | null = null
  readonly #written = (error?: Error | null): void => {
    const takenBytes = this.#writingBytes
    this.#writingBytes = 0
    // After a failed write the reply closes by itself.
    if (error) return
    this.#pace.took(this.#engine.clock.monotonicMs(), takenBytes)
    this.#writeNext()
    this.holding?.take(takenBytes)
  }

  constructor(request: IncomingMessage, response: ServerResponse, engine: NodeEngine) {
    this.#response = response
    this.#socket = request.socket
    this.#isHeadRequest = request.method === 'HEAD'
    this.#engine = engine
    response.once('finish', () => this.#close(false))
    response.once('close', () => this.#close(true))
  }

  /** All of the answer is with the socket. */
  get isHandedOver(): boolean {
    return this.isAnswered && this.#leftBytes === 0 && this.#open === null
  }

  /** It has no known end: no other answer follows on its connection. */
  get isOpen(): boolean {
    return this.#open !== null
  }

  get clientAddress(): string {
    return this.isClosed ? '' : plainAddress(this.#socket.remoteAddress ?? '')
  }

  #writeHead(head: ReplyHead, bodyBytes: number): void {
    this.isAnswered = true
    const response = this.#response
    response.statusCode = head.status
    if (this.meter !== null) this.meter.status = head.status
    if (head.contentType !== null) {
      response.setHeader('content-type', head.contentType)
      response.setHeader('content-length', bodyBytes)
    }
    for (const [name, value] of this.standingHeaders) response.setHeader(name, value)
    for (const [name, value] of head.headers ?? []) response.setHeader(name, value)
    if (head.mustClose === true || this.#engine.isStopping) response.setHeader('connection', 'close')
  }

  send(head: ReplyHead, body: Buffer): void {
    if (this.isClosed || this.isAnswered) return
    this.begin(head, body.length)
    this.chunk(body, 0, body.length)
  }

  begin(head: ReplyHead, totalBytes: number): void {
    if (this.isClosed || this.isAnswered) return
    this.#writeHead(head, totalBytes)
    this.#leftBytes = this.#isHeadRequest ? 0 : totalBytes
    if (this.#leftBytes === 0) this.#response.end()
  }

  /** The socket holds a copy until it drains, the caller lends the bytes until return. */
  chunk(bytes: Buffer, start: number, end: number): void {
    if (this.isClosed || this.#leftBytes === 0) return
    this.#pending.push(Buffer.from(bytes.subarray(start, end)))
    this.#pendingBytes += end - start
    if (this.#writingBytes === 0) this.#writeNext()
  }

  #writeNext(): void {
    const bytes = this.#pending[0]
    if (this.isClosed || bytes === undefined) {
      this.#pace.end()
      return
    }
    const piece = bytes.subarray(0, PIECE_BYTES)
    if (piece.length === bytes.length) this.#pending.shift()
    else this.#pending[0] = bytes.subarray(PIECE_BYTES)
    this.#pace.begin(this.#engine.clock.monotonicMs(), this.#pendingBytes)
    this.#pendingBytes -= piece.length
    this.#leftBytes -= piece.length
    this.#writingBytes = piece.length
    if (this.#leftBytes === 0) this.#response.end(piece)
    else this.#response.write(piece, this.#written)
  }

  open(head: ReplyHead, _filler: Buffer): void {
    if (this.isClosed || this.isAnswered) return
    if (this.#isHeadRequest) {
      this.#writeHead(withoutLength(head), 0)
      this.#response.end()
      return
    }
    if (this.#engine.hasBehind(this, this.#socket)) {
      // Their turn would never come, and what their answers hold would be held for as long as this one is open.
      this.abort()
      return
    }
    // Its connection ends with it.
    this.#writeHead(withoutLength({ ...head, mustClose: true }), 0)
    this.meter?.endAs(head.status)
    this.meter = null
    const onDrained = (): void => this.watcher?.onReplyDrained?.()
    this.#open = new NodeOpenAnswer(this.#response, { clock: this.#engine.clock, onDrained })
  }

  push(bytes: Buffer): boolean {
    return !this.isClosed && this.#open !== null && this.#open.push(bytes)
  }

  finish(): void {
    if (!this.isClosed) this.#open?.end()
  }

  /** An answer whose turn has not come is not late. */
  lookAtPace(look: PaceLook): Lateness | null {
    if (this.#open !== null) {
      const isTurn = this.#response.socket !== null
      return isTurn ? this.#open.pace.look(look, this.holding?.isShort === true) : null
    }
    if (this.#writingBytes === 0) return null
    const waitingBytes = this.#pendingBytes + this.#writingBytes
    if (this.#response.socket === null) this.#pace.restart(look.nowMs, waitingBytes)
    return this.#pace.look(look, this.holding?.isShort === true, waitingBytes)
  }

  abort(): void {
    // It closes later: until then it is late no more.
    this.#pace.end()
    this.#socket.destroy()
  }

  #close(aborted: boolean): void {
    if (this.isClosed) return
    this.isClosed = true
    this.#open = null
    this.#pending.length = 0
    this.#pendingBytes = 0
    this.#engine.replies.forget(this)
    this.meter?.end()
    this.watcher?.onReplyClosed(aborted)
  }
}

/** Hands the body on as it comes. With a known length the last chunk is known as such, else an empty one ends it. */
function feed(request: IncomingMessage, head: RequestHead, reply: Reply, sink: BodySink): void {
  let leftBytes = head.contentLength
  let isOver = false
  const deliver = (chunk: Buffer, isLast: boolean): void => {
    // Answered early: the rest is read and dropped.
    if (isOver || reply.isAnswered || reply.isClosed) return
    isOver = isLast
    sink.onBodyChunk(chunk, isLast)
  }
  request.on('data', (chunk: Buffer) => {
    leftBytes -= chunk.length
    deliver(chunk, leftBytes === 0)
  })
  request.on('end', () => deliver(EMPTY, true))
}

export class NodeEngine implements HttpEngine {
  readonly name = 'node'
  isStopping = false
  readonly #server: Server | SecureServer
  readonly clock: Clock
  readonly #probe: HttpProbe
  readonly #handler: RequestHandler
  readonly #refusalBody: RefusalBody
  readonly #onPlainClient: EngineOptions['onPlainClient']
  readonly replies: ReplySet<NodeReply>
  /** All that were accepted, those in their TLS handshake included. */
  readonly #connections = new Set<Socket>()
  /** Connections with a request in progress, the newest: a refusal must not be written into another's answer. */
  readonly #busy = new Map<Duplex, { readonly request: IncomingMessage; readonly reply: NodeReply }>()
  /** Connections whose TLS handshake is done. */
  readonly #secured = new WeakSet<Duplex>()

  constructor(engineOptions: EngineOptions) {
    const { handler, refusalBody, onPlainClient, clock, connectionsMax, idleMs, probe, certificate } = engineOptions
    this.clock = clock
    this.#probe = probe
    this.replies = new ReplySet(probe)
    this.#handler = handler
    this.#refusalBody = refusalBody
    this.#onPlainClient = onPlainClient
    const options = {
      requireHostHeader: false,
      keepAliveTimeout: idleMs,
      headersTimeout: limits.httpHeadersMs,
      // Bodies have a watch of their own (body-watch.ts), which minds how much comes.
      requestTimeout: 0,
      connectionsCheckingInterval: CONNECTION_LOOK_MS,
      maxHeaderSize: limits.httpHeaderBytesMax,
      noDelay: true
    }
    const onRequest = (request: IncomingMessage, response: ServerResponse): void => this.#onRequest(request, response)
    this.#server =
      certificate === null
        ? createServer(options, onRequest)
        : createSecureServer({ ...options, ...pemOf(certificate), handshakeTimeout: limits.tlsHandshakeMs }, onRequest)
    if (connectionsMax < Infinity) this.#server.maxConnections = connectionsMax
    this.#server.on('connection', (socket: Socket) => {
      probe.connections++
      probe.connectionsAccepted++
      this.#connections.add(socket)
      socket.once('close', () => {
        probe.connections--
        this.#connections.delete(socket)
      })
    })
    this.#server.on('secureConnection', (socket: TLSSocket) => this.#secured.add(socket))
    this.#server.on('drop', () => probe.connectionsRefused++)
    this.#server.on('clientError', (error: Error, socket: Duplex) => this.#refuse(error, socket))
    // An expectation that nobody knows is passed over, as the other engine does.
    this.#server.on('checkExpectation', onRequest)
    this.#server.on('connect', (_: IncomingMessage, socket: Duplex) =>
      this.#refuseRaw(socket, 400, 'CONNECT is for proxies')
    )
  }

  #onRequest(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    if (this.#busy.get(socket)?.reply.isOpen === true) {
      // The client was told that the connection ends with that answer (RFC 9112, 9.6): nothing behind it is carried out.
      socket.destroy()
      return
    }
    const reply = new NodeReply(request, response, this)
    const work = { request, reply }
    this.#busy.set(socket, work)
    response.once('close', () => {
      if (this.#busy.get(socket) === work) this.#busy.delete(socket)
    })
    this.replies.add(reply)
    const head = readHead(request)
    const sink = this.#handler(head, reply)
    if (sink === null) request.resume()
    else feed(request, head, reply, sink)
  }

  /** True if requests came on that connection after the one of that reply. */
  hasBehind(reply: NodeReply, socket: Socket): boolean {
    return this.#busy.get(socket)?.reply !== reply
  }

  #refuse(error: Error, socket: Duplex): void {
    const code = 'code' in error ? String(error.code) : ''
    if (/^(HPE|ERR_HTTP)_/.test(code)) this.#probe.malformedRequests++
    const status = refusalStatuses.get(code) ?? 400
    const work = this.#busy.get(socket)
    // A connection whose TLS handshake failed, or that does not speak TLS at all, understands no answer.
    const isSpokenTo = !(socket instanceof TLSSocket) || this.#secured.has(socket)
    if (!isSpokenTo && isPlainClient(error)) this.#onPlainClient(plainAddress(socket.remoteAddress ?? ''))
    if (!socket.writable || code === 'ECONNRESET' || !isSpokenTo) socket.destroy()
    else if (work === undefined) this.#refuseRaw(socket, status, problemOf(error, status))
    else if (work.reply.isHandedOver) socket.end()
    // The body of a request is malformed, and its answer is still open. Else that belongs to a request before.
    else if (!work.request.complete && !work.reply.isAnswered) {
      const head = { status, contentType: JSON_TYPE, mustClose: true }
      work.reply.send(head, this.#refusalBody(status, problemOf(error, status)))
    } else socket.destroy()
  }

  /** Answers what never became a request. */
  #refuseRaw(socket: Duplex, status: number, problem: string): void {
    const body = this.#refusalBody(status, problem)
    const head =
      `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nconnection: close\r\ncontent-type: ${JSON_TYPE}\r\n` +
      `content-length: ${body.length}\r\n\r\n`
    // Not left to the client, who may never close its side.
    socket.end(Buffer.concat([Buffer.from(head), body]), () => socket.destroy())
  }

  listen(host: string, port: number): Promise<number> {
    return new Promise((resolve, reject) => {
      const onError = (error: Error): void => {
        reject(addressRefused(host, port, 'code' in error ? String(error.code) : error.message))
      }
      this.#server.once('error', onError)
      this.#server.listen({ host, port, exclusive: true }, () => {
        this.#server.off('error', onError)
        const address = this.#server.address()
        resolve(typeof address === 'object' && address !== null ? address.port : port)
      })
    })
  }

  cutLate(look: PaceLook): number {
    return this.replies.cutLate(look)
  }

  useCertificate(certificate: Certificate): void {
    assert('setSecureContext' in this.#server, 'a certificate is changed only where there is one')
    this.#server.setSecureContext(pemOf(certificate))
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.isStopping) return
    this.isStopping = true
    const closed = new Promise<void>(resolve => this.#server.close(() => resolve()))
    this.#server.closeIdleConnections()
    await this.replies.whenIdle(deadlineMs)
    // Not closeAllConnections: that leaves out connections in their TLS handshake.
    for (const socket of this.#connections) socket.destroy()
    await closed
  }
}
