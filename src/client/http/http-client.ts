/**
 * A small client of the HTTP API. No dependency, no state but the address and, over TLS, open connections; any thread.
 * Numbers of an answer are exact: what JSON would round becomes a bigint. It never retries what writes records: a caller that does
 * must know what the failure says about the log: `written`.
 */
import type { Written } from '../../model/errors.ts'
import { isPlainPeer, isUntrusted, untrustedReason, type ClientTls } from '../tls.ts'
import { connectionReason, exchangeFor, type Exchange, type IncomingAnswer } from './exchange.ts'

/** What a broker's answer says of a failure beside its text. */
export interface FailureFacts {
  /** The code of the broker's error table; null if it named none. */
  readonly code: string | null
  /** What the caller may conclude about the log. */
  readonly written: Written
}

/** What holds of a failure of which nothing is known. */
const UNKNOWN: FailureFacts = { code: null, written: 'unknown' }

/** What became of a request that did not succeed. One class, told apart by `kind`. */
export class HttpClientError extends Error {
  override readonly name = 'HttpClientError'
  /** unreachable: no connection. untrusted: not with whom was asked for, nothing was sent. unanswered: sent, no answer in time. refused: a 4xx or 5xx. foreign: no answer of a broker. */
  readonly kind: 'unreachable' | 'untrusted' | 'unanswered' | 'refused' | 'foreign'
  readonly method: string
  readonly url: string
  /** HTTP status; 0 without an answer. */
  readonly status: number
  /** The error text of the broker, or the reason in words. */
  readonly reason: string
  readonly code: string | null
  readonly written: Written

  constructor(
    request: { method: string; url: string },
    kind: HttpClientError['kind'],
    status: number,
    reason: string,
    facts: FailureFacts = UNKNOWN
  ) {
    super(`${request.method} ${request.url}: ${status === 0 ? '' : `${status} `}${reason}`)
    this.kind = kind
    this.method = request.method
    this.url = request.url
    this.status = status
    this.reason = reason
    this.code = facts.code
    this.written = facts.written
  }

  /** @returns the same failure with another reason. */
  withReason(reason: string): HttpClientError {
    return new HttpClientError(this, this.kind, this.status, reason, this)
  }
}

export interface HttpClientOptions {
  /** `http://127.0.0.1:9000`, or `https://…`; a path prefix is kept, a trailing slash is not. */
  readonly broker: string
  /** Longest wait for one whole answer. */
  readonly timeoutMs: number
  /** Of an API key, sent with every request. Left out or null: none is. */
  readonly secret?: string | null
  /** For https. */
  readonly tls?: ClientTls
}

/** An answer: decoded, and as it came. */
export interface Answer<Body> {
  readonly body: Body
  readonly text: string
}

export type Whole = number | bigint

export interface ProduceRecord {
  readonly key?: string
  readonly value: string
  readonly partition?: number
}

/** A record with its number in the sequence of its producer, up to 2^63−1. */
export interface NumberedRecord extends ProduceRecord {
  readonly sequence: Whole
}

export interface ProduceResult {
  readonly partition: number
  readonly offset: Whole
  readonly duplicate?: boolean
}

export interface ConsumedRecord {
  readonly partition: number
  readonly offset: Whole
  readonly timestamp_ms: Whole
  readonly key: string | null
  readonly value: string
  /** Names and values in order, of a record that has any. */
  readonly headers?: readonly (readonly [name: string, value: string | null])[]
}

export interface ConsumeAnswer {
  readonly records: readonly ConsumedRecord[]
  readonly next_offset: Whole
  readonly high_watermark: Whole
  /** Only if it began behind the offset that was asked for: what was there is dropped, or damaged. */
  readonly skipped?: { readonly requested: Whole; readonly earliest: Whole; readonly latest: Whole }
}

export interface ConsumeQuery {
  readonly partition: number
  readonly offset: Whole
  readonly maxRecords: number
}

export type TopicConfigFields = Readonly<Record<string, Whole | string | boolean | null>>

export interface TopicAnswer {
  readonly name: string
  readonly partitions: number
}

export interface PartitionAnswer {
  readonly id: number
  readonly start_offset: Whole
  readonly end_offset: Whole
  readonly segment_count: number
  readonly size_bytes: Whole
}

export interface DescribeAnswer {
  readonly name: string
  readonly partitions: readonly PartitionAnswer[]
  readonly config: TopicConfigFields
}

/** Where a partition begins and ends. Of a question by time also: */
export interface OffsetsAnswer {
  readonly partition: number
  readonly earliest: Whole
  readonly latest: Whole
  /** First offset at or after the time; the end if no record is so late. */
  readonly offset?: Whole
  /** Of that record, Unix ms; null: none. */
  readonly timestamp_ms?: Whole | null
}

/** Where a partition begins after records were deleted. */
export interface DeletedRecordsAnswer {
  readonly partition: number
  readonly start_offset: Whole
}

