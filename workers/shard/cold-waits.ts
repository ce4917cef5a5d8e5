/**
 * Reads that wait for a segment from cold storage: put aside, so that no other read waits behind them, until main says that
 * a copy is here, or why there is none. Shard thread only. Bounded, because main reserves room for every answer before it
 * asks, and in time.
 */
import type { ColdSegmentAbsent } from '../../src/log/cold-segment.ts'
import type { ColdSegment } from '../../src/wire/shard/cold.ts'
import { counterIndex } from '../../src/wire/shard/counters.ts'
import type { ReplyWriter } from './reply-writer.ts'

/**
 * Longest that a read waits: then the caller hears of it, and the next one finds the copy that came meanwhile. Clients of Kafka's
 * protocol give up a request, and with it the connection, after 30 s: they are told before.
 */
export const COLD_WAIT_MS = 20_000
/** Between two reports of which copies are in use. */
const USED_EVERY_MS = 1000

/** A read that was put aside. */
export interface ColdWaiter {
  /** When its time is over, monotonic ms, as resume() was told; null: it waits for the first time. A read that waits for one segment after another has one time for all. */
  readonly endMs: number | null
  /** The copy is here: it goes on. @param endMs when its time is over. */
  resume(endMs: number): void
  /** It cannot be had, or not in time. @param problem a part of a sentence. */
  refuse(problem: string): void
}

interface Waiting {
  readonly waiter: ColdWaiter
  readonly endMs: number
}

export class ColdWaits {
  readonly #replies: ReplyWriter
  readonly #counters: Float64Array
  readonly #monotonicMs: () => number
  /** By name of the copy; each was asked for once. */
  readonly #waiting = new Map<string, Waiting[]>()
  #usedAtMs = 0

  constructor(replies: ReplyWriter, shared: { counters: Float64Array; monotonicMs: () => number }) {
    this.#replies = replies
    this.#counters = shared.counters
    this.#monotonicMs = shared.monotonicMs
  }

  /** Puts a read aside until its segment is here. */
  park({ segment, isBad }: ColdSegmentAbsent, waiter: ColdWaiter): void {
    const waiting = { waiter, endMs: waiter.endMs ?? this.#monotonicMs() + COLD_WAIT_MS }
    const others = this.#ask(segment, isBad)
    others.push(waiting)
    this.#counters[counterIndex.coldWaits]! += 1
  }

  /** Nobody waits for it yet: the next read will want it. */
  fetchAhead({ segment, isBad }: ColdSegmentAbsent): void {
    this.#ask(segment, isBad)
  }

  #ask(segment: ColdSegment, isBad: boolean): Waiting[] {
    let waiting = this.#waiting.get(segment.name)
    if (waiting === undefined) {
      waiting = []
      this.#waiting.set(segment.name, waiting)
      this.#replies.event({ kind: 'fetch-wanted', segment, isBad })
    }
    return waiting
  }

  /** What was asked for came, or did not. @param problem null: it came. */
  finish(name: string, problem: string | null): void {
    const waiting = this.#waiting.get(name) ?? []
    this.#waiting.delete(name)
    for (const { waiter, endMs } of waiting) {
      if (problem === null) waiter.resume(endMs)
      else waiter.refuse(problem)
    }
  }

  /** Looked at in every turn: ends waits that are too long. The copy may still come, for whoever asks next. */
  turn(): void {
    const nowMs = this.#monotonicMs()
    if (nowMs < this.dueMs) return
    for (const [name, all] of this.#waiting) {
      const late = all.filter(({ endMs }) => endMs <= nowMs)
      const others = all.filter(({ endMs }) => endMs > nowMs)
      if (late.length > 0) this.#waiting.set(name, others)
      for (const { waiter } of late) waiter.refuse(`it did not come within ${COLD_WAIT_MS / 1000} s`)
    }
  }

  /** When turn() has something to do, monotonic ms. */
  get dueMs(): number {
    let dueMs = Number.POSITIVE_INFINITY
    for (const waiting of this.#waiting.values()) for (const { endMs } of waiting) dueMs = Math.min(dueMs, endMs)
    return dueMs
  }

  /** Tells main from time to time which copies are read, so that it takes others away first. */
  reportUsed(used: Set<string>): void {
    if (used.size === 0 || this.#monotonicMs() - this.#usedAtMs < USED_EVERY_MS) return
    this.#usedAtMs = this.#monotonicMs()
    this.#replies.event({ kind: 'copies-used', names: [...used] })
    used.clear()
  }
}
