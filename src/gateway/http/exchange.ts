/**
 * One request and its answer, and the services that routes use. Main thread.
 * It is where a thrown bug stops: guard() turns whatever a route throws into a 500 with an id.
 */
import type { BackgroundJobs } from '../../background/jobs.ts'
import type { ProduceScanners } from '../../background/produce-scan.ts'
import type { BackgroundPool } from '../../background/pool.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Logger } from '../../base/logger.ts'
import { BrokerError } from '../../model/errors.ts'
import type { MetricsPage } from '../../model/metrics.ts'
import { anonymous, type Principal } from '../../model/principal.ts'
import type { Broker } from '../../model/requests.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'
import type { ProduceResultsWriter } from '../../wire/json/produce-results.ts'
import type { PackedResultsWriter } from '../../wire/produce/packed-results.ts'
import { JSON_TYPE, MSGPACK_TYPE, isMsgpack, mediaTypeOf } from './accept.ts'
import { bodyTooLarge } from './body.ts'
import type { BodyLimit } from './body.ts'
import { CONFLUENT_TYPE, isConfluentBody, isConfluentPath } from './confluent/face.ts'
import { isTooLongToDrain } from './engines/engine.ts'
import type { Reply, RequestHead } from './engines/engine.ts'
import type { Failures, RefusalOptions } from './failures.ts'
import { IGNORED_HEADER, ignoredFields } from './ignored-fields.ts'
import type { Schema } from './openapi/schema.ts'
import type { HttpProbe } from './probe.ts'
import type { ReadLine } from './reads/read-line.ts'
import type { ReplyMemory } from './reads/reply-memory.ts'
import type { ScanOrder } from './produce/scan-order.ts'
import type { ReadWaits } from './reads/read-wait.ts'
import type { StreamHub } from './streams/stream-hub.ts'
import type { WaitLine } from './produce/wait-line.ts'

/** The settings that this gateway reads. */
export interface HttpSettings {
  /** `host:port`. */
  readonly bind: string
  readonly auth: 'disabled' | 'required'
  readonly allowedHost: readonly string[]
  /** Pages that may call the API. */
  readonly corsOrigin: readonly string[]
  readonly maxRequestBodyBytes: number
  readonly maxFetchBytes: number
  readonly maxFetchRecords: number
}

/** Where large produce bodies are scanned, so that they do not hold up the main thread. */
export interface Offload {
  readonly pool: Pick<BackgroundPool<BackgroundJobs>, 'run'>
  /** Bodies of this length and more. */
  readonly bodyBytesMin: number
}

/** What every route may use. One instance per gateway. */
export interface Services {
  readonly broker: Broker
  readonly settings: HttpSettings
  readonly logger: Logger
  readonly failures: Failures
  readonly metrics: MetricsPage
  readonly streams: StreamHub
  readonly requestBudget: ByteBudget
  readonly replyBudget: ByteBudget
  /** That budget, as reads share it. */
  readonly replyMemory: ReplyMemory
  readonly probe: HttpProbe
  /** Shared by all produces that are scanned on this thread: a scan is over, and released, before the next begins. */
  readonly scanners: ProduceScanners
  readonly resultsWriter: ProduceResultsWriter
  readonly packedResultsWriter: PackedResultsWriter
  /** null: every body is scanned on the main thread. */
  readonly offload: Offload | null
  readonly scanOrder: ScanOrder
  readonly produceLine: WaitLine
  readonly readLine: ReadLine
  /** Reads that wait for records, and are in no line yet. */
  readonly readWaits: ReadWaits
  /** The body of GET /openapi.json, made once. */
  readonly apiDescription: () => Buffer
  /** Has the broker publish what was submitted, once at the end of this turn. */
  readonly scheduleTurn: () => void
}

const EMPTY = Buffer.alloc(0)

