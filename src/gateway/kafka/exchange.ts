/**
 * One request from its handler's start until its response leaves: it keeps its place in the order of its connection.
 * Main thread.
 */
import { assert } from '../../base/assert.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Principal } from '../../model/principal.ts'
import { responseFrame, responseSteps, type RequestHeader, type ResponseFrame } from '../../wire/kafka/headers.ts'
import type { AnyApi, Message } from '../../wire/kafka/message.ts'
import type { FieldTable, ReadOf, WriteOf } from '../../wire/kafka/schema.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import type { ReplyShare } from '../shared/reply-share.ts'
import type { Enclosed, KafkaCall, KafkaClient, KafkaServices } from './handler.ts'
import type { CloseReason } from './probe.ts'
import type { Pace } from './request-turns.ts'

/** What a connection is to its exchanges. */
export interface ExchangeOwner extends KafkaClient {
  readonly replies: ReplyShare
  readonly pool: BufferPool
  /** Requests that were taken are not answered yet. */
  readonly isBusy: boolean
  /** One more request is in progress. */
  begin(exchange: Exchange): void
  /** That one is answered, or never will be. `errors`: the codes within its response. */
  finished(exchange: Exchange, errors: readonly number[]): void
  /** No request is taken until what this returns is called. */
  hold(): () => void
  mute(durationMs: number): void
  /** Sends a token of SASL that has no header. */
  sendBare(token: Buffer): void
}

/** A part of a budget. */
export interface HeldRoom {
  readonly room: ByteBudget
  readonly bytes: number
}

/** What a request brings. */
export interface Asked {
  readonly who: Principal
  readonly body: object
  /** What it has of memory for requests of many things, until it is answered; null: none. */
  readonly held: HeldRoom | null
}

const noChunks: Enclosed['chunkOf'] = new Map()

/** An Api whose response may be written, whatever it is: the handler has seen to its type. */
type AnyWritable = AnyApi & { readonly response: Message }

export class Exchange implements KafkaCall {
  readonly api: AnyApi
  readonly version: number
  readonly clientId: string | null
  readonly who: Principal
  readonly body: ReadOf<FieldTable>
  readonly client: ExchangeOwner
  readonly services: KafkaServices
  /** The response in pieces, empty if there is none; null: it is not answered. */
  frame: readonly Buffer[] | null = null
  enclosed: Enclosed | null = null
  /** Its response was due, and will not come: its client would take what is behind it for that. */
  isLost = false
  /** Monotonic time at which it was taken. */
  readonly startMs: number
  readonly #correlationId: number
  #onClosing: (() => void) | null = null
  #isFirst = false
  #onFirst: (() => void) | null = null
  #pace: Pace | null = null
  #release: (() => void) | null = null
  readonly #held: HeldRoom | null

  /** The header was checked, the body decoded. */
  constructor(
    client: ExchangeOwner,
    services: KafkaServices,
    api: AnyApi,
    { apiVersion, correlationId, clientId }: RequestHeader,
    asked: Asked
  ) {
    this.client = client
    this.services = services
    this.api = api
    this.version = apiVersion
    this.#correlationId = correlationId
    this.clientId = clientId
    this.who = asked.who
    this.body = asked.body as ReadOf<FieldTable>
    this.#held = asked.held
    this.startMs = services.clock.monotonicMs()
  }

  get replies(): ReplyShare {
    return this.client.replies
  }

  get pool(): BufferPool {
    return this.client.pool
  }

  get pace(): Pace {
    this.#pace ??= this.services.requestTurns.begin(callback => this.whenFirst(callback))
    return this.#pace
  }

  get isAnswered(): boolean {
    return this.frame !== null
  }

  answer(response: WriteOf<FieldTable>, enclosed: Enclosed | null = null): void {
    assert(this.frame === null, 'a request is answered once')
    this.enclosed = enclosed
    this.#finish(responseFrame(this.api as AnyWritable, this.version, this.#correlationId, response))
  }

  async answerInTurns(response: WriteOf<FieldTable>, enclosed: Enclosed | null = null): Promise<void> {
    const { requestTurns } = this.services
    // What holds reply memory waits for nobody who may wait for some.
    const turn = (): Promise<void> => (enclosed === null ? this.pace.next() : requestTurns.next())
    const steps = responseSteps(this.api as AnyWritable, this.version, this.#correlationId, response)
    let step = steps.next()
    if (step.done !== true) {
      await turn()
      if (enclosed === null) await this.#reserve(step.value)
      else this.replies.charge(step.value)
    }
    let reservedBytes = enclosed?.reservedBytes ?? 0
    while (step.done !== true) {
      reservedBytes += step.value
      step = steps.next()
      if (step.done === true) break
      // What was begun is written whatever the memory: one that waited amid its answer could wait for another that does.
      this.replies.charge(step.value)
      await turn()
    }
    assert(this.frame === null, 'a request is answered once')
    if (reservedBytes > 0) this.enclosed = { reservedBytes, chunkOf: enclosed?.chunkOf ?? noChunks }
    this.#finish(step.value)
  }

  async #reserve(bytes: number): Promise<void> {
    while (!this.replies.reserveMore(bytes)) await new Promise<void>(resolve => this.replies.whenReleased(resolve))
  }

  #finish({ pieces, errorCodes }: ResponseFrame): void {
    this.frame = pieces
    this.#pace?.end()
    this.#held?.room.release(this.#held.bytes)
    this.client.finished(this, errorCodes)
    this.#release?.()
  }

  answerNothing(): void {
    assert(this.frame === null, 'a request is answered once')
    this.#finish({ pieces: [], errorCodes: [] })
  }

  close(reason: CloseReason): void {
    this.isLost = true
    this.client.refuse(reason, this.api.name)
    this.answerNothing()
  }

  hold(): () => void {
    return this.client.hold()
  }

  /** For whoever takes requests: none behind it is taken before it is answered. */
  holdUntilAnswered(): void {
    this.#release = this.hold()
  }

  mute(durationMs: number): void {
    this.client.mute(durationMs)
  }

  whenFirst(callback: () => void): void {
    if (this.#isFirst) callback()
    else this.#onFirst = callback
  }

  /** For the connection: all requests before it are answered. */
  becomeFirst(): void {
    this.#isFirst = true
    const callback = this.#onFirst
    this.#onFirst = null
    callback?.()
  }

  onClosing(callback: () => void): void {
    this.#onClosing = callback
  }

  /** For the connection: it closes, or the broker stops. */
  closing(): void {
    const callback = this.#onClosing
    this.#onClosing = null
    if (this.frame === null) callback?.()
  }
}
