/**
 * The ES01 listener: takes connections within limits, sweeps their deadlines, and ties them to the broker's turns.
 * Main thread only. Owns every connection until it is closed.
 *
 * Order of a turn: bytes arrive → frames are submitted → broker.turn() publishes them and delivers replies →
 * the connections that got replies write once each. Nothing here waits, and nothing polls but the sweep.
 */
import { createServer } from 'node:net'
import type { Server } from 'node:net'
import { assert } from '../../base/assert.ts'
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Clock } from '../../base/clock.ts'
import { systemClock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import { frameLengthMax, limits } from '../../model/limits.ts'
import type { Broker } from '../../model/requests.ts'
import { NameReader } from '../../wire/es01/names.ts'
import type { Certificates } from '../shared/certificates.ts'
import { Entrance, type Admit } from '../shared/entrance.ts'
import { LatencyMeter } from '../shared/latency-meter.ts'
import { acceptOptions, listenOn } from '../shared/listen-on.ts'
import { FrameMemory } from '../shared/frame-memory.ts'
import { OpenConnections } from '../shared/open-connections.ts'
import { ClientAddresses } from '../shared/addresses.ts'
import { BufferPool } from '../shared/buffer-pool.ts'
import { ConnectionTurns } from '../shared/connection-turns.ts'
import type { ConnectionHost, HostedConnection } from './connection-host.ts'
import { Es01Connection } from './connection.ts'
import { readConnectionsMax } from '../shared/connections-max.ts'
import { Doorkeeper } from './doorkeeper.ts'
import type { InflaterHost } from './inflater.ts'
import type { Es01Probe } from './probe.ts'
import { createProbe } from './probe.ts'
import { createReceiveShared } from '../shared/receive-buffer.ts'
import { TurnRoom } from '../shared/turn-room.ts'
import { replyShareBytesOf } from '../shared/reply-share.ts'
import { RequestReader } from './requests.ts'
import type { Es01Settings, Es01Timeouts } from './settings.ts'
import { timeoutsOf } from './settings.ts'

export interface Es01GatewayOptions {
  readonly broker: Broker
  readonly settings: Es01Settings
  readonly logger: Logger
  /** Request bytes of all protocols. */
  readonly requestBudget: ByteBudget
  /** Of those, what frames on their way get. Left out: as if there were no other listener. */
  readonly frameMemory?: FrameMemory
  /** Reply bytes of all protocols. */
  readonly replyBudget: ByteBudget
  readonly timeouts?: Partial<Es01Timeouts>
  readonly clock?: Clock
  /** Connections in all. Default: by the file descriptors of this process. */
  readonly connectionsMax?: number
  /** Left out or null: without TLS. */
  readonly certificates?: Certificates | null
}

export interface Es01Gateway {
  /** Listens on settings.bindBinary. Rejects with an Error of one clear line. @returns the address that was bound. */
  listen(): Promise<{ host: string; port: number }>
  /**
   * Accepts nothing more, takes no further frame, answers what is in progress, then closes.
   * @param deadlineMs from now; what is open then is cut off.
   */
  stop(deadlineMs: number): Promise<void>
  readonly connectionCount: number
  /** Connections whose TLS handshake is not done; they count as connections against every limit. */
  readonly handshakeCount: number
  /** Of the open connections: how many read straight into the gateway's memory. */
  readonly directCount: number
  /** Bytes that were moved between receive buffers because their frame came in parts. */
  readonly movedBytes: number
  /** Bytes held for frames that are being inflated, or wait inflated. */
  readonly inflatingBytes: number
  readonly probe: Es01Probe
}

/** Builds the gateway. Nothing listens until `listen`. */
export function createEs01Gateway(options: Es01GatewayOptions): Es01Gateway {
  return new Listener(options)
}

class Listener implements Es01Gateway, ConnectionHost {
  readonly probe = createProbe()
  readonly clock: Clock
  readonly logger: Logger
  readonly timeouts: Es01Timeouts
  readonly frameLengthMax: number
  readonly replyBudget: ByteBudget
  readonly replyShareBytes: number
  readonly pool = new BufferPool(limits.idleBufferBytesMax)
  readonly receive
  readonly requests: RequestReader
  readonly inflating: InflaterHost
  readonly doorkeeper: Doorkeeper
  readonly #broker: Broker
  readonly #settings: Es01Settings
  readonly #server: Server
  readonly #connections: OpenConnections<HostedConnection>
  readonly #entrance: Entrance
  readonly #turns: ConnectionTurns<HostedConnection>
  #isStopping = false
  /** Begins to speak ES01 over what may be read in plain. */
  readonly #open: Admit = (socket, { remoteAddress, memory }) => {
    this.#connections.add(new Es01Connection(this, socket, remoteAddress, memory))
  }

  constructor(options: Es01GatewayOptions) {
    const { broker, settings, replyBudget, requestBudget } = options
    this.#broker = broker
    this.#settings = settings
    this.logger = options.logger
    this.clock = options.clock ?? systemClock
    this.timeouts = timeoutsOf(settings, options.timeouts ?? {})
    this.frameLengthMax = frameLengthMax(settings.maxRecordBytes)
    this.replyBudget = replyBudget
    this.receive = createReceiveShared(this.pool)
    const addresses = new ClientAddresses(options.frameMemory ?? new FrameMemory(requestBudget), this.frameLengthMax)
    this.requests = new RequestReader(broker, settings, {
      produce: new LatencyMeter(this.clock, this.probe.produceSeconds),
      consume: new LatencyMeter(this.clock, this.probe.consumeSeconds)
    })
    const roomBytes = requestBudget.limitBytes / limits.inflatingShare
    this.inflating = {
      frameLengthMax: this.frameLengthMax,
      counts: this.probe.gzip,
      names: new NameReader(),
      room: new TurnRoom(roomBytes, roomBytes / limits.addressInflatingShare)
    }
    this.doorkeeper = new Doorkeeper(settings.auth, broker.keys)
    this.replyShareBytes = replyShareBytesOf(replyBudget, this.requests.largestAnswerBytes)
    this.#connections = new OpenConnections({
      clock: this.clock,
      timeouts: { ...this.timeouts },
      addresses,
      replyBudget,
      requestBudget,
      largestAnswerBytes: this.requests.largestAnswerBytes,
      largestRequestBytes: this.frameLengthMax
    })
    this.#entrance = new Entrance({
      protocol: 'ES01',
      tlsRemedy: 'set the option tls of the client library',
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
    this.#server = createServer(acceptOptions, socket => this.#entrance.take(socket, this.#open))
    this.#turns = new ConnectionTurns(broker)
  }

  get connectionCount(): number {
    return this.#connections.size
  }

  get handshakeCount(): number {
    return this.#entrance.handshakeCount
  }

  get directCount(): number {
    let count = 0
    for (const connection of this.#connections) if (connection.isDirect) count++
    return count
  }

  get movedBytes(): number {
    return this.receive.movedBytes
  }

  get inflatingBytes(): number {
    return this.inflating.room.heldBytes
  }

  listen(): Promise<{ host: string; port: number }> {
    const { bindBinary } = this.#settings
    assert(bindBinary !== null, 'an ES01 gateway is built only where bind-binary is set')
    return listenOn(this.#server, {
      address: bindBinary,
      protocol: 'ES01',
      flag: '--bind-binary',
      onAcceptError: error => this.#entrance.missed(error)
    })
  }

  async stop(deadlineMs: number): Promise<void> {
    if (this.#isStopping) return
    this.#isStopping = true
    if (this.#server.listening) this.#server.close()
    this.#entrance.close()
    for (const connection of this.#connections) connection.beginClose()
    this.#broker.turn()
    this.#turns.flush()
    await this.#connections.ended(deadlineMs, () => {
      this.logger.warn({ connections: this.#connections.size }, 'ES01 connections were cut off at the deadline')
    })
  }

  whenRoom(callback: () => void): void {
    this.#broker.whenRoom(callback)
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
  }
}
