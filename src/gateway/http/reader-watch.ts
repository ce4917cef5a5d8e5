/**
 * Cuts off clients that do not take their answers, so that what is reserved for those comes free. Main thread.
 * It looks several times within the time that it grants, and only while a request is in progress.
 */
import type { ByteBudget } from '../../base/byte-budget.ts'
import { limits } from '../../model/limits.ts'
import { isMemoryShort } from '../shared/memory-short.ts'

/** How long a client may take nothing of an answer. */
export interface ReaderTimeouts {
  readonly writeMs: number
  /** The same while reply memory is short. */
  readonly stalledMs: number
}

/** Longest time between two looks: how late a stalled client may be noticed. */
const LOOK_MS_MAX = 1000

export class ReaderWatch {
  readonly #cutStalled: (afterMs: number) => number
  readonly #replyBudget: ByteBudget
  readonly #largestAnswerBytes: number
  readonly #timeouts: ReaderTimeouts
  #timer: NodeJS.Timeout | null = null

  /**
   * @param cutStalled cuts off who takes nothing for that long. @returns requests in progress.
   * @param largestAnswerBytes what the largest answer to a read reserves.
   */
  constructor(
    cutStalled: (afterMs: number) => number,
    replyBudget: ByteBudget,
    largestAnswerBytes: number,
    timeouts: Partial<ReaderTimeouts>
  ) {
    this.#cutStalled = cutStalled
    this.#replyBudget = replyBudget
    this.#largestAnswerBytes = largestAnswerBytes
    this.#timeouts = { writeMs: limits.httpWriteTimeoutMs, stalledMs: limits.stalledReaderMs, ...timeouts }
  }

  /** A request came: looks until none is in progress. */
  begin(): void {
    if (this.#timer !== null) return
    const { writeMs, stalledMs } = this.#timeouts
    this.#timer = setInterval(() => this.#look(), Math.max(1, Math.min(LOOK_MS_MAX, Math.min(writeMs, stalledMs) / 4)))
  }

  end(): void {
    if (this.#timer !== null) clearInterval(this.#timer)
    this.#timer = null
  }

  #look(): void {
    const { writeMs, stalledMs } = this.#timeouts
    const isShort = isMemoryShort(this.#replyBudget, this.#largestAnswerBytes)
    if (this.#cutStalled(isShort ? Math.min(writeMs, stalledMs) : writeMs) === 0) this.end()
  }
}
