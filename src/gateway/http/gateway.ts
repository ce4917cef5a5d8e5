/**
 * The HTTP gateway: an engine, the route table, and what every request passes before its route. Main thread.
 *
 *   Host guard (403) → CORS (204 for a preflight of a listed origin) → key (401), open routes excepted
 *   → stopping (503) → started, open routes excepted (503) → route (404, 405) → the route's own checks
 *
 * It holds no records: what it keeps of a request is charged to the budgets it was given, and given back with the answer.
 */
import { makeScanners } from '../../background/produce-scan.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import { systemClock } from '../../base/clock.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import type { MetricsPage } from '../../model/metrics.ts'
import type { Broker } from '../../model/requests.ts'
import { ProduceResultsWriter } from '../../wire/json/produce-results.ts'
import { PackedResultsWriter } from '../../wire/produce/packed-results.ts'
import { readBuild } from '../../observe/build.ts'
import { splitAddress } from '../shared/address.ts'
import type { Certificates } from '../shared/certificates.ts'
import { CorsRules } from '../shared/cors.ts'
import { HostGuard } from '../shared/host-guard.ts'
import { PlainClients } from '../shared/plain-clients.ts'
import { JSON_TYPE } from './accept.ts'
import { authenticate, identify } from './authenticate.ts'
import type { ReaderTimeouts } from './engines/answer-pace.ts'
import { BodyWatch } from './body-watch.ts'
import type { BodyTimeouts } from './body-watch.ts'
import type { BodySink, ConnectionTimeouts, HttpEngine, Reply, RequestHandler, RequestHead } from './engines/engine.ts'
import { Exchange } from './exchange.ts'
import type { HttpSettings, Offload, Services } from './exchange.ts'
import { Failures, refusalBody } from './failures.ts'
import { NodeEngine } from './engines/node-engine.ts'
import { openApiDocument } from './openapi/document.ts'
import { HttpProbe } from './probe.ts'
import { ReadLine } from './reads/read-line.ts'
import { ReaderWatch } from './engines/reader-watch.ts'
import { ReadWaits } from './reads/read-wait.ts'
import { answerBytesOf, ReplyMemory } from './reads/reply-memory.ts'
import { Router } from './router.ts'
import { routes } from './routes.ts'
import { ScanOrder } from './produce/scan-order.ts'
import { takesRefusalAsEvents } from './streams/refused-stream.ts'
import { StreamHub, type StreamTimes } from './streams/stream-hub.ts'
import { UwsEngine } from './engines/uws-engine.ts'
import { loadUws } from './engines/uws-loader.ts'
import type { Uws } from './engines/uws-shape.ts'
import { WaitLine } from './produce/wait-line.ts'

export interface HttpGatewayOptions {
  readonly broker: Broker
  readonly settings: HttpSettings
  readonly logger: Logger
  readonly metrics: MetricsPage
  /** Request bytes held on the main thread. */
  readonly requestBudget: ByteBudget
  /** Reply bytes reserved for requests in progress. */
  readonly replyBudget: ByteBudget
  /** auto: uWebSockets.js where it loads, node:http elsewhere. uws: refuse to start without it. */
  readonly engine: 'auto' | 'uws' | 'node'
  /** Left out: every body is scanned on the main thread. The pool is the caller's, who closes it after stop(). */
  readonly offload?: Offload
  readonly timeouts?: Partial<ReaderTimeouts & BodyTimeouts & ConnectionTimeouts & StreamTimes>
  /** Connections at once. Left out: as many as the system has. */
  readonly connectionsMax?: number
  /** Left out or null: without TLS. */
  readonly certificates?: Certificates | null
  readonly clock?: Clock
}

export interface HttpGateway {
  readonly engine: 'uws' | 'node'
  /** Why uWebSockets.js did not load; null if it did or was not asked for. */
  readonly engineNote: string | null
  /** Takes the address of the settings. Rejects with an Error fit for the user, its `code` EADDRINUSE and the like. */
  listen(): Promise<{ host: string; port: number }>
  /** Everything came up once. From now on a part that fails refuses what concerns it, and nothing else. */
  markStarted(): void
  /** What the settings say of who is served, from now on. */
  applyAccess(settings: HttpAccess): void
  readonly probe: HttpProbe
  /** No new connections; requests in progress are answered, the rest is cut at the deadline. */
  stop(deadlineMs: number): Promise<void>
}

/** The settings that say which pages and hosts are served, and that can change while the gateway runs. */
export type HttpAccess = Pick<HttpSettings, 'auth' | 'bind' | 'allowedHost' | 'corsOrigin'>

