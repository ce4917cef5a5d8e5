/**
 * The Kafka listener: takes connections on one or more addresses within limits, sweeps their deadlines, and ties them to the
 * broker's turns. Main thread only. Owns every connection until it is closed.
 */
import { createServer } from 'node:net'
import type { Server, Socket } from 'node:net'
import { assert } from '../../base/assert.ts'
import { ByteBudget } from '../../base/byte-budget.ts'
import { systemClock, type Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { frameLengthMax, limits } from '../../model/limits.ts'
import { anonymous } from '../../model/principal.ts'
import type { Broker } from '../../model/requests.ts'
import type { ForeignProtocol } from '../../wire/kafka/headers.ts'
import { plainAddress, splitAddress } from '../shared/address.ts'
import { ClientAddresses } from '../shared/addresses.ts'
import { BufferPool } from '../shared/buffer-pool.ts'
import type { Certificates } from '../shared/certificates.ts'
import { ConnectionTurns } from '../shared/connection-turns.ts'
import { readConnectionsMax } from '../shared/connections-max.ts'
import { Entrance } from '../shared/entrance.ts'
import { acceptOptions, listenOn } from '../shared/listen-on.ts'
import { FrameMemory } from '../shared/frame-memory.ts'
import { OpenConnections } from '../shared/open-connections.ts'
import { createReceiveShared } from '../shared/receive-buffer.ts'
import { replyShareBytesOf } from '../shared/reply-share.ts'
import type { ConnectionHost, HostedConnection } from './connection-host.ts'
import { KafkaConnection } from './connection.ts'
import type { BrokerPlace, KafkaServices } from './handler.ts'
import { FetchSessions } from './fetch-sessions.ts'
import { kafkaHandlers } from './handlers.ts'
import type { AheadRoom } from './handlers/ahead-read.ts'
import { largestAnswerBytes } from './handlers/fetch-sizes.ts'
import { KeyTurns } from './key-turns.ts'
import { createProbe, type KafkaProbe } from './probe.ts'
import { RefusedLogins } from './refused-logins.ts'
import { RequestTurns } from './request-turns.ts'
import { RequestTaker } from './requests.ts'
import { SaslSession } from './sasl-session.ts'
import { timeoutsOf, type KafkaBind, type KafkaSettings, type KafkaTimeouts } from './settings.ts'
import { TopicIds } from './topic-ids.ts'

/** Least time between two log lines about the same wrong protocol. */
const FOREIGN_LOG_MS = 10_000

export interface KafkaGatewayOptions {
  readonly broker: Broker
  readonly settings: KafkaSettings
  readonly binds: readonly KafkaBind[]
  /** Of the data directory. */
  readonly directoryId: string
  readonly logger: Logger
  /** Request bytes of all protocols. */
  readonly requestBudget: ByteBudget
  /** Of those, what frames on their way get. Left out: as if there were no other listener. */
  readonly frameMemory?: FrameMemory
  /** Reply bytes of all protocols. */
  readonly replyBudget: ByteBudget
  readonly timeouts?: Partial<KafkaTimeouts>
  readonly clock?: Clock
  /** Connections in all. Default: by the file descriptors of this process. */
  readonly connectionsMax?: number
  /** Left out or null: without TLS. */
  readonly certificates?: Certificates | null
}

export interface KafkaGateway {
  /** Listens on every address. Rejects with an Error of one clear line. @returns the addresses that were bound. */
  listen(): Promise<{ host: string; port: number }[]>
  /** Accepts nothing more, answers what is in progress, then closes. @param deadlineMs from now; what is open then is cut off. */
  stop(deadlineMs: number): Promise<void>
  readonly connectionCount: number
  /** Connections whose TLS handshake is not done; they count as connections against every limit. */
  readonly handshakeCount: number
  /** Set aside for batches that are read before their clients ask for them. */
  readonly aheadBytes: number
  readonly probe: KafkaProbe
}

/** Builds the gateway. Nothing listens until `listen`. */
export function createKafkaGateway(options: KafkaGatewayOptions): KafkaGateway {
  return new Listener(options)
}

/** An address that is listened on. */
interface Way {
  readonly bind: KafkaBind
  readonly server: Server
  /** Once it listens. */
  port: number
}

class Listener implements KafkaGateway, ConnectionHost {
  readonly probe = createProbe()
  readonly clock: Clock
  readonly logger: Logger
  readonly timeouts: KafkaTimeouts
  readonly frameSizeMax: number
  readonly replyBudget: ByteBudget
  readonly replyShareBytes: number
  readonly pool = new BufferPool(limits.kafkaIdleBufferBytesMax)
  readonly receive
  readonly requests: RequestTaker
  readonly #broker: Broker
  readonly #settings: KafkaSettings
  readonly #ways: readonly Way[]
  readonly #connections: OpenConnections<HostedConnection>
  readonly #entrance: Entrance
  readonly #turns: ConnectionTurns<HostedConnection>
  readonly #fetchSessions: FetchSessions
  readonly #aheadRoom: AheadRoom
  /** When the log was last told of a protocol. */
  readonly #foreignMs = new Map<ForeignProtocol, number>()
  #isStopping = false

  constructor(options: KafkaGatewayOptions) {
    const { broker, settings, replyBudget, requestBudget } = options
    this.#broker = broker
    this.#settings = settings
    this.logger = options.logger
    this.clock = options.clock ?? systemClock
    this.timeouts = timeoutsOf(settings, options.timeouts ?? {})
    this.frameSizeMax = frameLengthMax(settings.maxRecordBytes)
    this.replyBudget = replyBudget
    this.receive = createReceiveShared(this.pool)
    const addresses = new ClientAddresses(options.frameMemory ?? new FrameMemory(requestBudget), this.frameSizeMax)
    this.#fetchSessions = new FetchSessions(this.clock, this.probe.fetchSessions)
    this.#aheadRoom = { memory: new ByteBudget(limits.kafkaFetchAheadBytesMax), counts: this.probe.readAhead }
    this.requests = new RequestTaker(this.#services(options))
    this.replyShareBytes = replyShareBytesOf(replyBudget, largestAnswerBytes(settings))
    this.#connections = new OpenConnections({
      clock: this.clock,
      timeouts: { ...this.timeouts },
      addresses,
      replyBudget,
      requestBudget,
      largestAnswerBytes: largestAnswerBytes(settings),
      largestRequestBytes: this.frameSizeMax
    })
    this.#entrance = new Entrance({
      protocol: 'Kafka',
      tlsRemedy: `set the client's security.protocol to ${settings.auth === 'required' ? 'SASL_SSL' : 'SSL'}`,
      logger: this.logger,
      clock: this.clock,
      counts: this.probe,
      addresses,
      connectionsMax: options.connectionsMax ?? readConnectionsMax(),
      connectionsPerAddressMax: settings.binaryMaxConnectionsPerIp,
      openCount: () => this.#connections.size,
      handshakeMs: this.timeouts.handshakeMs,
      certificates: options.certificates ?? null
    })
    this.#turns = new ConnectionTurns(broker)
    this.#ways = options.binds.map(bind => this.#buildWay(bind))
  }

  get aheadBytes(): number {
    return this.#aheadRoom.memory.usedBytes
  }

  get connectionCount(): number {
    return this.#connections.size
  }

  get handshakeCount(): number {
    return this.#entrance.handshakeCount
  }

  #services({ broker, settings, logger, requestBudget, directoryId }: KafkaGatewayOptions): KafkaServices {
    const { clock } = this
    const topicIds = new TopicIds(directoryId)
    const fetchSessions = this.#fetchSessions
    const refusedLogins = new RefusedLogins(logger, clock)
    const shared = { broker, settings, logger, requestBudget, clock, topicIds, fetchSessions, refusedLogins }
    const turns = { readTurns: new KeyTurns(), requestTurns: new RequestTurns() }
    const longRequests = new ByteBudget(limits.kafkaLongRequestsBytes)
    const fetchRequests = new ByteBudget(limits.kafkaFetchRequestsBytes)
    const rooms = { longRequests, fetchRequests, aheadRoom: this.#aheadRoom }
    return { ...shared, ...turns, ...rooms, clusterId: directoryId, handlers: kafkaHandlers }
  }

  #buildWay(bind: KafkaBind): Way {
    const server = createServer(acceptOptions, socket => this.#take(socket, way))
    const way: Way = { bind, server, port: 0 }
    return way
  }

  async listen(): Promise<{ host: string; port: number }[]> {
    const bound: { host: string; port: number }[] = []
    for (const way of this.#ways) {
      const { address } = way.bind
      const onAcceptError = (error: Error): void => this.#entrance.missed(error)
      const at = await listenOn(way.server, { address, protocol: 'Kafka', flag: '--bind-kafka', onAcceptError })
      way.port = at.port
      bound.push(at)
    }
    return bound
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.#isStopping) return
    this.#isStopping = true
    for (const { server } of this.#ways) if (server.listening) server.close()
    this.#entrance.close()
    for (const connection of this.#connections) connection.beginClose()
    this.#broker.turn()
    this.#turns.flush()
    await this.#connections.ended(deadlineMs, () => {
      this.logger.warn({ connections: this.#connections.size }, 'Kafka connections were cut off at the deadline')
    })
    this.#fetchSessions.stop()
  }

  newSession(): SaslSession {
    return new SaslSession(this.#settings.auth === 'disabled' ? anonymous : null)
  }

  noteForeign(protocol: ForeignProtocol, remoteAddress: string): void {
    const nowMs = this.clock.monotonicMs()
    const lastMs = this.#foreignMs.get(protocol) ?? -Infinity
    if (nowMs - lastMs < FOREIGN_LOG_MS) return
    this.#foreignMs.set(protocol, nowMs)
    const said = `${protocol} was spoken to the Kafka listener`
    this.logger.warn(
      { remoteAddress },
      `${said}: the connection is closed; look at the port, and at the client's TLS settings`
    )
  }

  wake(connection: HostedConnection): void {
    this.#turns.wake(connection)
  }

  markDirty(connection: HostedConnection): void {
    this.#turns.markDirty(connection)
  }

  afterInput(connection: HostedConnection): void {
    this.#turns.afterInput(connection)
  }

  closed(connection: HostedConnection): void {
    this.#connections.remove(connection)
    this.#fetchSessions.clientLeft(connection)
  }

  /** A connection speaks Kafka from when it may be read in plain; where it came to is known before. */
  #take(socket: Socket, way: Way): void {
    const advertised = advertisedOf(way, plainAddress(socket.localAddress ?? ''))
    this.#entrance.take(socket, (plain, { remoteAddress, memory }) => {
      this.#connections.add(new KafkaConnection(this, plain, remoteAddress, memory, advertised))
    })
  }
}

/** Where a client that came by that way, to that address of this machine, is told to come again. */
function advertisedOf({ bind, port }: Way, localAddress: string): BrokerPlace {
  if (bind.advertised !== null) {
    return { host: bind.advertised.host, port: bind.advertised.port === 0 ? port : bind.advertised.port }
  }
  const { host } = splitAddress(bind.address)
  assert(port !== 0, 'a listener that accepts has a port')
  return { host: host === '0.0.0.0' || host === '::' ? localAddress : host, port }
}
