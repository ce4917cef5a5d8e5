/** What connections and their gateway know of each other. Main thread only. */
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import type { TurnTaker } from '../shared/connection-turns.ts'
import type { Doorkeeper } from './doorkeeper.ts'
import type { InflaterHost } from './inflater.ts'
import type { CloseReason, Es01Probe } from './probe.ts'
import type { ReceiveShared } from '../shared/receive-buffer.ts'
import type { SweptConnection } from '../shared/open-connections.ts'
import type { RequestReader } from './requests.ts'
import type { Es01Timeouts } from './settings.ts'

/** A connection as its gateway sees it. */
export interface HostedConnection extends SweptConnection, TurnTaker {
  /** Does the socket read straight into the gateway's memory? */
  readonly isDirect: boolean
  /** Closes at once and counts why. */
  drop(reason: CloseReason): void
}

export interface ConnectionHost {
  readonly clock: Clock
  readonly logger: Logger
  readonly timeouts: Es01Timeouts
  readonly frameLengthMax: number
  readonly replyBudget: ByteBudget
  /** The most that one connection may hold of it. */
  readonly replyShareBytes: number
  readonly pool: BufferPool
  readonly receive: ReceiveShared
  readonly requests: RequestReader
  readonly inflating: InflaterHost
  /** Whose token a hello brings. */
  readonly doorkeeper: Doorkeeper
  readonly probe: Es01Probe
  /** Calls back once when the broker's rings had room again. */
  whenRoom(callback: () => void): void
  /** Calls connection.resume() soon, outside whatever runs now. */
  wake(connection: HostedConnection): void
  /** Calls connection.afterDelivery() after this delivery of replies, or this arrival of bytes. */
  markDirty(connection: HostedConnection): void
  /** The connection has used what arrived: publishes it and writes what is answered already. */
  afterInput(connection: HostedConnection): void
  closed(connection: HostedConnection): void
}
