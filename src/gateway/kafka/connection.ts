/**
 * One Kafka connection: requests in, responses out in the same order, and when to stop for whom. Main thread only.
 *
 *   open ──▶ closing ──▶ lingering ──▶ closed
 *     (no request is taken any more;   (our end is sent; the rest
 *      what is in progress is answered)   of theirs is dropped)
 *
 * Invariants
 * - Requests are taken in order, and one that cannot be taken stops those behind it.
 * - A response leaves when those of all requests before it have.
 * - While a whole request waits, or memory for the one in front is lacking, the socket is paused, and our timers stand still.
 *   It is paused in a read callback only (see ReceiveBuffer), or once and for all.
 * - Nothing here throws at the socket: a bug closes the connection, and is logged.
 */
import type { Socket } from 'node:net'
import { ByteBudget } from '../../base/byte-budget.ts'
import { limits } from '../../model/limits.ts'
import { FRAME_SIZE_BYTES } from '../../wire/kafka/headers.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import { ClientDeadlines } from '../shared/client-deadlines.ts'
import { Outbox } from '../shared/outbox.ts'
import { ReceiveBuffer, type ReceiveMemory } from '../shared/receive-buffer.ts'
import { ReplyShare } from '../shared/reply-share.ts'
import { SocketReading } from '../shared/socket-reading.ts'
import { takeSocket, writeTogether, type ByteTaker } from '../shared/take-socket.ts'
import type { ConnectionHost, HostedConnection } from './connection-host.ts'
import { errorName } from './error-names.ts'
import type { Exchange, ExchangeOwner } from './exchange.ts'
import { frameInFront } from './frame-front.ts'
import type { BrokerPlace } from './handler.ts'
import { countsOf, type CloseReason } from './probe.ts'
import type { SaslSession } from './sasl-session.ts'

type State = 'open' | 'closing' | 'lingering' | 'closed'
/** Why the whole request in front is not taken. */
type Stall = 'none' | 'held' | 'inFlight' | 'unsent' | 'muted' | 'noMemory' | 'behindOthers' | 'noRoom'

export class KafkaConnection implements ExchangeOwner, ByteTaker, HostedConnection {
  readonly replies: ReplyShare
  readonly pool: BufferPool
  readonly remoteAddress: string
  readonly advertised: BrokerPlace
  readonly sasl: SaslSession
  requestCount = 0
  readonly #host: ConnectionHost
  readonly #socket: Socket
  readonly #receive: ReceiveBuffer
  readonly #reading: SocketReading
  readonly #outbox: Outbox
  readonly #openedMs: number
  /** In the order in which they were taken. */
  readonly #exchanges: Exchange[] = []
  readonly #deadlines: ClientDeadlines
  #state: State = 'open'
  #stall: Stall = 'none'
  #inputEnded = false
  #holdCount = 0
  #muteTimer: NodeJS.Timeout | null = null
  /** A response that was due will not come: none behind it leaves. */
  #isCut = false
  /** Where the request in front has no room. */
  #room: ByteBudget | null = null
  /** Waits for room: asked once, not once per attempt. */
  #isWaiting = false

