/**
 * HTTP calls for tests: the whole answer comes back, whatever its status. A test that wants a refusal sees it; one that
 * does not uses the calls that insist on success.
 */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { startBroker, variants, type BrokerOptions, type TestBroker, type Variant } from './broker.ts'

const jsonType = { 'content-type': 'application/json' }
/** Throws where fetch would put U+FFFD in silence: an answer must be UTF-8 itself. */
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

export interface HttpAnswer {
  readonly status: number
  readonly text: string
  readonly headers: Headers
}

export interface RecordToProduce {
  readonly key?: string | null
  readonly value: string
  readonly partition?: number
}

export interface Result {
  readonly partition: number
  readonly offset: number
}

export interface ReadRecord extends Result {
  readonly timestamp_ms: number
  readonly key: string | null
  readonly value: string
  readonly headers?: readonly (readonly [string, string | null])[]
}

export interface ReadAnswer {
  readonly records: readonly ReadRecord[]
  readonly next_offset: number
  readonly high_watermark: number
  readonly encoding?: string
  readonly skipped?: { readonly requested: number; readonly earliest: number; readonly latest: number }
}

export interface Description {
  readonly name: string
  readonly partitions: readonly {
    readonly id: number
    readonly start_offset: number
    readonly end_offset: number
    readonly segment_count: number
    readonly size_bytes: number
  }[]
  readonly config: Readonly<Record<string, unknown>>
}

/** The fields of an error answer. */
export interface ErrorBody {
  readonly error: string
  readonly code: string
  readonly retry: string
  readonly written: string
  readonly request_id: string
}

export class HttpApi {
  readonly url: string
  readonly #credentials: Readonly<Record<string, string>>

  /** @param secret of a key, sent with every request; null: none is. */
  constructor(url: string, secret: string | null = null) {
    this.url = url
    this.#credentials = secret === null ? {} : { authorization: `Bearer ${secret}` }
  }

  /** Any request. A body is sent as JSON unless the headers say otherwise. */
  async call(
    method: string,
    path: string,
    body?: string | Buffer,
    headers: Readonly<Record<string, string>> = jsonType
  ): Promise<HttpAnswer> {
    const all = { ...this.#credentials, ...(body === undefined && headers === jsonType ? {} : headers) }
    const init = body === undefined ? { method, headers: all } : { method, headers: all, body }
    const response = await fetch(this.url + path, init)
    // A stream has no end, and is left.
    if (response.headers.get('content-type')?.startsWith('text/event-stream') === true) {
      await response.body?.cancel()
      return { status: response.status, text: '', headers: response.headers }
    }
    return { status: response.status, text: strictUtf8.decode(await response.arrayBuffer()), headers: response.headers }
  }

  get(path: string): Promise<HttpAnswer> {
    return this.call('GET', path)
  }

  post(path: string, body: unknown): Promise<HttpAnswer> {
    return this.call('POST', path, typeof body === 'string' ? body : JSON.stringify(body))
  }

  async createTopic(name: string, partitions = 1, config: Readonly<Record<string, unknown>> = {}): Promise<void> {
    const answer = await this.post('/topics', { name, partitions, config })
    assert.deepEqual([answer.status, answer.text], [201, JSON.stringify({ name, partitions })])
  }

  async produce(topic: string, records: readonly RecordToProduce[]): Promise<Result[]> {
    return parse<{ results: Result[] }>(await this.post(`/topics/${topic}/produce`, { records })).results
  }

  /** One read. @param query beside the partition. */
  async consume(topic: string, partition: number, query: string): Promise<ReadAnswer> {
    return parse<ReadAnswer>(await this.get(`/topics/${topic}/consume?partition=${partition}&${query}`))
  }

  /** Every record of a partition from an offset on, read in as many calls as it takes. */
  async consumeAll(topic: string, partition: number, from = 0): Promise<ReadRecord[]> {
    const records: ReadRecord[] = []
    for (let offset = from; ;) {
      const answer = await this.consume(topic, partition, `offset=${offset}&max_records=10000&max_bytes=8388608`)
      records.push(...answer.records)
      if (answer.next_offset >= answer.high_watermark) return records
      assert.ok(answer.next_offset > offset, 'a read before the end moves on')
      offset = answer.next_offset
    }
  }

  async describe(topic: string): Promise<Description> {
    return parse<Description>(await this.get(`/topics/${topic}`))
  }

  /** The end offset of each partition. */
  async ends(topic: string): Promise<number[]> {
    return (await this.describe(topic)).partitions.map(partition => partition.end_offset)
  }
}

/** The body of a success. */
export function parse<Body>(answer: HttpAnswer): Body {
  assert.ok(answer.status >= 200 && answer.status < 300, `${answer.status} ${answer.text.slice(0, 500)}`)
  return JSON.parse(answer.text) as Body
}

/** The body of a refusal, which is JSON of one shape whatever was refused (D4). */
export function parseError(answer: HttpAnswer, status: number): ErrorBody {
  assert.equal(answer.status, status, answer.text.slice(0, 500))
  assert.equal(answer.headers.get('content-type'), 'application/json')
  const body = JSON.parse(answer.text) as ErrorBody
  assert.equal(typeof body.error, 'string')
  assert.match(body.retry, /^(never|same|refresh)$/)
  assert.match(body.written, /^(no|yes|unknown)$/)
  assert.match(body.request_id, /^[0-9a-f]{8}$/)
  return body
}

/** A refusal with that status, code, and every fragment in its text. */
export function assertRefused(
  answer: HttpAnswer,
  status: number,
  code: string,
  fragments: readonly (string | number)[] = []
): void {
  const body = parseError(answer, status)
  assert.equal(body.code, code, body.error)
  for (const fragment of fragments) {
    assert.ok(body.error.includes(String(fragment)), `'${body.error}' does not name ${fragment}`)
  }
}

type VariantTest = (t: TestContext, api: HttpApi, broker: TestBroker) => Promise<void>

/** Registers the test once for each variant; all of its subtests share one broker. */
export function onEveryVariant(title: string, body: VariantTest, options: BrokerOptions = {}): void {
  for (const variant of variants) register(title, body, { ...options, variant })
}

/** The same on two variants that have both engines and both shard counts: for what depends on neither pair. */
export function onBothEngines(title: string, body: VariantTest, options: BrokerOptions = {}): void {
  register(title, body, { ...options, variant: { engine: 'uws', shards: 3 } })
  register(title, body, { ...options, variant: { engine: 'node', shards: 1 } })
}

function register(title: string, body: VariantTest, options: BrokerOptions & { variant: Variant }): void {
  const { engine, shards } = options.variant
  test(`${title}, on ${engine} with ${shards} shard(s)`, async t => {
    const broker = await startBroker(t, options)
    assert.equal(broker.server.engine, engine)
    await body(t, new HttpApi(broker.url), broker)
  })
}