/** A producer id, and what it sent last to each partition. */
export interface ProducerAnswer {
  readonly producer_id: string
  readonly partitions: readonly {
    readonly topic: string
    readonly partition: number
    readonly last_seen_sequence: Whole
    readonly last_offset: Whole
  }[]
}

/** Digits that JSON.parse may round: only then is the slower, exact way taken. */
const longNumber = /\d{16}/

/** The third argument that JSON.parse gives a reviver: the source text of a primitive. */
type SourceReviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown
type ExactParse = (text: string, reviver?: SourceReviver) => unknown

/** JSON with whole numbers beyond 2^53 as bigint. @throws SyntaxError */
export function parseExact(text: string): unknown {
  if (!longNumber.test(text)) return JSON.parse(text)
  // The library's types do not know the third argument yet.
  const parse = JSON.parse as ExactParse
  return parse(text, (_, value, context) => {
    const isRounded = typeof value === 'number' && !Number.isSafeInteger(value)
    return isRounded && /^-?\d+$/.test(context.source ?? '') ? BigInt(context.source ?? 0) : value
  })
}

/** JSON of flat values, bigint as its digits. */
export function writeExact(fields: Readonly<Record<string, unknown>>): string {
  const members = Object.entries(fields).map(([name, value]) => `${JSON.stringify(name)}:${writeValue(value)}`)
  return `{${members.join(',')}}`
}

function writeValue(value: unknown): string {
  if (typeof value === 'bigint') return String(value)
  const isPlainObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isPlainObject ? writeExact({ ...value }) : JSON.stringify(value)
}

export class HttpClient {
  readonly broker: string
  readonly #timeoutMs: number
  readonly #credentials: Readonly<Record<string, string>>
  readonly #exchange: Exchange

  constructor(options: HttpClientOptions) {
    this.broker = options.broker.replace(/\/+$/, '')
    this.#exchange = exchangeFor(this.broker, options.tls ?? {})
    this.#timeoutMs = options.timeoutMs
    const secret = options.secret ?? null
    this.#credentials = secret === null ? {} : { authorization: `Bearer ${secret}` }
  }

  createTopic(name: string, partitions: number, config: TopicConfigFields): Promise<Answer<TopicAnswer>> {
    const hasConfig = Object.keys(config).length > 0
    return this.#call('POST', '/topics', writeExact({ name, partitions, ...(hasConfig ? { config } : {}) }))
  }

  listTopics(): Promise<Answer<{ readonly topics: readonly string[] }>> {
    return this.#call('GET', '/topics')
  }

  describeTopic(name: string): Promise<Answer<DescribeAnswer>> {
    return this.#call('GET', topicPath(name))
  }

  deleteTopic(name: string): Promise<Answer<TopicAnswer>> {
    return this.#call('DELETE', topicPath(name))
  }

  topicConfig(name: string): Promise<Answer<TopicConfigFields>> {
    return this.#call('GET', `${topicPath(name)}/config`)
  }

  /** Changes the fields given. @returns the configuration as it is then. */
  changeTopicConfig(name: string, fields: TopicConfigFields): Promise<Answer<TopicConfigFields>> {
    return this.#call('PUT', `${topicPath(name)}/config`, writeExact(fields))
  }

  /** One partition. @param timestampMs Unix ms; null: only where it begins and ends. */
  partitionOffsets(name: string, partition: number, timestampMs: Whole | null): Promise<Answer<OffsetsAnswer>> {
    const time = timestampMs === null ? '' : `&timestamp_ms=${timestampMs}`
    return this.#call('GET', `${topicPath(name)}/offsets?partition=${partition}${time}`)
  }

  /** All partitions in one answer. */
  topicOffsets(
    name: string,
    timestampMs: Whole | null
  ): Promise<Answer<{ readonly partitions: readonly OffsetsAnswer[] }>> {
    const query = timestampMs === null ? '' : `?timestamp_ms=${timestampMs}`
    return this.#call('GET', `${topicPath(name)}/offsets${query}`)
  }

  /** Base offsets of the segments of a partition that lie in cold storage, ascending. */
  coldSegments(topic: string, partition: number): Promise<Answer<{ readonly segments: readonly Whole[] }>> {
    return this.#call('GET', `/admin/tiered/${encodeURIComponent(topic)}/${partition}`)
  }

  /** @param partitions that the topic is to have, more than it has. */
  addPartitions(name: string, partitions: number): Promise<Answer<TopicAnswer>> {
    return this.#call('POST', `${topicPath(name)}/partitions`, writeExact({ partitions }))
  }

  /** Drops the records of a partition below an offset, for good. */
  deleteRecords(name: string, partition: number, offset: Whole): Promise<Answer<DeletedRecordsAnswer>> {
    return this.#call('POST', `${topicPath(name)}/delete-records`, writeExact({ partition, offset }))
  }

  listProducers(): Promise<Answer<{ readonly producers: readonly ProducerAnswer[] }>> {
    return this.#call('GET', '/admin/producers')
  }

  /** Forgets a producer id: its next use starts afresh. */
  async forgetProducer(id: string): Promise<void> {
    await this.#call('DELETE', `/admin/producers/${encodeURIComponent(id)}`)
  }

