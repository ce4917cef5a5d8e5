/**
 * One ES01 connection of a client: handshake, frames out, answers in, matched by request id in any order.
 * Any thread with an event loop; one owner.
 *
 * With gzip agreed, a large payload is deflated off this thread; frames behind it wait, so they leave in order.
 *
 * Invariants
 * - A request that was sent settles exactly once: by its answer, by its deadline, or by the loss of the connection.
 * - An id is not used again while its request is open, nor while a late answer to it may still come.
 */
import { connect } from 'node:net'
import type { Socket } from 'node:net'
import { connect as connectSecurely } from 'node:tls'
import type { Written } from '../../model/errors.ts'
import { FrameReader, isRequestOpcode, opcodes, patchRequestId } from '../../wire/es01/frame.ts'
import type { Frame } from '../../wire/es01/frame.ts'
import { encodeHello, features, helloStatuses, readHelloReply } from '../../wire/es01/handshake.ts'
import { isPlainPeer, trustOf, type ClientTls } from '../tls.ts'
import { Es01Error, refusal } from './errors.ts'
import { deflateFrame, inflatePayload } from './gzip.ts'

/** Longest answer that is believed, also inflated: far above what a broker sends, far below what exhausts a client. */
const ANSWER_BYTES_MAX = 256 * 1024 * 1024
const REQUEST_IDS = 2 ** 32

export interface ConnectOptions {
  readonly host: string
  readonly port: number
  /** Sent with the handshake. Default: empty. */
  readonly token?: string
  /** Left out: plain TCP. */
  readonly tls?: ClientTls
  /** Asks for payloads in gzip; they are if the broker accepts it. Default: false. */
  readonly gzip?: boolean
  /** For connecting and the handshake together. Default: 5 s. */
  readonly connectTimeoutMs?: number
  /** For each request that names no time of its own, from sending to its whole answer. Default: 30 s. */
  readonly requestTimeoutMs?: number
  /** Ends the connecting; of a connection that is made it ends nothing. */
  readonly signal?: AbortSignal
}

/** What is done with an answer. The frame's payload is a view that is valid during the call alone. */
type Settle = { readonly resolve: (frame: Frame) => void; readonly reject: (error: Es01Error) => void }

interface OpenRequest extends Settle {
  readonly startMs: number
  readonly timeoutMs: number
  /** False while it waits to be deflated: then nothing of it can have reached the broker. */
  isSent: boolean
}

/** A frame on its way out. null: still being deflated. */
interface Outgoing {
  readonly id: number
  bytes: Buffer | null
}

/** Connects and shakes hands. Rejects with Es01Error; then nothing is left open. */
export function openConnection(options: ConnectOptions): Promise<Es01ClientConnection> {
  const where = `${options.host}:${options.port}`
  return new Promise((resolve, reject) => {
    const address = { host: options.host, port: options.port, noDelay: true }
    const { tls, signal } = options
    if (signal?.aborted === true) return reject(abortedError())
    const socket = tls === undefined ? connect(address) : connectSecurely({ ...address, ...trustOf(tls) })
    const reader = new FrameReader(ANSWER_BYTES_MAX)
    const timeoutMs = options.connectTimeoutMs ?? 5_000
    const timer = setTimeout(() => {
      fail(new Es01Error('timeout', 'no', `no handshake with ${where} in ${timeoutMs} ms`))
    }, timeoutMs)
    const asked = options.gzip === true ? features.gzip : 0
    const abort = (): void => fail(abortedError())
    signal?.addEventListener('abort', abort)
    const fail = (error: Es01Error): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      // A socket that is being destroyed may still report; the promise has its reason already.
      socket
        .removeAllListeners()
        .on('error', () => {})
        .destroy()
      reject(error)
    }
    socket.on('error', error => {
      if (!isPlainPeer(error.message)) {
        return fail(new Es01Error('connection', 'no', `cannot connect to ${where}: ${error.message}`, error))
      }
      fail(new Es01Error('protocol', 'no', `what listens at ${where} does not speak TLS: leave out tls for it`, error))
    })
    socket.on('close', () => fail(new Es01Error('connection', 'no', `${where} closed the connection in the handshake`)))
    socket.on(tls === undefined ? 'connect' : 'secureConnect', () =>
      socket.write(encodeHello(options.token ?? '', asked))
    )
    socket.on('data', chunk => {
      reader.push(chunk)
      const reply = readHelloReply(reader.rest)
      if (reply === null) return
      if (typeof reply === 'string') return fail(new Es01Error('protocol', 'no', `${where}: ${reply}`))
      if (reply.status !== helloStatuses.ok) {
        return fail(
          new Es01Error('refused', 'no', `${where} refused the handshake: ${reply.message} (status ${reply.status})`)
        )
      }
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
      socket.removeAllListeners()
      reader.skip(reply.bytes)
      const hasGzip = (reply.features & asked & features.gzip) !== 0
      resolve(new Es01ClientConnection(socket, reader, hasGzip, options.requestTimeoutMs ?? 30_000))
    })
  })
}

