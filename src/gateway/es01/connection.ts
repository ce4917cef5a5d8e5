/**
 * One ES01 connection: hello, frames in, answers out, and when to stop for whom. Main thread only.
 *
 *   hello ──▶ open ──▶ closing ──▶ lingering ──▶ closed
 *               (no frame is taken any more;   (our end is sent; the rest
 *                what is in progress is answered)   of theirs is dropped)
 *
 * Invariants
 * - Frames are taken in order, and a frame that cannot be taken stops those behind it: produces keep their order.
 * - While a whole frame waits, or memory for the one in front is lacking, the socket is paused, and our timers stand still.
 *   It is paused in a read callback only (see ReceiveBuffer), or once and for all.
 * - Nothing here throws at the socket: a bug closes the connection, or answers `internal error`, and is logged.
 */
import type { Socket } from 'node:net'
import { assert } from '../../base/assert.ts'
import { BrokerError, type ErrorCode } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { anonymous, type Principal } from '../../model/principal.ts'
import { FRAME_HEADER_BYTES, type FrameHead } from '../../wire/es01/frame.ts'
import { logFailure, toldOf } from '../shared/internal-failures.ts'
import { answerError, type AnswerSink } from './answers.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import type { ConnectionHost, HostedConnection } from './connection-host.ts'
import { frameInFront } from './frame-front.ts'
import { ClientDeadlines } from '../shared/client-deadlines.ts'
import type { AddressMemory } from '../shared/frame-memory.ts'
import { greet } from './greeting.ts'
import { Inflater } from './inflater.ts'
import { Outbox } from '../shared/outbox.ts'
import { countError, type CloseReason, type GzipCounts } from './probe.ts'
import { ReceiveBuffer } from '../shared/receive-buffer.ts'
import { ReplyShare } from '../shared/reply-share.ts'
import { isOwnStall, type Stall } from './stall.ts'
import { SocketReading } from '../shared/socket-reading.ts'
import { takeSocket, writeTogether, type ByteTaker } from '../shared/take-socket.ts'

type State = 'hello' | 'open' | 'closing' | 'lingering' | 'closed'

export class Es01Connection implements AnswerSink, ByteTaker, HostedConnection {
  readonly outbox: Outbox
  readonly replies: ReplyShare
  readonly pool: BufferPool
  readonly remoteAddress: string
  readonly isDirect: boolean
  /** Who the hello said it is. */
  who: Principal = anonymous
  readonly #host: ConnectionHost
  readonly #socket: Socket
  readonly #receive: ReceiveBuffer
  readonly #reading: SocketReading
  #state: State = 'hello'
  #stall: Stall = 'none'
  #inputEnded = false
  #inFlight = 0
  /** A produce is held by the broker: what comes behind it must not overtake it. */
  #isHeld = false
  readonly #deadlines: ClientDeadlines
  readonly #memory: AddressMemory
  /** null: payloads are not gzip. */
  #inflater: Inflater | null = null
  /** Waits for room or bytes: asked once, not once per attempt. */
  #isWaiting = false
  readonly #wake: () => void

