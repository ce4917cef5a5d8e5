/**
 * Routes with a JSON body, parsed whole and handed to a step. Main thread; a body that may be large is parsed in another one,
 * where a hostile one of 3 MiB takes a tenth of a second.
 */
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { parseExactJson } from '../../wire/json/exact-json.ts'
import type { ExactJson, ParsedJson } from '../../wire/json/exact-json.ts'
import { Body, bodyLimitOf, overloaded, topicBodyLimitOf } from './body.ts'
import type { BodyConsumer, BodyLimit } from './body.ts'
import type { BodySink, ReplyWatcher } from './engines/engine.ts'
import type { Exchange } from './exchange.ts'

class JsonBody implements BodyConsumer, ReplyWatcher {
  readonly body: Body
  protected readonly exchange: Exchange
  readonly #step: (value: ExactJson) => void

  constructor(exchange: Exchange, limit: BodyLimit, step: (value: ExactJson) => void) {
    const { requestBudget } = exchange.services
    this.exchange = exchange
    this.#step = step
    this.body = new Body(exchange.head.contentLength, limit, requestBudget, this)
    exchange.reply.watcher = this
  }

  onBody(bytes: Buffer, length: number): void {
    this.exchange.guard(() => {
      const parsed = parseExactJson(bytes.subarray(0, length))
      this.body.release()
      this.take(parsed)
    })
  }

  /** @throws BrokerError of the body or the step. */
  protected take(parsed: ParsedJson): void {
    if (parsed.problem !== null) throw new BrokerError('BODY_NOT_JSON', { problem: parsed.problem })
    this.exchange.tellIgnored(parsed.value)
    this.#step(parsed.value)
  }

  onBodyRefused(error: BrokerError, mustClose: boolean): void {
    this.exchange.refuse(error, { mustClose })
  }

  onReplyClosed(): void {
    this.body.release()
  }
}

/** A body of which a few fields are wanted: parsed here if it is small, else where it holds up nobody. */
class FieldsBody extends JsonBody {
  readonly #names: readonly string[]
  /** Takes the job back; null: none is under way. */
  #job: AbortController | null = null

  constructor(exchange: Exchange, limit: BodyLimit, names: readonly string[], step: (value: ExactJson) => void) {
    super(exchange, limit, step)
    this.#names = names
  }

  override onBody(bytes: Buffer, length: number): void {
    const { offload, requestBudget } = this.exchange.services
    if (offload === null || length <= limits.topicBodyBytesMax) return super.onBody(bytes, length)
    const body = this.body.keep(bytes)?.buffer
    if (body === undefined) return this.exchange.refuse(overloaded(requestBudget))
    this.#job = new AbortController()
    const value = { body, length, names: this.#names }
    offload.pool
      .run('readFields', value, { signal: this.#job.signal, moves: [body] })
      .finally(() => this.#endJob())
      .then(
        parsed => this.exchange.guard(() => this.#takeIfWanted(parsed)),
        // Of a reply that is closed: the job was taken back, and nobody waits for its answer.
        (error: unknown) => (this.exchange.reply.isClosed ? undefined : this.exchange.refuse(error))
      )
  }

  /** The other thread has let go of the body. */
  #endJob(): void {
    this.#job = null
    this.body.release()
  }

  #takeIfWanted(parsed: ParsedJson): void {
    if (!this.exchange.reply.isClosed) this.take(parsed)
  }

  override onReplyClosed(): void {
    // What another thread has is not given back before it is done.
    if (this.#job !== null) this.#job.abort()
    else this.body.release()
  }
}

/** @returns who takes the body, or null: it is refused already. @param step gets it; what it throws becomes the answer. */
export function withJsonBody(exchange: Exchange, step: (value: ExactJson) => void): BodySink | null {
  const limit = topicBodyLimitOf(exchange.services.settings.maxRequestBodyBytes)
  return exchange.acceptsBody(limit) ? new JsonBody(exchange, limit, step).body : null
}

/** The limit of a route that takes a schema. */
function schemaBodyLimitOf(maxRequestBodyBytes: number): BodyLimit {
  if (maxRequestBodyBytes <= limits.schemaBodyBytesMax) return bodyLimitOf(maxRequestBodyBytes)
  return { bytes: limits.schemaBodyBytesMax, setting: 'for this route' }
}

/**
 * The same for a body with a schema in it. @param step gets the body; of a large one only the named fields: texts as they are,
 * numbers rounded, objects empty, lists with a null if they have anything.
 */
export function withSchemaBody(
  exchange: Exchange,
  names: readonly string[],
  step: (value: ExactJson) => void
): BodySink | null {
  const limit = schemaBodyLimitOf(exchange.services.settings.maxRequestBodyBytes)
  return exchange.acceptsBody(limit) ? new FieldsBody(exchange, limit, names, step).body : null
}
