/**
 * The sequences of one producer in one partition, and the verdict on a further one (spec 4.1). Shard thread only.
 *
 * Accepted sequences have no gaps, so they are counted from the first one ever, the origin: 64-bit sequences become small
 * exact numbers. Where their records lie is kept as runs, in which offsets rise with the sequences:
 *
 *   relative   0 … 9   10 … 12   13 …  │ next
 *   offset     5 … 14   40 … 42   50 … │           firsts = 0, 10, 13   bases = 5, 40, 50
 *
 * Sequences are staged when they are gathered. What of them is durable follows from the partition's high watermark, so
 * committing costs nothing, and rolling back cuts what lies at or behind it.
 *
 * Producers of Kafka's protocol have the same state, with sequences below 0 (wire/batch/sequences.ts).
 */
import { assert } from '../base/assert.ts'
import { limits } from '../model/limits.ts'
import { TWO_32 } from '../wire/primitives/u64.ts'

/** What becomes of a record. duplicate: its original's offset is known, nothing is written. */
export const sequenceVerdicts = { next: 0, duplicate: 1, gap: 2, tooLow: 3 } as const
export type SequenceVerdict = (typeof sequenceVerdicts)[keyof typeof sequenceVerdicts]

/** Runs kept before those that have left the window are dropped, so that dropping costs little per record. */
const RUNS_BEFORE_TRIM = 2 * limits.producerWindow

/**
 * How far a sequence (high i32, low u32) is behind an origin. Exact between ±2^53; beyond it the size is right to 53 bits,
 * which is never mistaken for a number that a log can reach.
 */
export function relativeSequence(high: number, low: number, originHigh: number, originLow: number): number {
  return (high - originHigh) * TWO_32 + (low - originLow)
}

/**
 * The verdict on one record. Pure.
 *
 *   | relative                  | hasNew: one of this request's records to the partition is new | verdict   |
 *   |---------------------------|----------------------------------------------------------------|-----------|
 *   | = next                    | –                                                              | next      |
 *   | > next                    | –                                                              | gap       |
 *   | next − window … next − 1  | no                                                             | duplicate |
 *   | next − window … next − 1  | yes                                                            | too low   |
 *   | < next − window, or < 0   | –                                                              | too low   |
 *
 * @param next the relative sequence that is expected; 0 with nothing accepted yet, when the record itself is the origin.
 */
export function judgeSequence(relative: number, next: number, hasNew: boolean): SequenceVerdict {
  if (relative === next) return sequenceVerdicts.next
  if (relative > next) return sequenceVerdicts.gap
  if (hasNew || relative < 0 || relative < next - limits.producerWindow) return sequenceVerdicts.tooLow
  return sequenceVerdicts.duplicate
}

/** The sequences of a producer in a partition, as plain values. */
export interface ProducerState {
  readonly originHigh: number
  readonly originLow: number
  readonly next: number
  /** Relative sequence and offset of the first of each run, oldest first. */
  readonly firsts: readonly number[]
  readonly bases: readonly number[]
}

export class ProducerSequences {
  readonly originHigh: number
  readonly originLow: number
  /** What these took the place of, as long as none of them is durable; null: nothing. */
  replaced: ProducerSequences | null = null
  /** Sequences accepted, staged ones included: the relative sequence that is expected next. */
  next = 0
  readonly #firsts: number[] = []
  readonly #bases: number[] = []

  /** @param high, @param low the first sequence ever. */
  constructor(high: number, low: number) {
    this.originHigh = high
    this.originLow = low
  }

  /** As it was when snapshot() was taken. */
  static restored(state: ProducerState): ProducerSequences {
    const sequences = new ProducerSequences(state.originHigh, state.originLow)
    sequences.next = state.next
    sequences.#firsts.push(...state.firsts)
    sequences.#bases.push(...state.bases)
    return sequences
  }