  /** @param memory what the requests of this client may hold. @param advertised where it is told to come again. */
  constructor(
    host: ConnectionHost,
    accepted: Socket,
    remoteAddress: string,
    memory: ReceiveMemory,
    advertised: BrokerPlace
  ) {
    this.#host = host
    this.remoteAddress = remoteAddress
    this.advertised = advertised
    this.sasl = host.newSession()
    this.replies = new ReplyShare(host.replyBudget, host.replyShareBytes)
    this.pool = host.pool
    this.#openedMs = host.clock.monotonicMs()
    this.#deadlines = new ClientDeadlines(host.clock, host.timeouts)
    this.#receive = new ReceiveBuffer(host.receive, memory, () => host.wake(this))
    this.#reading = new SocketReading(host.probe)
    const { socket } = takeSocket(accepted, this)
    this.#socket = socket
    const write = (buffers: readonly Buffer[], written: () => void) => writeTogether(socket, buffers, written)
    this.#outbox = new Outbox(host.pool, this.replies, write, () => this.#afterWrite())
    socket.on('end', () => this.#onEnd())
    socket.on('error', error => {
      host.probe.socketErrors++
      host.logger.debug({ remoteAddress, error: error.message }, 'a Kafka connection broke')
    })
    socket.on('close', () => this.#onClose())
  }

  get isBusy(): boolean {
    return this.#exchanges.length > 0
  }

  nextTail(): Uint8Array {
    return this.#receive.nextTail(this.#reading.isPaused)
  }

  landed(bytes: number): void {
    this.#host.probe.receivedBytes += bytes
    if (this.#state === 'open') this.#receive.landed(bytes)
    this.#guard(() => this.#process())
  }

  arrived(chunk: Buffer): void {
    this.#host.probe.receivedBytes += chunk.length
    if (this.#state === 'open') this.#receive.arrived(chunk, 0, chunk.length)
    this.#guard(() => this.#process())
  }

  begin(exchange: Exchange): void {
    this.requestCount++
    countsOf(this.#host.probe, exchange.api.name).requests++
    this.#exchanges.push(exchange)
    if (this.#exchanges.length === 1) exchange.becomeFirst()
  }

  finished({ api, startMs }: Exchange, errors: readonly number[]): void {
    const { probe, clock } = this.#host
    countsOf(probe, api.name).seconds.observe((clock.monotonicMs() - startMs) / 1000)
    for (const code of errors) {
      const name = errorName(code)
      probe.errors.set(name, (probe.errors.get(name) ?? 0) + 1)
    }
    while (this.#exchanges[0]?.frame) this.#send(this.#exchanges.shift() as Exchange)
    this.#host.markDirty(this)
    this.#exchanges[0]?.becomeFirst()
  }

  /** Adds a response to the outbox; what was reserved for it is given back with it, also when the connection is gone. */
  #send({ frame, enclosed, isLost }: Exchange): void {
    this.#isCut ||= isLost
    if (this.#isCut) return this.#giveBack(enclosed)
    for (const piece of frame ?? []) {
      this.#host.probe.sentBytes += piece.length
      const chunk = enclosed?.chunkOf.get(piece)
      if (chunk === undefined) this.#outbox.append(piece, 0, piece.length)
      else this.#outbox.adoptChunk(chunk, piece.length)
    }
    if (enclosed !== null) this.#outbox.finishAnswer(enclosed.reservedBytes)
  }

  #giveBack(enclosed: Exchange['enclosed']): void {
    if (enclosed === null) return
    for (const chunk of enclosed.chunkOf.values()) this.pool.give(chunk)
    this.replies.release(enclosed.reservedBytes)
  }

  sendBare(token: Buffer): void {
    const size = Buffer.alloc(FRAME_SIZE_BYTES)
    size.writeInt32BE(token.length)
    this.#outbox.append(size, 0, FRAME_SIZE_BYTES)
    this.#outbox.append(token, 0, token.length)
    this.#host.markDirty(this)
  }

  hold(): () => void {
    this.#holdCount++
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      this.#holdCount--
      this.#host.markDirty(this)
    }
  }

  mute(durationMs: number): void {
    if (this.#state !== 'open' || durationMs <= 0) return
    this.#endMute()
    this.#muteUntil(this.#host.clock.monotonicMs() + durationMs)
  }

  /** A timer may come a little early: what is taken then would be answered with nothing, as the debt is not paid. */
  #muteUntil(untilMs: number): void {
    const { clock } = this.#host
    const onTime = (): void => {
      if (clock.monotonicMs() < untilMs) return this.#muteUntil(untilMs)
      this.#muteTimer = null
      this.#host.wake(this)
    }
    this.#muteTimer = setTimeout(onTime, Math.ceil(untilMs - clock.monotonicMs()))
  }

  /** The request in front may come in so many ms. */
  #waitMuted(durationMs: number): void {
    this.mute(durationMs)
    this.#stall = 'muted'
  }

  afterDelivery(): void {
    this.#outbox.flush(this.#host.clock.monotonicMs())
    const stall = this.#stall
    const isOwn = stall !== 'none' && stall !== 'noMemory' && stall !== 'noRoom'
    if (isOwn && this.#ownStall() !== stall) this.#host.wake(this)
    this.#endIfDone()
  }

  resume(): void {
    if (this.#reading.isPaused && this.#state === 'open') this.#guard(() => this.#process())
  }

  refuse(reason: CloseReason, problem: string): void {
    if (this.#state !== 'open') return
    this.#host.probe.refused[reason]++
    this.#host.logger.debug({ remoteAddress: this.remoteAddress, reason, problem }, 'a Kafka connection is closed')
    this.beginClose()
  }

  beginClose(): void {
    if (this.#state !== 'open') return
    this.#state = 'closing'
    this.#pause()
    this.#endMute()
    for (const exchange of [...this.#exchanges]) exchange.closing()
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
    if (this.#deadlines.isWriteLate(nowMs, this.#outbox.writingSinceMs, isShort.replies)) return this.drop('slowReader')
    if (this.#state === 'lingering' && this.#deadlines.isLingerOver(nowMs)) return this.abandon()
    if (this.#state !== 'open') return
    const { authenticationMs } = this.#host.timeouts
    if (this.sasl.who === null && nowMs - this.#openedMs > authenticationMs) return this.drop('authTimeout')
    if (this.#reading.isPaused) return
    const isOwed = this.#exchanges.length > 0 || this.#outbox.unsentBytes > 0
    const late = this.#deadlines.lateFrame(nowMs, { receive: this.#receive, isShort: isShort.requests, isOwed })
    if (late !== null) this.drop(late)
  }

  /** Runs after every arrival, and after every wake. */
  #process(): void {
    if (this.#state === 'open') this.#takeRequests()
    if (this.#state === 'open') {
      this.#receive.settle()
      this.#steerReading()
      if (this.#inputEnded && this.#stall === 'none') this.beginClose()
    } else {
      this.#receive.discard()
    }
    this.#host.afterInput(this)
  }

  #takeRequests(): void {
    const receive = this.#receive
    this.#stall = 'none'
    while (this.#state === 'open') {
      const { isBare } = this.sasl
      const front = frameInFront(receive, this.#sizeMax(), isBare)
      if (front.kind === 'none') return
      if (front.kind === 'foreign') return this.#refuseForeign(front.protocol)
      if (front.kind === 'size') return this.refuse('frameSize', front.problem)
      this.#deadlines.noteFrame()
      if (front.kind === 'part') return
      this.#stall = this.#ownStall()
      if (this.#stall !== 'none') return
      const { bytes, start, expectedBytes } = receive
      const { requests } = this.#host
      const body = [start + FRAME_SIZE_BYTES, start + expectedBytes] as const
      const taken = isBare ? requests.takeBare(this, bytes, ...body) : requests.take(this, bytes, ...body)
      if (typeof taken === 'number') return this.#waitMuted(taken)
      if (taken === 'behindOthers' || taken instanceof ByteBudget) {
        this.#stall = taken === 'behindOthers' ? taken : 'noRoom'
        this.#room = taken === 'behindOthers' ? null : taken
        return
      }
      if (taken !== null) return this.refuse(taken.reason, taken.problem)
      this.#consume()
    }
  }

  /** Nobody who has not said who it is needs a large request. */
  #sizeMax(): number {
    const { frameSizeMax } = this.#host
    return this.sasl.who === null ? Math.min(frameSizeMax, limits.kafkaGreetingBytesMax) : frameSizeMax
  }

  /** The whole request in front is taken. */
  #consume(): void {
    if (this.#state !== 'open') return
    this.#receive.taken()
    this.#deadlines.frameTaken()
  }

  #refuseForeign(protocol: Parameters<ConnectionHost['noteForeign']>[0]): void {
    this.#host.noteForeign(protocol, this.remoteAddress)
    this.refuse('foreignProtocol', protocol)
  }

  /** What of this connection a whole request has to wait for. */
  #ownStall(): Stall {
    if (this.#holdCount > 0) return 'held'
    if (this.#muteTimer !== null) return 'muted'
    if (this.#stall === 'behindOthers' && this.isBusy) return 'behindOthers'
    if (this.#exchanges.length >= limits.kafkaConnectionRequestsMax) return 'inFlight'
    return this.#outbox.unsentBytes >= limits.unsentBytesMax ? 'unsent' : 'none'
  }

  /** Reads on if there is nothing to wait for and memory for it; else pauses and, for room, asks to be woken. */
  #steerReading(): void {
    if (this.#stall === 'none' && !this.#receive.tryRoom(this.#reading.isPaused)) this.#stall = 'noMemory'
    if (this.#stall === 'none') return this.#unpause()
    this.#pause()
    const room = this.#room
    if (this.#isWaiting || room === null || this.#stall !== 'noRoom') return
    this.#isWaiting = true
    room.whenReleased(() => {
      this.#isWaiting = false
      this.#host.wake(this)
    })
  }

  #pause(): void {
    this.#reading.pause(this.#socket, this.#state === 'open')
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
    if (this.#state !== 'closing' || this.#exchanges.length > 0 || this.#outbox.unsentBytes > 0) return
    this.#state = 'lingering'
    this.#deadlines.restart()
    this.#socket.end()
    this.#reading.resume(this.#socket)
  }

  #endMute(): void {
    if (this.#muteTimer !== null) clearTimeout(this.#muteTimer)
    this.#muteTimer = null
  }

  #onEnd(): void {
    this.#inputEnded = true
    this.#guard(() => this.#process())
  }

  #onClose(): void {
    this.#state = 'closed'
    this.#endMute()
    this.#outbox.drop()
    // What was answered out of turn gives its memory back now; what is in progress does when it is answered.
    const waiting = this.#exchanges.splice(0)
    for (const exchange of waiting) if (exchange.frame !== null) this.#send(exchange)
    for (const exchange of waiting) if (exchange.frame === null) this.#exchanges.push(exchange)
    this.#receive.discard()
    this.#guard(() => {
      for (const exchange of [...this.#exchanges]) exchange.closing()
    })
    this.#host.closed(this)
  }

  #guard(action: () => void): void {
    try {
      action()
    } catch (error) {
      this.#host.logger.error({ remoteAddress: this.remoteAddress, err: error }, 'a Kafka connection met a bug')
      this.drop('bug')
    }
  }
}
