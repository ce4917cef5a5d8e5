/**
 * What the handler of one API gets, and how it answers. Main thread.
 *
 * A handler answers now or later, exactly once: `answer`, `answerNothing` or `close`. Responses leave in the order of the
 * requests whatever the order in which they are answered. A handler that throws closes its connection: a bug.
 */
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Principal } from '../../model/principal.ts'
import type { Broker } from '../../model/requests.ts'
import type { AnyApi, Api } from '../../wire/kafka/message.ts'
import type { FieldTable, ReadOf, WriteOf } from '../../wire/kafka/schema.ts'
import type { AheadRoom } from './handlers/ahead-read.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import type { ReplyShare } from '../shared/reply-share.ts'
import type { FetchSessions } from './fetch-sessions.ts'
import type { KeyTurns } from './key-turns.ts'
import type { CloseReason } from './probe.ts'
import type { RefusedLogins } from './refused-logins.ts'
import type { Pace, RequestTurns } from './request-turns.ts'
import type { SaslSession } from './sasl-session.ts'
import type { KafkaSettings } from './settings.ts'
import type { TopicIds } from './topic-ids.ts'

/** Where a client finds this broker. */
export interface BrokerPlace {
  readonly host: string
  readonly port: number
}

/** What all handlers are given: lives as long as the listener. */
export interface KafkaServices {
  readonly broker: Broker
  readonly settings: KafkaSettings
  readonly clock: Clock
  readonly logger: Logger
  readonly refusedLogins: RefusedLogins
  readonly topicIds: TopicIds
  readonly fetchSessions: FetchSessions
  /** Of what is read ahead for their clients. */
  readonly aheadRoom: AheadRoom
  /** Of reads of keys that have a quota. */
  readonly readTurns: KeyTurns
  /** Of requests that name very many things. */
  readonly requestTurns: RequestTurns
  /** Bytes of those that are in progress: decoded they take some thirteen times as many (measured). */
  readonly longRequests: ByteBudget
  /** The same of fetches, which wait for records. */
  readonly fetchRequests: ByteBudget
  /** Of the data directory: clients take it for the id of the cluster. */
  readonly clusterId: string
  /** Where copies of requests are charged that must outlive their handler's return. */
  readonly requestBudget: ByteBudget
  /** What is advertised: the table of handlers. */
  readonly handlers: ReadonlyMap<number, KafkaHandler>
}

/** The connection of a request. */
export interface KafkaClient {
  /** Takes no further request; closes after what is answered. */
  refuse(reason: CloseReason, problem: string): void
  readonly remoteAddress: string
  /** Where clients that came by this way are told to come again. */
  readonly advertised: BrokerPlace
  readonly sasl: SaslSession
  /** Requests that were taken so far, this one included: for what takes turns. */
  readonly requestCount: number
}

/** What goes with a response whose memory was reserved. */
export interface Enclosed {
  /** Reserved by call.replies: released when the response was written, or dropped. */
  readonly reservedBytes: number
  /** Records of the response that lie in a buffer of call.pool, and that buffer: it is given back once they were written. */
  readonly chunkOf: ReadonlyMap<Buffer, Buffer>
}