export class Exchange {
  readonly services: Services
  readonly head: RequestHead
  readonly reply: Reply
  /** What its answers in JSON are labelled with. */
  readonly jsonType: string
  /** Who asks: known before the body or the query is looked at. */
  who: Principal = anonymous
  /** Of what its route takes as JSON; null: nothing, or another broker's clients send what they like. */
  bodySchema: Schema | null = null
  /** What may be tried again is refused as events. */
  isRefusedAsEvents = false
  /** What stands in the path for `:name` and the like, decoded, in order. */
  names: readonly string[] = []

  constructor(services: Services, head: RequestHead, reply: Reply) {
    this.services = services
    this.head = head
    this.reply = reply
    this.jsonType = isConfluentPath(head.path) ? CONFLUENT_TYPE : JSON_TYPE
  }

  /** The first of them; empty if the route has none. */
  get name(): string {
    return this.names[0] ?? ''
  }

  /** Whose share of the reply memory its reads take: that of the key, or of the client's address where none is needed. */
  get party(): string {
    return this.services.settings.auth === 'required' ? this.who.keyId : this.reply.clientAddress
  }

  /** Answers with a JSON text. */
  sendJson(status: number, text: string | Buffer): void {
    this.reply.send({ status, contentType: this.jsonType }, typeof text === 'string' ? Buffer.from(text) : text)
  }

  /** Answers without a body. */
  sendEmpty(status: number): void {
    this.reply.send({ status, contentType: null }, EMPTY)
  }

  /** Has every answer from now on name the fields of the body that nobody looks at. */
  tellIgnored(body: ExactJson): void {
    const ignored = this.bodySchema === null ? null : ignoredFields(body, this.bodySchema)
    if (ignored === null) return
    this.reply.standingHeaders = [...this.reply.standingHeaders, [IGNORED_HEADER, ignored]]
  }

  /** Answers with an error, whatever was thrown. */
  refuse(error: unknown, how: RefusalOptions = {}): void {
    this.services.failures.answer(this.head, this.reply, error, { asEvents: this.isRefusedAsEvents, ...how })
  }

  /** Answers with an error before the body was read. */
  refuseEarly(error: unknown): void {
    this.refuse(error, { mustClose: isTooLongToDrain(this.head) })
  }

  /** Runs a step; what it throws becomes the answer. */
  guard(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.refuse(error)
    }
  }

  /** Answers with what a promise brings, or with its error. */
  answerWith(status: number, text: Promise<string>): void {
    text.then(
      body => this.guard(() => this.#answerNow(status, body)),
      (error: unknown) => this.refuse(error)
    )
  }

  /** What was changed is told, whoever may ask no more. What was only looked up is not, once the key is revoked. */
  #answerNow(status: number, body: string): void {
    const isLook = this.head.method === 'GET' || this.head.method === 'HEAD'
    if (isLook && this.who.isRevoked) throw new BrokerError('KEY_REVOKED')
    this.sendJson(status, body)
  }

  /** Answers 204 once a promise resolves, or with its error. */
  answerEmpty(done: Promise<void>): void {
    done.then(
      () => this.guard(() => this.sendEmpty(204)),
      (error: unknown) => this.refuse(error)
    )
  }

  /**
   * Refuses a body by its type, or as too large by its announced length.
   * @param takesMsgpack whether the route takes MessagePack beside JSON. @returns true if it may come.
   */
  acceptsBody(limit: BodyLimit, takesMsgpack = false): boolean {
    const { contentType, contentLength } = this.head
    const mediaType = mediaTypeOf(contentType)
    const isJson = this.jsonType === CONFLUENT_TYPE ? isConfluentBody(mediaType) : mediaType === JSON_TYPE
    if (!isJson && !(takesMsgpack && isMsgpack(mediaType))) {
      const accepted = takesMsgpack ? `${JSON_TYPE} or ${MSGPACK_TYPE}` : JSON_TYPE
      this.refuseEarly(new BrokerError('MEDIA_TYPE', { value: contentType, accepted }))
    } else if (contentLength > limit.bytes) {
      this.refuseEarly(bodyTooLarge(limit))
    }
    return !this.reply.isAnswered && !this.reply.isClosed
  }
}
