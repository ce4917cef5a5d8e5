/**
 * Cuts off clients that do not take their answers, or too slowly while others wait for the memory, so that what is
 * reserved for those comes free. Main thread.
 * It looks several times within the time that it grants, and only while a request is in progress.
 */
import type { ByteBudget } from '../../../base/byte-budget.ts'
import type { Clock } from '../../../base/clock.ts'
import { limits } from '../../../model/limits.ts'
import { isMemoryShort } from '../../shared/memory-short.ts'
import type { PaceLook, ReaderTimeouts } from './answer-pace.ts'

/** Longest time between two looks: how late a stalled client may be noticed. */
const LOOK_MS_MAX = 1000
/** A look that comes so many times later than it should tells of a busy thread, not of slow clients. */
const LATE_LOOKS = 2

export interface ReaderWatchOptions {
  /** Cuts off who is late by that look. @returns requests in progress. */
  readonly cutLate: (look: PaceLook) => number
  readonly replyBudget: ByteBudget
  /** What the largest answer to a read reserves. */
  readonly largestAnswerBytes: number
  readonly clock: Clock
  readonly timeouts?: Partial<ReaderTimeouts>
}

export class ReaderWatch {
  readonly #options: ReaderWatchOptions
  readonly #timeouts: ReaderTimeouts
  readonly #lookMs: number
  #timer: NodeJS.Timeout | null = null
  #lookedAtMs = 0

  constructor(options: ReaderWatchOptions) {
    this.#options = options
    const { httpWriteTimeoutMs, stalledReaderMs } = limits
    this.#timeouts = { writeMs: httpWriteTimeoutMs, stalledMs: stalledReaderMs, ...options.timeouts }
    const { writeMs, stalledMs } = this.#timeouts
    this.#lookMs = Math.max(1, Math.min(LOOK_MS_MAX, Math.min(writeMs, stalledMs) / 4))
  }

  /** A request came: looks until none is in progress. */
  begin(): void {
    if (this.#timer !== null) return
    this.#lookedAtMs = this.#options.clock.monotonicMs()
    this.#timer = setInterval(() => this.#look(), this.#lookMs)
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #look(): void {
    const { clock, cutLate, replyBudget, largestAnswerBytes } = this.#options
    const nowMs = clock.monotonicMs()
    const wasBusy = nowMs - this.#lookedAtMs > LATE_LOOKS * this.#lookMs
    this.#lookedAtMs = nowMs
    const isShort = isMemoryShort(replyBudget, largestAnswerBytes)
    if (cutLate({ nowMs, timeouts: this.#timeouts, isShort, wasBusy }) === 0) this.end()
  }
}
