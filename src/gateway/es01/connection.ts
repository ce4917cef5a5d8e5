/**
 * One ES01 connection: hello, frames in, answers out, and when to stop for whom. Main thread only.
 *
 *   hello ──▶ open ──▶ closing ──▶ lingering ──▶ closed
 *               (no frame is taken any more;   (our end is sent; the rest
 *                what is in progress is answered)   of theirs is dropped)
 *
 * Invariants
 * - Frames are taken in order, and a frame that cannot be taken stops those behind it: produces keep their order.
 * - While a whole frame waits, or memory for the next read is lacking, the socket is paused, and our timers stand still.
 *   It is paused in a read callback only (see ReceiveBuffer), or once and for all.
 * - Nothing here throws at the socket: a bug closes the connection, or answers `internal error`, and is logged.
 */
import type { Socket } from 'node:net'
import { assert } from '../../base/assert.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { anonymous, type Principal } from '../../model/principal.ts'
import { readU32 } from '../../wire/es01/bytes.ts'
import {
  FRAME_HEADER_BYTES,
  FRAME_LENGTH_MIN,
  isAnswerOpcode,
  isRequestOpcode,
  LENGTH_BYTES
} from '../../wire/es01/frame.ts'
import {
  encodeHelloReply,
  HELLO_HEADER_BYTES,
  helloStatuses,
  readHello,
  type HelloStatus
} from '../../wire/es01/handshake.ts'
import { logFailure, toldOf } from '../shared/internal-failures.ts'
import type { AnswerSink } from './answers.ts'
import { answerError } from './answers.ts'
import type { BufferPool } from './buffer-pool.ts'
import type { ConnectionHost, HostedConnection } from './connection-host.ts'
import { Outbox } from './outbox.ts'
import type { CloseReason } from './probe.ts'
import type { ReceiveBudget } from './receive-buffer.ts'
import { ReceiveBuffer } from './receive-buffer.ts'
import { ReplyShare } from './reply-share.ts'
import type { FrameOutcome } from './requests.ts'
import { isOwnStall, type Stall } from './stall.ts'
import type { ByteTaker } from './take-socket.ts'
import { takeSocket } from './take-socket.ts'

type State = 'hello' | 'open' | 'closing' | 'lingering' | 'closed'

export class Es01Connection implements AnswerSink, ByteTaker, HostedConnection {
  readonly outbox: Outbox
  readonly replies: ReplyShare
  readonly pool: BufferPool
  readonly remoteAddress: string
  readonly isDirect: boolean
  memoryWaitSinceMs = Infinity
  /** Who the hello said it is. */
  who: Principal = anonymous
  readonly #host: ConnectionHost
  readonly #socket: Socket
  readonly #receive: ReceiveBuffer
  #state: State = 'hello'
  #stall: Stall = 'none'
  #isPaused = false
  #inputEnded = false
  #inFlight = 0
  /** A produce is held by the broker: what comes behind it must not overtake it. */
  #isHeld = false
  /** Has the length of the frame in front arrived? */
  #hasPrefix = false
  /** Monotonic time at which the hello, the frame, or the silence began, or the linger ends. */
  #sinceMs: number
  /** Since when it was watched how the frame in front comes on, and what was there of it then. */
  #progress: { readonly sinceMs: number; readonly bytes: number } | null = null
  /** Waits for room or bytes: asked once, not once per attempt. */
  #isWaiting = false
  readonly #wake: () => void

