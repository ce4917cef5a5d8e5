/**
 * Sequences of producers that speak Kafka's protocol, as the broker has them. Pure, any thread.
 *
 * Kafka counts in 31 bits, which wrap, and begins anew with each epoch. Within an epoch the broker counts on without wrapping;
 * with the epoch above that it is one 64-bit sequence, like those of HTTP and ES01. It is below 0, which those never are, so
 * that the journal and the manifest tell the two apart:
 *
 *   sequence = −2^63 + epoch × 2^48 + unwrapped          unwrapped mod 2^31 is what Kafka calls it
 *
 * 2^48 records of one producer in one partition take 8 years at a million a second.
 */
import { TWO_32 } from '../primitives/u64.ts'

/** Kafka's sequences go from 0 to one below. */
export const SEQUENCE_END = 2 ** 31
const HIGH_BASE = -(2 ** 31)
/** What an epoch is worth in the high half. */
const EPOCH_UNIT = 2 ** 16

/** The halves (high i32, low u32) of the sequence of an unwrapped one. */
export function sequenceHigh(epoch: number, unwrapped: number): number {
  return HIGH_BASE + epoch * EPOCH_UNIT + Math.floor(unwrapped / TWO_32)
}

export function sequenceLow(unwrapped: number): number {
  return unwrapped % TWO_32
}

/** The epoch of a sequence with that high half. */
export function epochOf(high: number): number {
  return Math.floor((high - HIGH_BASE) / EPOCH_UNIT)
}

/** The unwrapped sequence in a sequence of these halves. */
export function unwrappedOf(high: number, low: number): number {
  return ((high - HIGH_BASE) % EPOCH_UNIT) * TWO_32 + low
}

/** What Kafka calls a sequence that is below 0. */
export function kafkaSequenceOf(sequence: bigint): number {
  return Number(BigInt.asUintN(31, sequence))
}
