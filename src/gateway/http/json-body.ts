/** Routes with a small JSON body, parsed whole on the main thread and handed to a step. */
import { BrokerError } from '../../model/errors.ts'
import { parseExactJson } from '../../wire/json/exact-json.ts'
import type { ExactJson } from '../../wire/json/exact-json.ts'
import { Body, topicBodyLimitOf } from './body.ts'
import type { BodyConsumer, BodyLimit } from './body.ts'
import type { BodySink, ReplyWatcher } from './engine.ts'
import type { Exchange } from './exchange.ts'

class JsonBody implements BodyConsumer, ReplyWatcher {
  readonly body: Body
  readonly #exchange: Exchange
  readonly #step: (value: ExactJson) => void

  constructor(exchange: Exchange, limit: BodyLimit, step: (value: ExactJson) => void) {
    const { requestBudget } = exchange.services
    this.#exchange = exchange
    this.#step = step
    this.body = new Body(exchange.head.contentLength, limit, requestBudget, this)
    exchange.reply.watcher = this
  }

  onBody(bytes: Buffer, length: number): void {
    this.#exchange.guard(() => {
      const parsed = parseExactJson(bytes.subarray(0, length))
      this.body.release()
      if (parsed.problem !== null) throw new BrokerError('BODY_NOT_JSON', { problem: parsed.problem })
      this.#step(parsed.value)
    })
  }

  onBodyRefused(error: BrokerError, mustClose: boolean): void {
    this.#exchange.refuse(error, { mustClose })
  }

  onReplyClosed(): void {
    this.body.release()
  }
}

/** @returns who takes the body, or null: it is refused already. @param step gets it; what it throws becomes the answer. */
export function withJsonBody(exchange: Exchange, step: (value: ExactJson) => void): BodySink | null {
  const limit = topicBodyLimitOf(exchange.services.settings.maxRequestBodyBytes)
  return exchange.acceptsBody(limit) ? new JsonBody(exchange, limit, step).body : null
}
