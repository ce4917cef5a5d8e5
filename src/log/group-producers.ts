/**
 * The producer runs of a group (durability W5): which sequences of which producer its new records have, by partition, in
 * the order of their offsets. Shard thread only; owned by one encoder, used again for each of its groups.
 */
import type { BatchSequences } from './batch-sequences.ts'
import type { ProducerRun } from './group-format.ts'
import type { PartitionLog } from './partition-log.ts'

interface GrowingRun {
  readonly producerId: number
  readonly sequenceHigh: number
  readonly sequenceLow: number
  count: number
  readonly baseOffset: number
}

const noRuns: readonly ProducerRun[] = []

export class GroupProducers {
  /** By place of the partition in the group. */
  readonly #byPlace: GrowingRun[][] = []
  /** By place: runs taken by entries already. */
  readonly #taken: number[] = []
  /** Runs of the group. */
  count = 0

  /**
   * The record staged last in a log has that sequence (high i32, low u32), judged to be the next. Sequences have no gaps, so
   * one of the same producer that follows in offset follows in sequence too.
   * @param beginsEntry the record begins a directory entry: a run belongs to one.
   */
  accept(log: PartitionLog, producerId: number, high: number, low: number, beginsEntry: boolean): void {
    const offset = log.nextOffset - 1
    log.producers.expecting(producerId, high, low).accept(1, offset, log.highWatermark)
    const runs = (this.#byPlace[log.groupPlace] ??= [])
    const last = runs[runs.length - 1]
    if (last !== undefined && !beginsEntry) {
      if (last.producerId === producerId && last.baseOffset + last.count === offset) {
        last.count++
        return
      }
    }
    runs.push({ producerId, sequenceHigh: high, sequenceLow: low, count: 1, baseOffset: offset })
    this.count++
  }

  /** The batch staged last in a log has these sequences: always a run of its own. */
  acceptBatch(log: PartitionLog, { producer, high, low, count, beginsAnew }: BatchSequences): void {
    const baseOffset = log.nextOffset - count
    if (beginsAnew) log.producers.begin(producer, high, low)
    log.producers.expecting(producer, high, low).accept(count, baseOffset, log.highWatermark)
    const runs = (this.#byPlace[log.groupPlace] ??= [])
    runs.push({ producerId: producer, sequenceHigh: high, sequenceLow: low, count, baseOffset })
    this.count++
  }

  /** The next runs of a place, up to an offset: those of its next entry. */
  take(place: number, endOffset: number): readonly ProducerRun[] {
    const runs = this.#byPlace[place]
    if (runs === undefined) return noRuns
    const start = this.#taken[place] ?? 0
    let end = start
    while (end < runs.length && (runs[end] as GrowingRun).baseOffset < endOffset) end++
    this.#taken[place] = end
    return end === start ? noRuns : runs.slice(start, end)
  }

  reset(): void {
    if (this.count === 0) return
    this.#byPlace.length = 0
    this.#taken.length = 0
    this.count = 0
  }
}
