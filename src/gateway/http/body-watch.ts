/**
 * Refuses request bodies that come too slowly, so that nobody holds request memory for as long as they like. Main
 * thread. Both engines alike; it looks only while a body is on its way.
 *
 * A body must bring so much a second, over a window of ten seconds, or of two while request memory is short: then others
 * wait for what it holds. What this broker itself did not get round to read does not count against a client.
 */
import type { ByteBudget } from '../../base/byte-budget.ts'
import type { Clock } from '../../base/clock.ts'
import { BrokerError } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import { isMemoryShort } from '../shared/memory-short.ts'
import type { BodySink, Reply, RequestHead } from './engines/engine.ts'
import type { Failures } from './failures.ts'
import type { HttpProbe } from './probe.ts'

/** How long a body may fall short of its rate. */
export interface BodyTimeouts {
  readonly windowMs: number
  /** The same while request memory is short. */
  readonly shortWindowMs: number
}

/** Longest time between two looks: how late a slow body may be noticed. */
const LOOK_MS_MAX = 1000
/** A look that comes so many times later than it should tells of a busy thread, not of slow clients. */
const LATE_LOOKS = 2

export interface BodyWatchOptions {
  readonly budget: ByteBudget
  /** Memory that the largest body takes. */
  readonly largestBytes: number
  readonly failures: Failures
  readonly probe: HttpProbe
  readonly clock: Clock
  readonly timeouts?: Partial<BodyTimeouts>
}

class WatchedBody implements BodySink {
  sinceMs: number
  bytes = 0
  readonly head: RequestHead
  readonly reply: Reply
  readonly #sink: BodySink
  readonly #watched: Set<WatchedBody>

  constructor(head: RequestHead, reply: Reply, sink: BodySink, watched: Set<WatchedBody>, nowMs: number) {
    this.head = head
    this.reply = reply
    this.#sink = sink
    this.#watched = watched
    this.sinceMs = nowMs
  }

  onBodyChunk(chunk: Buffer, isLast: boolean): void {
    this.bytes += chunk.length
    if (isLast) this.#watched.delete(this)
    this.#sink.onBodyChunk(chunk, isLast)
  }
}

export class BodyWatch {
  readonly #options: BodyWatchOptions
  readonly #timeouts: BodyTimeouts
  readonly #lookMs: number
  readonly #watched = new Set<WatchedBody>()
  #timer: NodeJS.Timeout | null = null
  #lookedAtMs = 0

  constructor(options: BodyWatchOptions) {
    this.#options = options
    this.#timeouts = { windowMs: limits.httpBodyWindowMs, shortWindowMs: limits.stalledReaderMs, ...options.timeouts }
    const { windowMs, shortWindowMs } = this.#timeouts
    this.#lookMs = Math.max(1, Math.min(LOOK_MS_MAX, Math.min(windowMs, shortWindowMs) / 4))
  }

  /** @returns who takes the body from now on. */
  watch(head: RequestHead, reply: Reply, sink: BodySink): BodySink {
    const nowMs = this.#options.clock.monotonicMs()
    if (this.#timer === null) {
      this.#lookedAtMs = nowMs
      this.#timer = setInterval(() => this.#look(), this.#lookMs)
    }
    const body = new WatchedBody(head, reply, sink, this.#watched, nowMs)
    this.#watched.add(body)
    return body
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #look(): void {
    const { budget, largestBytes, clock } = this.#options
    const nowMs = clock.monotonicMs()
    const wasBusy = nowMs - this.#lookedAtMs > LATE_LOOKS * this.#lookMs
    this.#lookedAtMs = nowMs
    const windowMs = isMemoryShort(budget, largestBytes) ? this.#timeouts.shortWindowMs : this.#timeouts.windowMs
    for (const body of this.#watched) {
      if (body.reply.isClosed || body.reply.isAnswered) this.#watched.delete(body)
      else if (wasBusy) this.#restart(body, nowMs)
      else if (nowMs - body.sinceMs >= windowMs) this.#judge(body, nowMs)
    }
    if (this.#watched.size === 0) this.end()
  }

  #restart(body: WatchedBody, nowMs: number): void {
    body.sinceMs = nowMs
    body.bytes = 0
  }

  #judge(body: WatchedBody, nowMs: number): void {
    const seconds = (nowMs - body.sinceMs) / 1000
    const least = Math.floor(seconds * limits.httpBodyBytesPerSecond)
    if (body.bytes >= least) {
      this.#restart(body, nowMs)
      return
    }
    this.#watched.delete(body)
    this.#options.probe.bodiesLate++
    const details = { received: body.bytes, seconds: seconds.toFixed(1), limit: limits.httpBodyBytesPerSecond }
    this.#options.failures.answer(body.head, body.reply, new BrokerError('BODY_TIMEOUT', details), { mustClose: true })
  }
}
