/** What connections and their gateway know of each other. Main thread only. */
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Clock } from '../../base/clock.ts'
import type { Logger } from '../../base/logger.ts'
import type { BufferPool } from '../shared/buffer-pool.ts'
import type { Doorkeeper } from './doorkeeper.ts'
import type { InflaterHost } from './inflater.ts'
import type { CloseReason, Es01Probe } from './probe.ts'
import type { ReceiveShared } from '../shared/receive-buffer.ts'
import type { RequestReader } from './requests.ts'
import type { Es01Timeouts } from './settings.ts'

/** A connection as its gateway sees it. */
export interface HostedConnection {
  readonly remoteAddress: string
  /** Does the socket read straight into the gateway's memory? */
  readonly isDirect: boolean
  /** Monotonic time since which the reading waits for memory, or Infinity. */
  readonly memoryWaitSinceMs: number
  /** Replies were delivered: writes them, and goes on with what had to wait for them. */
  afterDelivery(): void
  /** Something that this connection waited for is there again: tries its frames, then its reading. */
  resume(): void
  /** Takes no further frame; answers what is in progress, then closes. */
  beginClose(): void
  /** Closes at once and counts why. */
  drop(reason: CloseReason): void
  /** Closes at once, for no fault of the client. */
  abandon(): void
  /**
   * Closes the connection if a deadline has passed.
   * @param isShort of which memory: unread answers, and frames that come in part, may then stay for less time.
   */
  checkDeadlines(nowMs: number, isShort: { readonly replies: boolean; readonly requests: boolean }): void
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
