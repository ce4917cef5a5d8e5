/**
 * Reads that wait until there is something to read, and then are reads like any other. Main thread.
 *
 *   refused already? ─▶ its error, at once
 *   watch, timer ─▶ available · time over · the gateway stops · the shard is down ─▶ the read is made, whatever is there
 *                 ─▶ key revoked · topic deleted · too many wait ─▶ refused
 *                 ─▶ client gone ─▶ nothing
 *
 * While it waits it holds no reply memory and no place in the line of reads: a timer, and a watch of the broker. The read
 * that follows looks at everything again, so nothing is served that was granted only when the wait began.
 */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import type { Principal } from '../../../model/principal.ts'
import type { ReadRequest, Watch, WatchCaller, WatchUseCases } from '../../../model/requests.ts'
import type { Reply, ReplyWatcher } from '../engines/engine.ts'
import { clamp, readU64 } from '../query.ts'

/** How long a read may wait, and for how much. */
export interface ReadWait {
  readonly maxWaitMs: number
  /** Stored bytes, at least 1. */
  readonly minBytes: number
}

/** Parameters of a read that may wait. */
export const waitNames = ['max_wait_ms', 'min_bytes'] as const

/**
 * What a query says of waiting; null: it does not wait. Both are brought into their bounds silently.
 * @param maxBytes of the read: what it could not return is not waited for. @throws BrokerError FIELD_INVALID
 */
export function readWaitOf(parameters: ReadonlyMap<string, string>, maxBytes: number): ReadWait | null {
  const maxWaitMs = clamp(readU64(parameters, 'max_wait_ms') ?? 0n, 0, limits.readWaitMsMax)
  const minBytes = clamp(readU64(parameters, 'min_bytes') ?? 1n, 1, maxBytes)
  return maxWaitMs === 0 ? null : { maxWaitMs, minBytes }
}

/** A read before its wait. */
export interface ReadToCome {
  readonly who: Principal
  readonly reply: Pick<Reply, 'watcher'>
  readonly read: ReadRequest
  readonly wait: ReadWait
  /** Makes the read. Must not throw. */
  go(): void
  /** Answers with an error instead. */
  refuse(error: BrokerError): void
}

class WaitingRead implements WatchCaller, ReplyWatcher {
  readonly #waits: Set<WaitingRead>
  readonly #toCome: ReadToCome
  readonly #timer: NodeJS.Timeout
  readonly #watch: Watch

  constructor(waits: Set<WaitingRead>, toCome: ReadToCome, broker: WatchUseCases) {
    const { who, reply, read, wait } = toCome
    this.#waits = waits
    this.#toCome = toCome
    this.#timer = setTimeout(() => this.go(), wait.maxWaitMs)
    waits.add(this)
    reply.watcher = this
    const { topic, partition, offsetHigh, offsetLow } = read
    this.#watch = broker.submitWatch(who, { topic, partition, offsetHigh, offsetLow, minBytes: wait.minBytes }, this)
  }

  /** The wait is over: the read is made. */
  go(): void {
    this.#end()
    this.#toCome.go()
  }

  onAvailable(): void {
    this.go()
  }

  onWatchFailed(error: BrokerError): void {
    // Of a shard that is not there the read says more: whether it was, or will be.
    if (error.code === 'SHARD_DOWN' || error.code === 'SHARD_DIED') return this.go()
    this.#end()
    this.#toCome.refuse(error)
  }

  /** The client is gone. The read that follows a wait watches its reply itself. */
  onReplyClosed(): void {
    this.#end()
  }

  #end(): void {
    clearTimeout(this.#timer)
    this.#waits.delete(this)
    this.#watch.cancel()
  }
}

/** Those of one gateway. */
export class ReadWaits {
  readonly #broker: WatchUseCases
  readonly #waiting = new Set<WaitingRead>()
  #isEnded = false

  constructor(broker: WatchUseCases) {
    this.#broker = broker
  }

  /** Waits, then reads. @throws BrokerError what the read would be refused for now. */
  begin(toCome: ReadToCome): void {
    const refusal = this.#broker.refusalOfRead(toCome.who, toCome.read)
    if (refusal !== null) throw refusal
    if (this.#isEnded) return toCome.go()
    // It is in the set from here on, and ends itself.
    void new WaitingRead(this.#waiting, toCome, this.#broker)
  }

  /** The gateway stops: everybody is answered now, with what there is, and so is whoever comes behind it. */
  endAll(): void {
    this.#isEnded = true
    for (const waiting of [...this.#waiting]) waiting.go()
  }
}