  /** @param memory what the requests of this client may hold. */
  constructor(host: ConnectionHost, accepted: Socket, remoteAddress: string, memory: ReceiveBudget) {
    this.#host = host
    this.remoteAddress = remoteAddress
    this.replies = new ReplyShare(host.replyBudget, host.replyShareBytes)
    this.pool = host.pool
    this.#sinceMs = host.clock.monotonicMs()
    this.#receive = new ReceiveBuffer(host.receive, memory)
    this.#wake = () => {
      this.#isWaiting = false
      host.wake(this)
    }
    const taken = takeSocket(accepted, this)
    this.isDirect = taken.isDirect
    this.#socket = taken.socket
    const write = (buffers: readonly Buffer[], written: () => void) => this.#write(buffers, written)
    this.outbox = new Outbox(host.pool, this.replies, write, () => this.#afterWrite())
    this.#socket.setNoDelay(true)
    this.#socket.on('end', () => this.#onEnd())
    this.#socket.on('error', error => {
      host.probe.socketErrors++
      host.logger.debug({ remoteAddress, error: error.message }, 'an ES01 connection broke')
    })
    this.#socket.on('close', () => this.#onClose())
  }

  nextTail(): Uint8Array {
    // Asked for the first time while the socket is still being made.
    return this.#receive.nextTail(this.#isPaused)
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

  answered(isError: boolean): void {
    if (isError) this.#host.probe.errorFrames++
    this.#host.markDirty(this)
  }

  completed(isError: boolean): void {
    this.#inFlight--
    assert(this.#inFlight >= 0, 'more answers than requests in progress')
    this.answered(isError)
  }

  dispatched(): void {
    this.#isHeld = false
    this.#host.markDirty(this)
  }

  afterDelivery(): void {
    this.outbox.flush(this.#host.clock.monotonicMs())
    const canGoOn =
      (this.#stall === 'held' && !this.#isHeld) ||
      (this.#stall === 'inFlight' && this.#inFlight < limits.connectionRequestsMax) ||
      (this.#stall === 'shareFull' && this.replies.hasRoom) ||
      (this.#stall === 'unsent' && this.outbox.unsentBytes < limits.unsentBytesMax)
    if (canGoOn) this.#host.wake(this)
    this.#endIfDone()
  }

  resume(): void {
    if (this.#isPaused && this.#isTaking()) this.#guard(() => this.#process())
  }

  beginClose(): void {
    if (!this.#isTaking()) return
    this.#state = 'closing'
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
    const { timeouts } = this.#host
    const elapsedMs = nowMs - this.#sinceMs
    const { writingSinceMs } = this.outbox
    const writeMs = isShort.replies ? Math.min(timeouts.writeMs, timeouts.stalledMs) : timeouts.writeMs
    if (writingSinceMs >= 0 && nowMs - writingSinceMs > writeMs) return this.drop('slowReader')
    if (this.#state === 'lingering' && elapsedMs > timeouts.lingerMs) return this.abandon()
    if (this.#isPaused || !this.#isTaking()) return
    if (this.#state === 'hello') {
      if (elapsedMs > timeouts.helloMs) this.drop('helloTimeout')
    } else if (this.#hasPrefix) {
      if (elapsedMs > timeouts.bodyMs) this.drop('bodyTimeout')
      else if (this.#receive.ownBytes > 0 && isShort.requests) this.#checkProgress(nowMs)
      else this.#progress = null
    } else if (elapsedMs > timeouts.idleMs && this.#inFlight === 0 && this.outbox.unsentBytes === 0) {
      this.drop('idleTimeout')
    }
  }

  /** Others wait for the memory of a frame in part: it must come on. */
  #checkProgress(nowMs: number): void {
    const { pendingBytes } = this.#receive
    this.#progress ??= { sinceMs: nowMs, bytes: pendingBytes }
    const elapsedMs = nowMs - this.#progress.sinceMs
    if (elapsedMs <= this.#host.timeouts.stalledMs) return
    const least = (elapsedMs * limits.shortFrameBytesPerSecond) / 1000
    if (pendingBytes - this.#progress.bytes < least) this.drop('memory')
    else this.#progress = null
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
    for (;;) {
      const pending = receive.pendingBytes
      receive.expectedBytes = LENGTH_BYTES
      if (pending < LENGTH_BYTES) return
      const length = readU32(receive.bytes, receive.start)
      if (!this.#hasPrefix) {
        this.#hasPrefix = true
        this.#sinceMs = this.#host.clock.monotonicMs()
      }
      if (length < FRAME_LENGTH_MIN || length > this.#host.frameLengthMax) return this.#refuse('frameLength')
      receive.expectedBytes = LENGTH_BYTES + length
      if (pending < FRAME_HEADER_BYTES) return
      const opcode = receive.bytes[receive.start + FRAME_HEADER_BYTES - 1] as number
      if (!isRequestOpcode(opcode) && !isAnswerOpcode(opcode)) return this.#refuse('unknownOpcode')
      if (pending < receive.expectedBytes) return
      if (!this.#takeFrame(receive.start + receive.expectedBytes)) return
      receive.start += receive.expectedBytes
      receive.shownBytes = receive.expectedBytes
      this.#hasPrefix = false
      this.#progress = null
    }
  }

  /** @returns false if the whole frame up to `end` has to wait, or is the last that is taken. */
  #takeFrame(end: number): boolean {
    if (this.#isHeld) this.#stall = 'held'
    else if (this.#inFlight >= limits.connectionRequestsMax) this.#stall = 'inFlight'
    else if (this.outbox.unsentBytes >= limits.unsentBytesMax) this.#stall = 'unsent'
    else {
      const outcome = this.#offer(end)
      if (outcome === 'revoked') {
        this.#refuse('keyRevoked')
        return false
      }
      if (outcome !== 'started' && outcome !== 'held' && outcome !== 'answered') this.#stall = outcome
      else {
        this.#host.probe.requests++
        if (outcome !== 'answered') this.#inFlight++
        this.#isHeld = outcome === 'held'
      }
    }
    return this.#stall === 'none'
  }

  #offer(end: number): FrameOutcome {
    const { bytes, start } = this.#receive
    try {
      return this.#host.requests.take(this, bytes, start, end)
    } catch (error) {
      // A bug of ours. This request is answered, the others go on; what is known about it goes to the log alone.
      answerError(this, readU32(bytes, start + LENGTH_BYTES), new BrokerError('INTERNAL', {}, { cause: error }))
      return 'answered'
    }
  }

  noteFailure(error: BrokerError): string {
    const { requestId } = toldOf(error)
    logFailure(this.#host.logger, requestId, error, { remoteAddress: this.remoteAddress })
    return requestId
  }

  /** @returns true once the hello was accepted. */
  #takeHello(): boolean {
    const receive = this.#receive
    const verdict = readHello(receive.bytes, receive.start, receive.end)
    if (verdict.kind === 'incomplete') {
      receive.expectedBytes = verdict.bytes === 0 ? HELLO_HEADER_BYTES + limits.tokenBytesMax : verdict.bytes
      return false
    }
    if (verdict.kind === 'refused') {
      return this.#refuseHello(verdict, verdict.status === helloStatuses.badMagic ? 'badMagic' : 'tokenTooLong')
    }
    const tokenStart = receive.start + verdict.bytes - verdict.tokenBytes
    const admission = this.#host.doorkeeper.admit(receive.bytes.subarray(tokenStart, receive.start + verdict.bytes))
    if (admission.who === null) {
      return this.#refuseHello(admission, admission.status === helloStatuses.authFailed ? 'authFailed' : 'authRequired')
    }
    this.who = admission.who
    const reply = encodeHelloReply(helloStatuses.ok, 0, '')
    this.outbox.append(reply, 0, reply.length)
    this.#host.markDirty(this)
    receive.start += verdict.bytes
    this.#sinceMs = this.#host.clock.monotonicMs()
    this.#state = 'open'
    return true
  }

  #refuseHello({ status, message }: { status: HelloStatus; message: string }, reason: CloseReason): false {
    const reply = encodeHelloReply(status, 0, message)
    this.outbox.append(reply, 0, reply.length)
    this.#refuse(reason)
    return false
  }

  #refuse(reason: CloseReason): void {
    this.#host.probe.refused[reason]++
    this.beginClose()
  }

  /** Reads on if there is nothing to wait for and memory for it; else pauses and asks to be woken. */
  #steerReading(): void {
    if (this.#stall === 'none' && !this.#receive.tryRoom(this.#isPaused)) this.#stall = 'noMemory'
    this.memoryWaitSinceMs =
      this.#stall === 'noMemory' ? Math.min(this.memoryWaitSinceMs, this.#host.clock.monotonicMs()) : Infinity
    if (this.#stall === 'none') return this.#unpause()
    this.#pause()
    if (this.#isWaiting || isOwnStall(this.#stall)) return
    this.#isWaiting = true
    if (this.#stall === 'noRoom') this.#host.whenRoom(this.#wake)
    else if (this.#stall === 'noReplyBytes') this.replies.whenReleased(this.#wake)
    else this.#host.receive.budget.whenReleased(this.#wake)
  }

  #pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    if (this.#isTaking()) this.#host.probe.pauses++
    this.#socket.pause()
  }

  #unpause(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#sinceMs = this.#host.clock.monotonicMs()
    this.#socket.resume()
  }

  #write(buffers: readonly Buffer[], written: () => void): void {
    this.#socket.cork()
    buffers.forEach((buffer, i) => {
      if (i === buffers.length - 1) this.#socket.write(buffer, written)
      else this.#socket.write(buffer)
    })
    this.#socket.uncork()
  }

  #afterWrite(): void {
    if (this.#state === 'closed') return
    // Reading its answers is a sign of life too: the silence begins when the last of them was taken.
    if (!this.#hasPrefix && this.#state === 'open') this.#sinceMs = this.#host.clock.monotonicMs()
    this.afterDelivery()
  }

  #endIfDone(): void {
    if (this.#state !== 'closing' || this.#inFlight > 0 || this.outbox.unsentBytes > 0) return
    this.#state = 'lingering'
    this.#sinceMs = this.#host.clock.monotonicMs()
    this.#socket.end()
    this.#isPaused = false
    this.#socket.resume()
  }

  #onEnd(): void {
    this.#inputEnded = true
    this.#guard(() => this.#process())
  }

  #onClose(): void {
    this.#state = 'closed'
    this.memoryWaitSinceMs = Infinity
    this.outbox.drop()
    this.#receive.discard()
    this.#host.closed(this)
  }

  #guard(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.#host.logger.error({ remoteAddress: this.remoteAddress, error }, 'an ES01 connection met a bug')
      this.drop('bug')
    }
  }
}
