/**
 * The verdict on a batch of a producer that speaks Kafka's protocol, whose sequences stand in ProducerSequences in the form
 * of wire/batch/sequences.ts. Pure.
 */
import { SEQUENCE_END, epochOf, sequenceHigh, sequenceLow, unwrappedOf } from '../wire/batch/sequences.ts'
import type { ProducerSequences } from './producer-sequences.ts'

/** The sequences of a batch that is accepted: `count` from (high i32, low u32) on. */
export interface BatchSequences {
  readonly producer: number
  readonly high: number
  readonly low: number
  readonly count: number
  /** They do not follow on what the producer has: its epoch is a new one. */
  readonly beginsAnew: boolean
}

/** What the header of a batch says of its producer. */
export interface BatchProducer {
  /** From 1. */
  readonly producer: number
  /** 0 to 2^15 − 1. */
  readonly epoch: number
  /** Of its first record: 0 to 2^31 − 1. */
  readonly sequence: number
  readonly count: number
}

/** next: accepted. duplicate: written before, with that base offset. Otherwise refused, with what was expected. */
export type BatchVerdict =
  | { readonly kind: 'next'; readonly sequences: BatchSequences }
  | { readonly kind: 'duplicate'; readonly baseOffset: number }
  | { readonly kind: 'gap' | 'too old'; readonly expected: number }
  | { readonly kind: 'stale epoch'; readonly epoch: number }

/**
 * The verdict on one batch.
 *
 *   | producer     | epoch     | sequences                                        | verdict                               |
 *   |--------------|-----------|--------------------------------------------------|---------------------------------------|
 *   | not known    | –         | –                                                | next: it may begin anywhere           |
 *   | known        | below     | –                                                | stale epoch                           |
 *   | known        | above     | from 0                                           | next: begins anew                     |
 *   | known        | above     | others                                           | gap                                   |
 *   | known        | the same  | from the expected one                            | next                                  |
 *   | known        | the same  | all of them accepted, in the last runs           | duplicate                             |
 *   | known        | the same  | all of them accepted, before the last runs       | too old                               |
 *   | known        | the same  | others                                           | gap                                   |
 */
export function judgeBatch(known: ProducerSequences | null, batch: BatchProducer): BatchVerdict {
  const { epoch, sequence, count } = batch
  if (known === null) return next(batch, sequence, false)
  const knownEpoch = epochOf(known.originHigh)
  if (epoch < knownEpoch) return { kind: 'stale epoch', epoch: knownEpoch }
  if (epoch > knownEpoch) return sequence === 0 ? next(batch, 0, true) : { kind: 'gap', expected: 0 }
  const unwrapped = unwrappedOf(known.originHigh, known.originLow) + known.next
  const expected = unwrapped % SEQUENCE_END
  const behind = (expected - sequence + SEQUENCE_END) % SEQUENCE_END
  if (behind === 0) return next(batch, unwrapped, false)
  const first = known.next - behind
  if (first < 0 || count > behind) return { kind: 'gap', expected }
  if (first < known.runWindowStart) return { kind: 'too old', expected }
  return { kind: 'duplicate', baseOffset: known.offsetOf(first) }
}

function next({ producer, epoch, count }: BatchProducer, unwrapped: number, beginsAnew: boolean): BatchVerdict {
  const high = sequenceHigh(epoch, unwrapped)
  return { kind: 'next', sequences: { producer, high, low: sequenceLow(unwrapped), count, beginsAnew } }
}
