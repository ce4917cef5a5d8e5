/** What connections and their listener know of each other. Main thread only. */
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { ForeignProtocol } from '../../wire/kafka/headers.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import type { TurnTaker } from '../shared/connection-turns.ts'
import type { ReceiveShared } from '../shared/receive-buffer.ts'
import type { SweptConnection } from '../shared/open-connections.ts'
import type { SaslSession } from './sasl-session.ts'
import type { CloseReason, KafkaProbe } from './probe.ts'
import type { RequestTaker } from './requests.ts'
import type { KafkaTimeouts } from './settings.ts'

/** A connection as its listener sees it. */
export interface HostedConnection extends SweptConnection, TurnTaker {
  /** Closes at once and counts why. */
  drop(reason: CloseReason): void
}

export interface ConnectionHost {
  readonly clock: Clock
  readonly logger: Logger
  readonly timeouts: KafkaTimeouts
  /** Of one request. */
  readonly frameSizeMax: number
  readonly replyBudget: ByteBudget
  /** The most that one connection may hold of it. */
  readonly replyShareBytes: number
  readonly pool: BufferPool
  readonly receive: ReceiveShared
  readonly requests: RequestTaker
  readonly probe: KafkaProbe
  /** @returns a new one: of nobody, or of everybody while authentication is off. */
  newSession(): SaslSession
  /** Another protocol came in: tells the log, not every time. */
  noteForeign(protocol: ForeignProtocol, remoteAddress: string): void
  /** Calls connection.resume() soon, outside whatever runs now. */
  wake(connection: HostedConnection): void
  /** Calls connection.afterDelivery() after this delivery of replies, or this arrival of bytes. */
  markDirty(connection: HostedConnection): void
  /** The connection has used what arrived: publishes it and writes what is answered already. */
  afterInput(connection: HostedConnection): void
  closed(connection: HostedConnection): void
}
