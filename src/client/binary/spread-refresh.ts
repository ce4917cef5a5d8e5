/**
 * How a topic spreads its records, asked of the broker, and asked again while the topic is used, as partitions may be added.
 * Any thread with an event loop; one owner.
 *
 * Invariants
 * - One question at a time; no record waits for it, and what is known holds until it is answered.
 * - It has no timer: the next record after its time asks. So nothing is asked of a topic that nobody writes to, and nothing
 *   keeps a process alive beyond the time of a request.
 */
import { clientError, clientErrorOf, type ClientError } from './client-error.ts'
import type { LaneParts } from './lane-parts.ts'
import { backoffMs } from './pauses.ts'
import { NO_SUCH_PARTITION } from './records.ts'
import { isTopicMissing, spreadOf, type Spread } from './refusals.ts'

/** Who knows how the topic spreads its records. */
export interface SpreadOwner {
  /** So it does now. */
  onSpread(spread: Spread): void
  /** What was known no longer holds: there is no such topic. */
  onMadeAnew(): void
}

export class SpreadRefresh {
  readonly #topic: string
  readonly #parts: LaneParts
  readonly #owner: SpreadOwner
  /** Infinity: nothing is known that could become old. */
  #dueMs = Infinity
  #isAsking = false
  /** Questions that failed in a row. */
  #failures = 0
  /** How often something was learnt or forgotten: an answer to what was asked before that is no news. */
  #version = 0

  constructor(topic: string, parts: LaneParts, owner: SpreadOwner) {
    this.#topic = topic
    this.#parts = parts
    this.#owner = owner
  }

  /** What is known was learnt now. @param nowMs on the clock of performance.now(). */
  onLearnt(nowMs: number): void {
    this.#version++
    this.#failures = 0
    this.#dueMs = nowMs + this.#parts.batching.metadataMaxAgeMs
  }

  /** Nothing is known any more: whoever needs it asks, and waits. */
  onForgotten(): void {
    this.#version++
    this.#dueMs = Infinity
  }

  /** What is known may be old already. Asks, or has the next record ask if an older question is under way. */
  hasten(): void {
    if (this.#dueMs === Infinity) return
    this.#dueMs = 0
    this.askIfDue(0)
  }

  /** A record is sent. @param nowMs on the clock of performance.now(). */
  askIfDue(nowMs: number): void {
    if (nowMs < this.#dueMs || this.#isAsking) return
    this.#isAsking = true
    // It takes every failure of the broker; what it throws is a bug, and nobody's to catch.
    void this.#ask()
  }

  async #ask(): Promise<void> {
    const version = this.#version
    const { batching, requestTimeoutMs } = this.#parts
    const nowMs = performance.now()
    this.#dueMs = nowMs + batching.metadataMaxAgeMs
    try {
      const spread = await askSpread(this.#topic, this.#parts, nowMs + requestTimeoutMs)
      this.#failures = 0
      if (version === this.#version) this.#owner.onSpread(spread)
    } catch (error) {
      const failure = clientErrorOf(error)
      if (version !== this.#version) return
      if (isTopicMissing(failure.message)) this.#owner.onMadeAnew()
      else if (failure.retryable) this.#retryAfter(failure)
    } finally {
      this.#isAsking = false
    }
  }

  /** What will not pass is asked again when its time has come; what may, sooner. */
  #retryAfter(failure: ClientError): void {
    const { batching, reconnect } = this.#parts
    this.#failures++
    const waitMs = failure.retryAfterMs ?? backoffMs(this.#failures, reconnect, Math.random())
    this.#dueMs = Math.min(this.#dueMs, performance.now() + Math.min(waitMs, batching.metadataMaxAgeMs))
  }
}

/**
 * A record to a partition that no topic has is refused with the number there is. Whoever may produce may ask that, and
 * nothing is written.
 *
 * @param deadlineMs of the question, on the clock of performance.now().
 * @returns rejects with ClientError.
 */
export async function askSpread(
  topic: string,
  { flight }: Pick<LaneParts, 'flight'>,
  deadlineMs: number
): Promise<Spread> {
  const records = [{ value: '', partition: NO_SUCH_PARTITION }]
  try {
    await flight.run(deadlineMs, (connection, timeoutMs) =>
      connection.produce(topic, records, undefined, { timeoutMs })
    )
  } catch (error) {
    const failure = clientErrorOf(error)
    const spread = spreadOf(failure.message)
    if (spread === null || spread.partitionCount === 0) throw failure
    return spread
  }
  throw clientError('protocol', 'no', `the broker took a record for partition ${NO_SUCH_PARTITION}`)
}
