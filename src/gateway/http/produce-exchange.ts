/**
 * One produce over HTTP: body → records → broker → answer. Main thread.
 *
 *   body whole ─▶ scan ─▶ submit ─▶ taken: body given back ─▶ results or refusal
 *                           └─ full: body kept under the budget, in line, scanned again when there is room
 *
 * The records lie in the body while they are submitted, so a scan and its submit are one step and never interleave with
 * another's.
 */
import { BrokerError } from '../../model/errors.ts'
import { submitOutcomes } from '../../model/requests.ts'
import type { ProduceCaller } from '../../model/requests.ts'
import { scanOutcomes } from '../../wire/json/produce-scanner.ts'
import { Body, overloaded } from './body.ts'
import type { BodyConsumer } from './body.ts'
import { WHOLE_ANSWER_BYTES_MAX } from './engine.ts'
import type { BodySink, ReplyWatcher } from './engine.ts'
import type { Exchange } from './exchange.ts'
import type { Attempt, Waiter } from './wait-line.ts'

class ProduceExchange implements BodyConsumer, ProduceCaller, ReplyWatcher, Waiter {
  readonly body: Body
  /** The topic: produces to one stay in order. */
  readonly lane: string
  readonly #exchange: Exchange
  /** Set while the request waits in line. */
  #kept: Buffer | null = null
  #length = 0
  /** Reply bytes charged for an answer that does not leave at once. */
  #answerBytes = 0

  constructor(exchange: Exchange) {
    const { settings, requestBudget } = exchange.services
    this.#exchange = exchange
    this.lane = exchange.name
    this.body = new Body(exchange.head.contentLength, settings.maxRequestBodyBytes, requestBudget, this)
    exchange.reply.watcher = this
  }

  onBody(bytes: Buffer, length: number): void {
    const { produceLine, requestBudget } = this.#exchange.services
    this.#length = length
    try {
      if (!produceLine.hasAhead(this.lane) && this.#submit(bytes)) return
      this.#kept = this.body.keep(bytes)
      if (this.#kept === null) throw overloaded(requestBudget)
      produceLine.wait(this, 'rings-full')
    } catch (error) {
      this.#release()
      this.#exchange.refuse(error)
    }
  }

  onBodyRefused(error: BrokerError, mustClose: boolean): void {
    this.#exchange.refuse(error, mustClose)
  }

  attempt(): Attempt {
    if (this.#kept === null) return 'taken'
    try {
      return this.#submit(this.#kept) ? 'taken' : 'rings-full'
    } catch (error) {
      this.#release()
      this.#exchange.refuse(error)
      return 'taken'
    }
  }

  /** Scans and submits. @returns false if the rings are full. @throws BrokerError for a body that cannot be produced. */
  #submit(bytes: Buffer): boolean {
    const { broker, scanner, scheduleTurn } = this.#exchange.services
    try {
      const outcome = scanner.scan(bytes, 0, this.#length)
      if (outcome === scanOutcomes.malformed) throw new BrokerError('BODY_NOT_JSON', { problem: scanner.problem })
      if (outcome === scanOutcomes.illTyped) {
        throw new BrokerError('FIELD_INVALID', { field: scanner.field, problem: scanner.problem })
      }
      if (scanner.hasProducerId) throw new BrokerError('FEATURE_LATER', { feature: 'producer_id (idempotent produce)' })
      if (broker.submitProduce(this.lane, scanner, this) === submitOutcomes.full) return false
    } finally {
      scanner.release()
    }
    scheduleTurn()
    this.#release()
    return true
  }

  #release(): void {
    this.#kept = null
    this.body.release()
  }

  onProduced(bytes: Buffer, start: number, count: number): void {
    const { resultsWriter, replyBudget } = this.#exchange.services
    try {
      const answer = resultsWriter.write(bytes, start, count)
      // A long answer may wait for its reader. It is bounded by the request and must leave: charged only if there is room.
      if (answer.length > WHOLE_ANSWER_BYTES_MAX && replyBudget.tryReserve(answer.length)) {
        this.#answerBytes = answer.length
      }
      this.#exchange.sendJson(200, answer)
      if (this.#exchange.reply.isClosed) this.#releaseAnswer()
    } catch (error) {
      this.#exchange.refuse(error)
    }
  }

  onProduceFailed(error: BrokerError): void {
    this.#exchange.refuse(error)
  }

  onReplyClosed(): void {
    this.#release()
    this.#releaseAnswer()
  }

  #releaseAnswer(): void {
    const bytes = this.#answerBytes
    this.#answerBytes = 0
    if (bytes > 0) this.#exchange.services.replyBudget.release(bytes)
  }
}

/** The route `POST /topics/:name/produce`. */
export function produce(exchange: Exchange): BodySink | null {
  return exchange.acceptsBody() ? new ProduceExchange(exchange).body : null
}