  /** All of it, for a manifest; what no duplicate can name any more is left out. @param highWatermark of the partition. */
  snapshot(highWatermark: number): ProducerState {
    this.#trim(highWatermark)
    const { originHigh, originLow, next } = this
    return { originHigh, originLow, next, firsts: [...this.#firsts], bases: [...this.#bases] }
  }

  relativeOf(high: number, low: number): number {
    return relativeSequence(high, low, this.originHigh, this.originLow)
  }

  /** The sequence that is so far behind the origin, exact. */
  sequenceAt(relative: number): bigint {
    return (BigInt(this.originHigh) << 32n) + BigInt(this.originLow) + BigInt(relative)
  }

  /** The offset of an accepted sequence of the window. */
  offsetOf(relative: number): number {
    let run = this.#firsts.length - 1
    while (run >= 0 && (this.#firsts[run] as number) > relative) run--
    assert(run >= 0 && relative < this.next, 'a sequence of the window has its offset')
    return (this.#bases[run] as number) + relative - (this.#firsts[run] as number)
  }

  /**
   * Accepts the next `count` sequences: their records have the offsets from `offset` on.
   * @param highWatermark of the partition: what lies before it is never rolled back.
   */
  accept(count: number, offset: number, highWatermark: number): void {
    const last = this.#firsts.length - 1
    const follows = last >= 0 && offset === (this.#bases[last] as number) + this.next - (this.#firsts[last] as number)
    if (!follows) {
      if (this.#firsts.length >= RUNS_BEFORE_TRIM) this.#trim(highWatermark)
      this.#firsts.push(this.next)
      this.#bases.push(offset)
    }
    this.next += count
    if (this.replaced !== null && (this.#bases[0] as number) < highWatermark) this.replaced = null
  }

  /** The relative sequence behind the last durable one: 0 if none is. */
  durableNext(highWatermark: number): number {
    let end = this.next
    for (let run = this.#firsts.length - 1; run >= 0; run--) {
      const first = this.#firsts[run] as number
      const base = this.#bases[run] as number
      if (base < highWatermark) return Math.min(end, first + highWatermark - base)
      end = first
    }
    return end
  }

  /** Forgets what is at or behind the high watermark. @returns true if nothing is left. */
  rollback(highWatermark: number): boolean {
    this.next = this.durableNext(highWatermark)
    let kept = this.#bases.length
    while (kept > 0 && (this.#bases[kept - 1] as number) >= highWatermark) kept--
    this.#firsts.length = kept
    this.#bases.length = kept
    return kept === 0
  }

  /** What is left of them without what is at or behind the high watermark, or of those that they took the place of; null: nothing. */
  rolledBack(highWatermark: number): ProducerSequences | null {
    if (!this.rollback(highWatermark)) return this
    return this.replaced?.rolledBack(highWatermark) ?? null
  }

  /** They are those of batches of Kafka's protocol (wire/batch/sequences.ts): what is known of them is counted in runs. */
  get isOfBatches(): boolean {
    return this.originHigh < 0
  }

  /** Relative sequence of the oldest of the last runs that a batch is compared with. */
  get runWindowStart(): number {
    return this.#firsts[Math.max(0, this.#firsts.length - limits.producerWindow)] ?? this.next
  }

  /** Drops the runs that no duplicate can name any more, also after a rollback. */
  #trim(highWatermark: number): void {
    if (this.isOfBatches) return this.#trimRuns(highWatermark)
    const windowStart = this.durableNext(highWatermark) - limits.producerWindow
    let dropped = 0
    while (dropped + 1 < this.#firsts.length && (this.#firsts[dropped + 1] as number) <= windowStart) dropped++
    this.#firsts.splice(0, dropped)
    this.#bases.splice(0, dropped)
  }
  /** Keeps the last durable runs, and those that are not durable yet. */
  #trimRuns(highWatermark: number): void {
    let durable = this.#bases.length
    while (durable > 0 && (this.#bases[durable - 1] as number) >= highWatermark) durable--
    const dropped = Math.max(0, durable - limits.producerWindow)
    this.#firsts.splice(0, dropped)
    this.#bases.splice(0, dropped)
  }
}