function abortedError(): Es01Error {
  return new Es01Error('connection', 'no', 'the client was closed')
}

/** An open connection. Made by openConnection alone. */
export class Es01ClientConnection {
  /** Payloads of both directions are in gzip. */
  readonly hasGzip: boolean
  readonly #socket: Socket
  readonly #reader: FrameReader
  readonly #requestTimeoutMs: number
  /** In order of the calls. */
  readonly #open = new Map<number, OpenRequest>()
  /** Ids whose requests timed out: their answers are dropped when they come. */
  readonly #abandoned = new Set<number>()
  /** In order of the requests; empty unless the first is still being deflated. */
  readonly #outgoing: Outgoing[] = []
  #nextId = 1
  #timer: NodeJS.Timeout | null = null
  /** What the timer is set to. */
  #timerMs = Infinity
  /** When the first of the requests was made that are owed an answer since the peer was last heard; null: none is. */
  #waitingSinceMs: number | null = null
  /** Why nothing can be sent any more. */
  #ended: Es01Error | null = null
  readonly #closed: Promise<void>

  constructor(socket: Socket, reader: FrameReader, hasGzip: boolean, requestTimeoutMs: number) {
    this.hasGzip = hasGzip
    this.#socket = socket
    this.#reader = reader
    this.#requestTimeoutMs = requestTimeoutMs
    this.#closed = new Promise(resolve => socket.on('close', () => resolve()))
    socket.on('data', chunk => this.#onData(chunk))
    socket.on('error', error => this.#end('connection', `the connection broke: ${error.message}`, error))
    socket.on('close', () => this.#end('connection', 'the connection was closed by the broker'))
  }

  /** Requests without an answer yet. */
  get inFlight(): number {
    return this.#open.size
  }

  /** False once it was closed or lost: nothing can be sent any more. */
  get isOpen(): boolean {
    return this.#ended === null
  }

  /** An answer is due, and nothing came in all the time of a request. */
  get isSilent(): boolean {
    return this.#waitingSinceMs !== null && this.#waitingSinceMs + this.#requestTimeoutMs <= performance.now()
  }

  /**
   * Sends a whole request frame under an id of this connection, which is written into the frame.
   *
   * @param frame not to be changed or sent again until the promise settles: sockets read it later.
   * @param timeoutMs null: that of the connection. After a shorter one the connection goes on; a late answer is dropped.
   * @param read turns the answer into the result; its payload is a view that is valid during the call alone. It may throw Es01Error.
   * @returns rejects with Es01Error: `written` no if nothing left this client, unknown if the answer was lost.
   */
  request<Result>(frame: Buffer, timeoutMs: number | null, read: (answer: Frame) => Result): Promise<Result> {
    if (this.#ended !== null) {
      return Promise.reject(new Es01Error(this.#ended.kind, 'no', this.#ended.message, this.#ended))
    }
    const id = this.#takeId()
    patchRequestId(frame, 0, id)
    const startMs = performance.now()
    const timeout = timeoutMs ?? this.#requestTimeoutMs
    return new Promise((resolve, reject) => {
      this.#open.set(id, {
        startMs,
        timeoutMs: timeout,
        isSent: false,
        reject,
        resolve: answer => {
          try {
            if (answer.opcode === opcodes.error) throw refusal(answer.payload.toString('utf8'))
            resolve(read(answer))
          } catch (error) {
            reject(error)
          }
        }
      })
      this.#send(id, frame)
      this.#armTimer(startMs + timeout)
    })
  }

  /** Ends the connection when the answers to all open requests have come. Resolves when it is closed. */
  close(): Promise<void> {
    this.#ended ??= new Es01Error('connection', 'no', 'the client was closed')
    if (this.#outgoing.length === 0) this.#socket.end()
    return this.#closed
  }

  /** Closes at once; open requests reject. */
  destroy(): void {
    this.#end('connection', 'the client was closed')
  }

  #send(id: number, frame: Buffer): void {
    const bytes = this.hasGzip ? deflateFrame(frame) : frame
    if (Buffer.isBuffer(bytes) && this.#outgoing.length === 0) return this.#write(id, bytes)
    const outgoing: Outgoing = { id, bytes: Buffer.isBuffer(bytes) ? bytes : null }
    this.#outgoing.push(outgoing)
    if (Buffer.isBuffer(bytes)) return
    bytes.then(
      deflated => {
        outgoing.bytes = deflated
        this.#writeReady()
      },
      (error: unknown) => this.#end('protocol', `a request could not be deflated: ${String(error)}`, error)
    )
  }

  #writeReady(): void {
    for (let first = this.#outgoing[0]; first !== undefined && first.bytes !== null; first = this.#outgoing[0]) {
      this.#outgoing.shift()
      this.#write(first.id, first.bytes)
    }
    if (this.#ended !== null && this.#outgoing.length === 0) this.#socket.end()
  }

  /** One that timed out before it left is not sent any more. */
  #write(id: number, bytes: Buffer): void {
    const request = this.#open.get(id)
    if (request === undefined) return
    request.isSent = true
    this.#waitingSinceMs ??= request.startMs
    this.#socket.write(bytes)
  }

  #takeId(): number {
    do this.#nextId = (this.#nextId + 1) % REQUEST_IDS
    while (this.#open.has(this.#nextId) || this.#abandoned.has(this.#nextId))
    return this.#nextId
  }

  #onData(chunk: Buffer): void {
    this.#reader.push(chunk)
    if (this.#waitingSinceMs !== null) this.#waitingSinceMs = performance.now()
    for (;;) {
      const frame = this.#reader.next()
      if (frame === null) break
      if (typeof frame === 'string') return this.#end('protocol', frame)
      if (isRequestOpcode(frame.opcode)) return this.#end('protocol', `the broker sent opcode ${frame.opcode}`)
      const request = this.#open.get(frame.requestId)
      if (request !== undefined) {
        this.#open.delete(frame.requestId)
        this.#settle(request, frame)
      } else if (!this.#abandoned.delete(frame.requestId)) {
        return this.#end('protocol', `the broker answered request ${frame.requestId}, which is not open`)
      }
    }
    if (this.#open.size + this.#abandoned.size === 0) this.#waitingSinceMs = null
  }

  #settle(request: OpenRequest, answer: Frame): void {
    if (!this.hasGzip) return request.resolve(answer)
    const fail = (cause: unknown): void => {
      const message = `an answer cannot be inflated: ${cause instanceof Error ? cause.message : String(cause)}`
      request.reject(new Es01Error('protocol', 'unknown', message, cause))
      this.#end('protocol', message, cause)
    }
    let payload: Buffer | Promise<Buffer>
    try {
      payload = inflatePayload(answer.payload, ANSWER_BYTES_MAX)
    } catch (error) {
      return fail(error)
    }
    if (Buffer.isBuffer(payload)) request.resolve({ ...answer, payload })
    else payload.then(inflated => request.resolve({ ...answer, payload: inflated }), fail)
  }

  /** The timer goes off at the nearest deadline at the latest. It is not set anew for each answer: mostly all come in time. */
  #armTimer(deadlineMs: number): void {
    if (deadlineMs >= this.#timerMs) return
    this.#clearTimer()
    this.#timerMs = deadlineMs
    this.#timer = setTimeout(() => this.#onTimer(), Math.max(1, deadlineMs - performance.now()))
    this.#timer.unref()
  }

  #clearTimer(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    this.#timerMs = Infinity
  }

  #onTimer(): void {
    this.#clearTimer()
    const nowMs = performance.now()
    let nextMs = Infinity
    for (const [id, request] of this.#open) {
      const { startMs, timeoutMs, isSent, reject } = request
      if (startMs + timeoutMs > nowMs) {
        nextMs = Math.min(nextMs, startMs + timeoutMs)
        continue
      }
      this.#open.delete(id)
      if (isSent) this.#abandoned.add(id)
      reject(new Es01Error('timeout', isSent ? 'unknown' : 'no', `no answer in ${Math.round(timeoutMs)} ms`))
    }
    this.#armTimer(nextMs)
  }

  #end(kind: Es01Error['kind'], message: string, cause?: unknown): void {
    this.#ended ??= new Es01Error(kind, 'no', message, cause)
    this.#clearTimer()
    this.#socket.destroy()
    const lost = [...this.#open.values()]
    this.#open.clear()
    this.#outgoing.length = 0
    for (const request of lost) {
      // Sent, and no answer: the broker may have done it.
      const written: Written = request.isSent ? 'unknown' : 'no'
      request.reject(new Es01Error(kind, written, message, cause))
    }
  }
}