/** A path as it may stand in an error message. */
const PATH_CHARACTERS_MAX = 200

const NO_BODY = Buffer.alloc(0)

/** What stands for a `:name`. @throws BrokerError FIELD_INVALID */
function decodeName(rawName: string): string {
  if (!rawName.includes('%')) return rawName
  try {
    return decodeURIComponent(rawName)
  } catch (error) {
    if (!(error instanceof URIError)) throw error
    throw new BrokerError('FIELD_INVALID', { field: 'path', problem: 'has a broken percent escape' })
  }
}

/**
 * One delivery for however many sockets are read in this round of the event loop, after all of them. Not within the
 * callback of a socket: uWebSockets.js gathers the writes of one response at a time, and while it reads a socket that is
 * the response of that one; any other answer would leave in a system call for each of its pieces.
 */
function coalescedTurn(broker: Broker, logger: Logger): () => void {
  let isScheduled = false
  const run = (): void => {
    isScheduled = false
    try {
      broker.turn()
    } catch (error) {
      logger.error({ cause: error instanceof Error ? error.stack : String(error) }, 'publishing requests failed')
      throw error
    }
  }
  return () => {
    if (isScheduled) return
    isScheduled = true
    setImmediate(run)
  }
}

/** A text as bytes, made when it is first wanted. */
function writtenOnce(write: () => string): () => Buffer {
  let bytes: Buffer | null = null
  return () => (bytes ??= Buffer.from(write()))
}

/** @param mayPipeline a connection may have several requests in progress. */
function buildServices(options: HttpGatewayOptions, probe: HttpProbe, mayPipeline: boolean): Services {
  const { broker, settings, logger, metrics, requestBudget, replyBudget } = options
  const scheduleTurn = coalescedTurn(broker, logger)
  const whenRoom = (callback: () => void): void => broker.whenRoom(callback)
  const replyMemory = new ReplyMemory(replyBudget)
  const readLine = new ReadLine({
    whenRoom,
    whenReleased: callback => replyBudget.whenReleased(callback),
    onTaken: scheduleTurn
  })
  return {
    broker,
    streams: new StreamHub({ broker, replyMemory, readLine, probe, scheduleTurn }, options.timeouts),
    readLine,
    settings,
    logger,
    metrics,
    requestBudget,
    replyBudget,
    replyMemory,
    probe,
    scheduleTurn,
    failures: new Failures(logger, probe),
    scanners: makeScanners(),
    offload: options.offload ?? null,
    scanOrder: new ScanOrder(mayPipeline),
    resultsWriter: new ProduceResultsWriter(),
    packedResultsWriter: new PackedResultsWriter(),
    produceLine: new WaitLine({ whenRoom, onTaken: scheduleTurn }),
    readWaits: new ReadWaits(broker),
    apiDescription: writtenOnce(() => JSON.stringify(openApiDocument(routes, readBuild().version)))
  }
}

class Dispatcher {
  isStopping = false
  /** Also true once a request found the broker ready. A shard that dies later must not close all routes. */
  hasStarted = false
  readonly #services: Services
  readonly #router = new Router(routes)
  readonly #bodies: BodyWatch
  /** null: authentication is on, every host is served. */
  #guard: HostGuard | null = null
  readonly #needsKey: boolean
  #cors = new CorsRules([])

  constructor(services: Services, bodies: BodyWatch) {
    this.#services = services
    this.#needsKey = services.settings.auth === 'required'
    this.#bodies = bodies
    this.applyAccess(services.settings)
  }

  applyAccess({ auth, bind, allowedHost, corsOrigin }: HttpAccess): void {
    this.#guard = auth === 'disabled' ? new HostGuard(bind, allowedHost) : null
    this.#cors = new CorsRules(corsOrigin)
  }