  /** @param memory what the requests of this client may hold. */
  constructor(host: ConnectionHost, accepted: Socket, remoteAddress: string, memory: AddressMemory) {
    this.#host = host
    this.remoteAddress = remoteAddress
    this.replies = new ReplyShare(host.replyBudget, host.replyShareBytes)
    this.pool = host.pool
    this.#deadlines = new ClientDeadlines(host.clock, host.timeouts)
    this.#receive = new ReceiveBuffer(host.receive, memory, () => host.wake(this))
    this.#reading = new SocketReading(host.probe)
    this.#memory = memory
    this.#wake = () => {
      this.#isWaiting = false
      host.wake(this)
    }
    const taken = takeSocket(accepted, this)
    this.isDirect = taken.isDirect
    this.#socket = taken.socket
    const write = (buffers: readonly Buffer[], written: () => void) => writeTogether(taken.socket, buffers, written)
    this.outbox = new Outbox(host.pool, this.replies, write, () => this.#afterWrite())
    this.#socket.on('end', () => this.#onEnd())
    this.#socket.on('error', error => {
      host.probe.socketErrors++
      host.logger.debug({ remoteAddress, error: error.message }, 'an ES01 connection broke')
    })
    this.#socket.on('close', () => this.#onClose())
  }

  nextTail(): Uint8Array {
    // Asked for the first time while the socket is still being made.
    return this.#receive.nextTail(this.#reading.isPaused)
  }

  landed(bytes: number): void {
    this.#host.probe.receivedBytes += bytes
    if (this.#isTaking()) this.#receive.landed(bytes)
    this.#guard(() => this.#process())
  }

  arrived(chunk: Buffer): void {
    this.#host.probe.receivedBytes += chunk.length
    if (this.#isTaking()) this.#receive.arrived(chunk, 0, chunk.length)
    this.#guard(() => this.#process())
  }

  get gzip(): GzipCounts | null {
    return this.#inflater === null ? null : this.#host.probe.gzip
  }

  answered(code: ErrorCode | null): void {
    if (code !== null) countError(this.#host.probe, code)
    this.#host.markDirty(this)
  }

  completed(code: ErrorCode | null): void {
    this.#inFlight--
    assert(this.#inFlight >= 0, 'more answers than requests in progress')
    this.answered(code)
  }

  dispatched(): void {
    this.#isHeld = false
    this.#host.markDirty(this)
  }

  afterDelivery(): void {
    this.outbox.flush(this.#host.clock.monotonicMs())
    const stall = this.#stall
    const mayBeOver = stall === 'held' || stall === 'inFlight' || stall === 'unsent'
    if (mayBeOver ? this.#ownStall() !== stall : stall === 'shareFull' && this.replies.hasRoom) this.#host.wake(this)
    this.#endIfDone()
  }

  resume(): void {
    if (this.#reading.isPaused && this.#isTaking()) this.#guard(() => this.#process())
  }

  beginClose(): void {
    if (!this.#isTaking()) return
    this.#state = 'closing'
    this.#inflater?.drop()
    this.#pause()
    this.#host.markDirty(this)
  }

  drop(reason: CloseReason): void {
    if (this.#state === 'closed') return
    this.#host.probe.refused[reason]++
    this.abandon()
  }

  abandon(): void {
    this.#state = 'closed'
    this.#socket.destroy()
  }

  checkDeadlines(nowMs: number, isShort: { readonly replies: boolean; readonly requests: boolean }): void {
    const isHurried = isShort.replies || this.#inflater?.isInTheWay === true
    if (this.#deadlines.isWriteLate(nowMs, this.outbox.writingSinceMs, isHurried)) return this.drop('slowReader')
    if (this.#state === 'lingering' && this.#deadlines.isLingerOver(nowMs)) return this.abandon()
    if (this.#reading.isPaused || !this.#isTaking()) return
    if (this.#state === 'hello') {
      if (this.#deadlines.elapsedMs(nowMs) > this.#host.timeouts.helloMs) this.drop('helloTimeout')
      return
    }
    const isOwed = this.#inFlight > 0 || this.outbox.unsentBytes > 0
    const late = this.#deadlines.lateFrame(nowMs, { receive: this.#receive, isShort: isShort.requests, isOwed })
    if (late !== null) this.drop(late)
  }

  #isTaking(): boolean {
    return this.#state === 'hello' || this.#state === 'open'
  }

  /** Runs after every arrival, and after every wake. */
  #process(): void {
    if (this.#isTaking()) this.#takeFrames()
    if (this.#isTaking()) {
      this.#receive.settle()
      this.#steerReading()
      if (this.#inputEnded && this.#stall === 'none') this.beginClose()
    } else {
      this.#receive.discard()
    }
    this.#host.afterInput(this)
  }

  #takeFrames(): void {
    const receive = this.#receive
    this.#stall = 'none'
    if (this.#state === 'hello' && !this.#takeHello()) return
    if (this.#inflater?.hasTaken === true && !this.#takeInflated(this.#inflater)) return
    for (;;) {
      const front = frameInFront(receive, this.#host.frameLengthMax)
      if (front === 'none') return
      this.#deadlines.noteFrame()
      if (front === 'part') return
      if (front === 'frameLength' || front === 'unknownOpcode') return this.#refuse(front)
      if (!(this.#inflater === null ? this.#takePlain(front) : this.#inflate(this.#inflater, front))) return
    }
  }

  /** The whole frame in front is taken. */
  #consume(): void {
    this.#receive.taken()
    this.#deadlines.frameTaken()
  }

  /** @returns false if the whole frame in front has to wait, or is the last that is taken. */
  #takePlain(head: FrameHead): boolean {
    const { bytes, start, expectedBytes } = this.#receive
    if (this.#hasToWait() || !this.#offer(head, bytes, start + FRAME_HEADER_BYTES, start + expectedBytes)) return false
    this.#consume()
    return true
  }

  /** The same where its payload is gzip. */
  #inflate(inflater: Inflater, head: FrameHead): boolean {
    if (inflater.state === 'none' && this.#hasToWait()) return false
    const { bytes, start, expectedBytes } = this.#receive
    inflater.offer(this.who, head, bytes, start + FRAME_HEADER_BYTES, start + expectedBytes)
    if (inflater.state === 'ready') this.#consume()
    return this.#takeInflated(inflater)
  }

  #buildInflater(): Inflater {
    const onChange = (isReady: boolean) => {
      if (isReady) this.#consume()
      this.#host.wake(this)
    }
    const { remoteAddress } = this
    return new Inflater(this.#host.inflating, { remoteAddress, receive: this.#receive, memory: this.#memory, onChange })
  }

  /** @returns false while a frame is inflated, or has to wait although it is; nothing overtakes it. */
  #takeInflated(inflater: Inflater): boolean {
    if (inflater.state !== 'ready') {
      this.#stall = inflater.state === 'working' ? 'inflating' : 'noInflatingRoom'
      return false
    }
    const { head, payload } = inflater
    if (payload instanceof BrokerError) {
      this.#host.probe.requests++
      answerError(this, head.requestId, payload)
    } else if (this.#hasToWait() || !this.#offer(head, payload, 0, payload.length)) {
      if (this.#stall !== 'none') inflater.keep()
      return false
    }
    inflater.clear()
    return true
  }

  /** What of this connection a whole frame has to wait for. */
  #ownStall(): Stall {
    if (this.#isHeld) return 'held'
    if (this.#inFlight >= limits.connectionRequestsMax) return 'inFlight'
    return this.outbox.unsentBytes >= limits.unsentBytesMax ? 'unsent' : 'none'
  }

  #hasToWait(): boolean {
    this.#stall = this.#ownStall()
    return this.#stall !== 'none'
  }

  /** @returns false if the frame with the payload bytes[start, end) has to wait, or no further one is taken. */
  #offer(head: FrameHead, bytes: Buffer, start: number, end: number): boolean {
    const outcome = this.#host.requests.take(this, head, bytes, start, end)
    if (outcome === 'revoked') this.#refuse('keyRevoked')
    else if (outcome !== 'started' && outcome !== 'held' && outcome !== 'answered') this.#stall = outcome
    else {
      this.#host.probe.requests++
      if (outcome !== 'answered') this.#inFlight++
      this.#isHeld = outcome === 'held'
      return true
    }
    return false
  }

  noteFailure(error: BrokerError): string {
    const { requestId } = toldOf(error)
    logFailure(this.#host.logger, requestId, error, { remoteAddress: this.remoteAddress })
    return requestId
  }

  /** @returns true once the hello was accepted. */
  #takeHello(): boolean {
    const receive = this.#receive
    const greeting = greet(receive.bytes, receive.start, receive.end, this.#host.doorkeeper)
    if (greeting.kind === 'incomplete') {
      receive.expectedBytes = greeting.bytes
      return false
    }
    this.outbox.append(greeting.reply, 0, greeting.reply.length)
    if (greeting.kind === 'refused') {
      this.#refuse(greeting.reason)
      return false
    }
    this.who = greeting.who
    if (greeting.hasGzip) this.#inflater = this.#buildInflater()
    this.#host.markDirty(this)
    receive.start += greeting.bytes
    this.#deadlines.restart()
    this.#state = 'open'
    return true
  }

  #refuse(reason: CloseReason): void {
    this.#host.probe.refused[reason]++
    this.beginClose()
  }

  /** Reads on if there is nothing to wait for and memory for it; else pauses and asks to be woken. */
  #steerReading(): void {
    if (this.#stall === 'none' && !this.#receive.tryRoom(this.#reading.isPaused)) this.#stall = 'noMemory'
    if (this.#stall === 'none') return this.#unpause()
    this.#pause()
    if (this.#isWaiting || isOwnStall(this.#stall)) return
    this.#isWaiting = true
    if (this.#stall === 'noRoom') this.#host.whenRoom(this.#wake)
    else this.replies.whenReleased(this.#wake)
  }

  /** Inflating alone is no lack of anything. */
  #pause(): void {
    this.#reading.pause(this.#socket, this.#isTaking() && this.#stall !== 'inflating')
  }

  #unpause(): void {
    if (this.#reading.unpause(this.#socket)) this.#deadlines.restart()
  }

  #afterWrite(): void {
    if (this.#state === 'closed') return
    if (this.#state === 'open') this.#deadlines.writeTaken()
    this.afterDelivery()
  }

  #endIfDone(): void {
    if (this.#state !== 'closing' || this.#inFlight > 0 || this.outbox.unsentBytes > 0) return
    this.#state = 'lingering'
    this.#deadlines.restart()
    this.#socket.end()
    this.#reading.resume(this.#socket)
  }

  #onEnd(): void {
    this.#inputEnded = true
    this.#guard(() => this.#process())
  }

  #onClose(): void {
    this.#state = 'closed'
    this.outbox.drop()
    this.#inflater?.drop()
    this.#receive.discard()
    this.#host.closed(this)
  }

  #guard(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.#host.logger.error({ remoteAddress: this.remoteAddress, err: error }, 'an ES01 connection met a bug')
      this.drop('bug')
    }
  }
}
