/**
 * The idempotent producers of one partition, by number, staged sequences included. Shard thread only; owned by its log.
 */
import { assert } from '../base/assert.ts'
import type { ProducerRun } from './group-format.ts'
import type { ManifestProducer } from './manifest.ts'
import { ProducerSequences } from './producer-sequences.ts'

export class PartitionProducers {
  /** null: none, as in most partitions. */
  #byNumber: Map<number, ProducerSequences> | null = null

  /** The sequences of a producer; null: it has none here. */
  of(number: number): ProducerSequences | null {
    return this.#byNumber?.get(number) ?? null
  }

  entries(): Iterable<[number, ProducerSequences]> {
    return this.#byNumber ?? []
  }

  /** The producer's sequences, of which that one (high i32, low u32) is the next; if it has none, the first ever. */
  expecting(producer: number, high: number, low: number): ProducerSequences {
    const sequences = this.of(producer) ?? this.#begin(producer, high, low)
    assert(sequences.relativeOf(high, low) === sequences.next, 'accepted sequences have no gaps')
    return sequences
  }

  /** The producer begins anew with that sequence, for it has a new epoch. What was before comes back if that is rolled back. */
  begin(producer: number, high: number, low: number): void {
    const replaced = this.of(producer)
    this.#begin(producer, high, low).replaced = replaced
  }

  #begin(producer: number, high: number, low: number): ProducerSequences {
    const sequences = new ProducerSequences(high, low)
    this.#byNumber ??= new Map()
    this.#byNumber.set(producer, sequences)
    return sequences
  }

  /** All of them: a rollback is rare, and a list of those with something staged would cost every record. */
  rollback(highWatermark: number): void {
    for (const [number, sequences] of this.#byNumber ?? []) {
      const left = sequences.rolledBack(highWatermark)
      if (left === null) this.#byNumber?.delete(number)
      else if (left !== sequences) this.#byNumber?.set(number, left)
    }
  }

  forget(numbers: readonly number[]): void {
    if (this.#byNumber === null) return
    for (const number of numbers) this.#byNumber.delete(number)
  }

  /** Forgets the producers that are not wanted any more. */
  keep(isKept: (number: number) => boolean): void {
    for (const number of this.#byNumber?.keys() ?? []) if (!isKept(number)) this.#byNumber?.delete(number)
  }

  /** Begins with what a manifest knows. */
  restore(producers: readonly ManifestProducer[]): void {
    for (const producer of producers) {
      this.#byNumber ??= new Map()
      this.#byNumber.set(producer.number, ProducerSequences.restored(producer))
    }
  }

  /** Takes over the producer runs of a run found at recovery. */
  recover(runs: readonly ProducerRun[], highWatermark: number): void {
    for (const { producerId, sequenceHigh, sequenceLow, count, baseOffset } of runs) {
      const high = sequenceHigh | 0
      let sequences = this.of(producerId)
      // What does not follow on begins anew: the window never spans a gap, nor a new epoch.
      if (sequences === null || sequences.relativeOf(high, sequenceLow) !== sequences.next)
        sequences = this.#begin(producerId, high, sequenceLow)
      sequences.accept(count, baseOffset, highWatermark)
    }
  }
}
