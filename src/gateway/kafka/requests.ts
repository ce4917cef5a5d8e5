/**
 * From one whole frame to the handler of its API. Main thread only; one instance per listener.
 *
 *   | the request                                  | what becomes of it                             |
 *   | header or body malformed                     | close                                          |
 *   | ApiVersions in a version of later days       | answered in version 0: UNSUPPORTED_VERSION     |
 *   | an API or a version that is not advertised   | close: nobody could read what is answered      |
 *   | before authentication, if not open to all    | close                                          |
 *   | of a key that was revoked                    | close                                          |
 *   | a produce of a key that is in debt           | not taken before that is over                  |
 *   | one of names that is long                    | not taken behind others, nor beyond their room |
 *   | one that asks for what others change         | begun when those before it are answered        |
 */
import type { ByteBudget } from '../../base/byte-budget.ts'
import { limits } from '../../model/limits.ts'
import { nobody } from './nobody.ts'
import { apiVersions } from '../../wire/kafka/apis/api-versions.ts'
import { kafkaErrors } from '../../wire/kafka/errors.ts'
import { readRequestHeader, type RequestHeader } from '../../wire/kafka/headers.ts'
import { newRequestId } from '../shared/request-ids.ts'
import { Exchange, type Asked, type ExchangeOwner, type HeldRoom } from './exchange.ts'
import type { KafkaHandler, KafkaServices } from './handler.ts'
import { advertised } from './handlers/api-versions.ts'
import type { CloseReason } from './probe.ts'

/** Why a request ends its connection. */
export interface Refusal {
  readonly reason: CloseReason
  readonly problem: string
}

/**
 * What becomes of a request: null: it is in progress, or answered; a number: it may come again in so many ms; a text: it waits
 * for those before it; a budget: for room there.
 */
export type Taken = Refusal | number | 'behindOthers' | ByteBudget | null

export class RequestTaker {
  readonly #services: KafkaServices

  constructor(services: KafkaServices) {
    this.#services = services
  }

  /** Takes the request bytes[start, end), borrowed until return. */
  take(client: ExchangeOwner, bytes: Buffer, start: number, end: number): Taken {
    const header = readRequestHeader(bytes, start, end)
    if (typeof header === 'string') return { reason: 'malformed', problem: header }
    const { apiKey, apiVersion } = header
    const handler = this.#services.handlers.get(apiKey)
    if (handler === undefined) return { reason: 'unknownApi', problem: `API ${apiKey} is not served here` }
    const { who } = client.sasl
    if (who === null && !handler.isOpenToAll) return this.#refuseStranger(client, handler.api.name)
    if (who?.isRevoked === true) return { reason: 'keyRevoked', problem: 'the key of this client was revoked' }
    const { first, last } = handler.api.versions
    if (apiVersion < first || apiVersion > last) return this.#refuseVersion(client, handler, header)
    const waitMs = who === null ? 0 : handler.waitMsOf(this.#services, who)
    if (waitMs > 0) return waitMs
    const held = this.#roomFor(handler, end - start)
    if (held !== null && client.isBusy) return 'behindOthers'
    if (held?.room.tryReserve(held.bytes) === false) return held.room
    const body = handler.api.request.decode(apiVersion, bytes, header.bodyStart, end)
    if (typeof body === 'string') {
      held?.room.release(held.bytes)
      return { reason: 'malformed', problem: `${handler.api.name} ${apiVersion}: ${body}` }
    }
    this.#run(client, handler, header, { who: who ?? nobody, body, held })
    return null
  }

  /** What a request of so many bytes has to hold while it is in progress; null: nothing. */
  #roomFor({ roomOf }: KafkaHandler, bytes: number): HeldRoom | null {
    if (roomOf === null || bytes <= limits.kafkaShortRequestBytesMax) return null
    return { room: roomOf(this.#services), bytes }
  }

  /** Takes a token of SASL that has no header, bytes[start, end). The reply leaves at once: nothing else is in progress. */
  takeBare(client: ExchangeOwner, bytes: Buffer, start: number, end: number): Refusal | null {
    const step = client.sasl.take(bytes.subarray(start, end))
    if (step.kind === 'refused') {
      this.#services.refusedLogins.note(client, step.claim, step.told)
      return { reason: 'authFailed', problem: step.told }
    }
    client.sendBare(step.reply)
    return null
  }

  /** Most likely a client that was never told to log in: it sees a connection that closes, so the log says why. */
  #refuseStranger(client: ExchangeOwner, apiName: string): Refusal {
    const problem = `${apiName} came without a login: set the client's security.protocol to SASL_PLAINTEXT, or with TLS to SASL_SSL`
    this.#services.refusedLogins.note(client, { mechanism: null, user: null }, problem)
    return { reason: 'authRequired', problem }
  }

  #run(client: ExchangeOwner, handler: KafkaHandler, header: RequestHeader, asked: Asked): void {
    const exchange = new Exchange(client, this.#services, handler.api, header, asked)
    client.begin(exchange)
    if (handler.isBeforeOthers) exchange.holdUntilAnswered()
    if (handler.isAfterOthers) exchange.whenFirst(() => this.#start(handler, exchange))
    else this.#start(handler, exchange)
  }

  #start(handler: KafkaHandler, exchange: Exchange): void {
    try {
      const running = handler.run(exchange)
      if (running !== undefined) running.catch((error: unknown) => this.#fail(exchange, error))
    } catch (error) {
      this.#fail(exchange, error)
    }
  }

  /** A bug of ours ends the connection: what its client may conclude of the answer is nothing. */
  #fail(exchange: Exchange, error: unknown): void {
    const { api, client } = exchange
    const context = { request_id: newRequestId(), api: api.name, remoteAddress: client.remoteAddress, err: error }
    this.#services.logger.error(context, 'a Kafka request failed')
    if (exchange.frame === null) exchange.close('bug')
    else client.refuse('bug', api.name)
  }

  #refuseVersion(client: ExchangeOwner, { api }: KafkaHandler, header: RequestHeader): Refusal | null {
    const { apiVersion } = header
    const { first, last } = api.versions
    if (api.key !== apiVersions.key) {
      const problem = `${api.name} ${apiVersion} is not served here: ${first} to ${last} are`
      return { reason: 'unsupportedVersion', problem }
    }
    const asked = { who: nobody, body: {}, held: null }
    const exchange = new Exchange(client, this.#services, api, { ...header, apiVersion: 0 }, asked)
    client.begin(exchange)
    const apiKeys = advertised(this.#services.handlers)
    exchange.answer({ errorCode: kafkaErrors.UNSUPPORTED_VERSION.code, apiKeys })
    return null
  }
}