/** One request in the hands of its handler. */
export interface KafkaCall<Request extends FieldTable = FieldTable, Response extends FieldTable = FieldTable> {
  /** Within the versions of the API. */
  readonly version: number
  readonly clientId: string | null
  /** Who asks; `anonymous` while authentication is off. A key that is revoked meanwhile says so itself. */
  readonly who: Principal
  /** `bytes` and `records` within are borrowed until the handler returns, or its promise is made: copy what is needed later. */
  readonly body: ReadOf<Request>
  readonly client: KafkaClient
  readonly services: KafkaServices
  /** Memory of answers: what holds much of it reserves before. */
  readonly replies: ReplyShare
  readonly pool: BufferPool
  /** How far it may go before others have their turn. */
  readonly pace: Pace
  readonly isAnswered: boolean
  answer(response: WriteOf<Response>, enclosed?: Enclosed): void
  /**
   * The same of a response that may be long: others have their turns while it is written. One that is waits until none before it
   * is in progress, and for reply memory, unless it has reserved some. Rejects on a bug in it.
   */
  answerInTurns(response: WriteOf<Response>, enclosed?: Enclosed): Promise<void>
  /** There is no response to this request (acks 0). */
  answerNothing(): void
  /** Closes the connection instead of answering, after what was to be answered before: nothing behind this is. */
  close(reason: CloseReason): void
  /** No request of this connection is taken until what this returns is called: it must not overtake this one. */
  hold(): () => void
  /**
   * Calls back once all requests before this one are answered, maybe at once. What reserves memory for an answer waits for
   * that: else answers that may not leave yet could hold what the one before them needs.
   */
  whenFirst(callback: () => void): void
  /** No further request of this connection is taken for so long: its key is over its quota. */
  mute(durationMs: number): void
  /**
   * Calls back once if the connection closes, or the broker stops, before the answer: whoever waits for something ends that and
   * answers now, with what there is.
   */
  onClosing(callback: () => void): void
}

/** The handler of an API as the table holds it. */
export interface KafkaHandler {
  readonly api: AnyApi
  /** May be asked before the client has authenticated. */
  readonly isOpenToAll: boolean
  /**
   * Its requests may name very many things: one that is not short is taken when none before it is in progress, and there is room
   * for it here. null: they do not, or the batches in them weigh more.
   */
  readonly roomOf: ((services: KafkaServices) => ByteBudget) | null
  /** It asks for what requests before it on its connection change: it begins when they are answered. Nothing in its body is borrowed. */
  readonly isAfterOthers: boolean
  /** Requests behind it on its connection ask for what it changes: none is taken before it is answered. */
  readonly isBeforeOthers: boolean
  /** Ms for which a request of that client is not taken yet: it stays in its socket. */
  readonly waitMsOf: (services: KafkaServices, who: Principal) => number
  /** @returns undefined, or what rejects if the handler met a bug. */
  readonly run: (call: KafkaCall) => void | Promise<void>
}

/** What most handlers are not. */
type HandlerTraits = Partial<Omit<KafkaHandler, 'api' | 'run'>>

/** @returns a row for the table of handlers: a handler sees the messages of its API in their types. */
export function handlerOf<Request extends FieldTable, Response extends FieldTable>(
  api: Api<Request, Response>,
  run: (call: KafkaCall<Request, Response>) => void | Promise<void>,
  traits: HandlerTraits = {}
): KafkaHandler {
  const plain = { isOpenToAll: false, roomOf: null, isAfterOthers: false, isBeforeOthers: false, waitMsOf: () => 0 }
  // The table holds handlers of many types: what a call brings was decoded, and is encoded, after this very API.
  return { api, ...plain, ...traits, run: call => run(call as unknown as KafkaCall<Request, Response>) }
}

/** Where requests have room that name very many things. */
const roomOf = ({ longRequests }: KafkaServices): ByteBudget => longRequests

/** @returns the row of an API whose requests may name very many things, or ask for them. */
export function longHandlerOf<Request extends FieldTable, Response extends FieldTable>(
  api: Api<Request, Response>,
  run: (call: KafkaCall<Request, Response>) => void | Promise<void>
): KafkaHandler {
  return handlerOf(api, run, { roomOf })
}

/** The same of one that asks for what requests before it may change. */
export function longQuestionOf<Request extends FieldTable, Response extends FieldTable>(
  api: Api<Request, Response>,
  run: (call: KafkaCall<Request, Response>) => void | Promise<void>
): KafkaHandler {
  return handlerOf(api, run, { roomOf, isAfterOthers: true })
}

/** The same of one that changes what requests behind it ask for. */
export function longChangeOf<Request extends FieldTable, Response extends FieldTable>(
  api: Api<Request, Response>,
  run: (call: KafkaCall<Request, Response>) => void | Promise<void>
): KafkaHandler {
  return handlerOf(api, run, { roomOf, isAfterOthers: true, isBeforeOthers: true })
}