  readonly handle: RequestHandler = (head: RequestHead, reply: Reply): BodySink | null => {
    const exchange = new Exchange(this.#services, head, reply)
    try {
      const sink = this.#route(exchange)
      return sink === null ? null : this.#bodies.watch(head, reply, sink)
    } catch (error) {
      exchange.refuseEarly(error)
      return null
    }
  }

  #route(exchange: Exchange): BodySink | null {
    const { method, path, host, origin, fault } = exchange.head
    const cors = origin === '' ? null : this.#cors.headersFor(origin)
    if (cors !== null) exchange.reply.standingHeaders = cors.answer
    if (fault !== null) throw new BrokerError('FIELD_INVALID', { field: fault.field, problem: fault.problem })
    if (this.#guard !== null && !this.#guard.allows(host)) throw new BrokerError('HOST_REFUSED', { host })
    if (cors !== null && method === 'OPTIONS') {
      exchange.reply.send({ status: 204, contentType: null, headers: cors.preflight }, NO_BODY)
      return null
    }
    const match = this.#router.match(method, path)
    const isOpen = match.kind === 'route' && match.route.isOpen
    if (match.kind === 'route' && exchange.reply.meter !== null) exchange.reply.meter.route = match.route
    exchange.isRefusedAsEvents = match.kind === 'route' && match.route.isStream && takesRefusalAsEvents(exchange.head)
    // Before anything is said of routes, bodies and queries (spec 1.9).
    if (this.#needsKey) exchange.who = (isOpen ? identify : authenticate)(exchange.head, this.#services.broker.keys)
    if (this.isStopping) throw new BrokerError('STOPPING')
    if (!this.hasStarted && !isOpen) {
      const { ready, message } = this.#services.broker.readiness()
      if (!ready) throw new BrokerError('NOT_READY', { problem: message })
      this.hasStarted = true
    }
    const shownPath = path.slice(0, PATH_CHARACTERS_MAX)
    if (match.kind === 'no-route') throw new BrokerError('ROUTE_NOT_FOUND', { method, path: shownPath })
    if (match.kind === 'wrong-method') {
      throw new BrokerError('METHOD_NOT_ALLOWED', { method, path: shownPath, allow: match.allow })
    }
    exchange.names = match.rawNames.map(decodeName)
    if (exchange.jsonType === JSON_TYPE) exchange.bodySchema = match.route.docs.body?.[JSON_TYPE] ?? null
    return match.route.run(exchange)
  }
}

/** @returns the library, or null for node:http; and why it is not there. */
function chooseUws(asked: HttpGatewayOptions['engine']): [Uws | null, string | null] {
  if (asked === 'node') return [null, null]
  const load = loadUws()
  if (load.uws !== null) return [load.uws, null]
  if (asked === 'uws') throw new Error(`uWebSockets.js does not load here: ${load.reason}`)
  return [null, load.reason]
}

/** Builds the gateway; nothing listens yet. Rejects if `engine: 'uws'` cannot be had. */
export async function createHttpGateway(options: HttpGatewayOptions): Promise<HttpGateway> {
  const [uws, engineNote] = chooseUws(options.engine)
  const { settings, requestBudget, replyBudget, certificates, timeouts = {}, clock = systemClock } = options
  // uWebSockets.js closes a connection that sends a request before it has the answer to the one before.
  const probe = new HttpProbe(clock)
  const services = buildServices(options, probe, uws === null)
  const { failures } = services
  const largestBodyBytes = settings.maxRequestBodyBytes
  const bodyParts = { budget: requestBudget, largestBytes: largestBodyBytes, failures, probe, clock, timeouts }
  const bodies = new BodyWatch(bodyParts)
  const dispatcher = new Dispatcher(services, bodies)
  const largestAnswerBytes = answerBytesOf(settings.maxFetchBytes)
  const watch = new ReaderWatch({
    cutLate: look => engine.cutLate(look),
    replyBudget,
    largestAnswerBytes,
    clock,
    timeouts
  })
  const handler: RequestHandler = (head, reply) => {
    watch.begin()
    reply.meter = probe.begin()
    return dispatcher.handle(head, reply)
  }
  const { connectionsMax = Infinity } = options
  const { idleMs = limits.httpIdleTimeoutMs, responseMs = limits.httpWriteTimeoutMs } = timeouts
  const connections = { connectionsMax, idleMs, responseMs, certificate: certificates?.current ?? null }
  const plainClients = new PlainClients({
    ...options,
    clock,
    protocol: 'HTTP',
    remedy: 'write https:// in its address'
  })
  const onPlainClient = (remoteAddress: string): void => plainClients.note(remoteAddress)
  const parts = { handler, refusalBody, clock, probe, onPlainClient, ...connections }
  const engine: HttpEngine = uws === null ? new NodeEngine(parts) : new UwsEngine(uws, parts)
  certificates?.onChange(certificate => engine.useCertificate(certificate))
  const { host, port } = splitAddress(settings.bind)
  return {
    engine: engine.name,
    engineNote,
    probe,
    applyAccess: access => dispatcher.applyAccess(access),
    async listen() {
      return { host, port: await engine.listen(host, port) }
    },
    markStarted() {
      dispatcher.hasStarted = true
    },
    async stop(deadlineMs) {
      dispatcher.isStopping = true
      services.readWaits.endAll()
      services.streams.stop()
      await engine.stop(deadlineMs)
      watch.end()
      bodies.end()
    }
  }
}