  produce(
    topic: string,
    records: readonly ProduceRecord[]
  ): Promise<Answer<{ readonly results: readonly ProduceResult[] }>> {
    return this.#call('POST', `${topicPath(topic)}/produce`, JSON.stringify({ records }))
  }

  /** Produce that may be sent again without writing a record twice. */
  produceNumbered(
    topic: string,
    producerId: string,
    records: readonly NumberedRecord[]
  ): Promise<Answer<{ readonly results: readonly ProduceResult[] }>> {
    const texts = records.map(record => writeExact({ ...record }))
    const body = `{"producer_id":${JSON.stringify(producerId)},"records":[${texts.join(',')}]}`
    return this.#call('POST', `${topicPath(topic)}/produce`, body)
  }

  consume(topic: string, { partition, offset, maxRecords }: ConsumeQuery): Promise<Answer<ConsumeAnswer>> {
    const query = `partition=${partition}&offset=${offset}&max_records=${maxRecords}`
    return this.#call('GET', `${topicPath(topic)}/consume?${query}`)
  }

  /** Any request. @param body JSON. @returns what the caller says that the answer is. */
  call<Body>(method: string, path: string, body?: string): Promise<Answer<Body>> {
    return this.#call(method, path, body)
  }

  /**
   * The shape of a 2xx answer is the contract of the API and is not checked field by field. An answer without a body
   * (204) decodes to undefined, which only forgetProducer may expect.
   */
  async #call<Body>(method: string, path: string, body?: string): Promise<Answer<Body>> {
    const request = { method, url: `${this.broker}${path}` }
    let answer: IncomingAnswer
    try {
      const contentType = body === undefined ? {} : { 'content-type': 'application/json' }
      const headers = { ...this.#credentials, ...contentType }
      const sent = { ...request, headers, ...(body === undefined ? {} : { body }) }
      answer = await this.#exchange(sent, this.#timeoutMs)
    } catch (error) {
      throw this.#failure(request, error)
    }
    const { status, statusText, text } = answer
    const decoded = decode(text)
    if (status < 200 || status > 299) {
      const reason = errorOf(decoded) ?? (text.trim().slice(0, 300) || statusText)
      throw new HttpClientError(request, 'refused', status, reason, factsOf(decoded))
    }
    if (decoded === undefined && status !== 204) {
      throw new HttpClientError(request, 'foreign', status, 'the answer is not JSON: is this a Millrace broker?')
    }
    return { body: decoded as Body, text }
  }

  #failure(request: { method: string; url: string }, error: unknown): HttpClientError {
    if (error instanceof Error && error.name === 'TimeoutError') {
      return new HttpClientError(request, 'unanswered', 0, `no answer within ${this.#timeoutMs} ms`)
    }
    // A connection to several addresses has an error of each.
    const { code, message } = causeOf(error)
    const isBeforeSending = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'].includes(code)
    const isUnreachable = isBeforeSending || code === 'ETIMEDOUT' || code === 'EACCES'
    if (isUntrusted(code)) {
      return new HttpClientError(request, 'untrusted', 0, untrustedReason(message), { code: null, written: 'no' })
    }
    if (isPlainPeer(message)) {
      const reason = 'what listens there does not speak TLS, write http:// for it'
      return new HttpClientError(request, 'unreachable', 0, reason, { code: null, written: 'no' })
    }
    const words = connectionReason(message)
    const reason = code === '' || words !== message || message.includes(code) ? words : `${message} (${code})`
    return isUnreachable
      ? new HttpClientError(request, 'unreachable', 0, reason, { code: null, written: 'no' })
      : new HttpClientError(request, 'unanswered', 0, reason)
  }
}

function topicPath(name: string): string {
  return `/topics/${encodeURIComponent(name)}`
}

function decode(text: string): unknown {
  try {
    return parseExact(text)
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function errorOf(decoded: unknown): string | null {
  if (typeof decoded !== 'object' || decoded === null || !('error' in decoded)) return null
  return typeof decoded.error === 'string' ? decoded.error : null
}

/** Only the words of the broker count: a proxy in between may refuse what the broker has carried out. */
function factsOf(decoded: unknown): FailureFacts {
  if (typeof decoded !== 'object' || decoded === null) return UNKNOWN
  const code = 'code' in decoded && typeof decoded.code === 'string' ? decoded.code : null
  const written = 'written' in decoded ? decoded.written : null
  return { code, written: written === 'no' || written === 'yes' ? written : 'unknown' }
}

function causeOf(error: unknown): { code: string; message: string } {
  let current: unknown = error
  for (let depth = 0; depth < 4 && current instanceof Error; depth++) {
    if (current.cause === undefined && !(current instanceof AggregateError)) break
    current = current instanceof AggregateError ? current.errors[0] : current.cause
  }
  if (!(current instanceof Error)) return { code: '', message: String(current) }
  return { code: 'code' in current ? String(current.code) : '', message: current.message }
}
