/**
 * The sequence numbers of `produce --producer-id`: read from the options, counted up per record. Pure.
 */
import { limits } from '../model/limits.ts'
import type { Whole } from '../client/http/http-client.ts'
import { textOf, wholeOf, type OptionTexts } from './common-options.ts'
import { UsageError } from './io.ts'

/** Who produces, and the sequence of its first record. */
export interface Numbering {
  readonly producerId: string
  readonly first: bigint
}

/**
 * Records of one request: as many as a broker remembers of a producer in a partition, so that a request which got no
 * answer can always be sent again. Of a longer one the oldest would be refused as too low.
 */
export const NUMBERED_RECORDS_MAX = limits.producerWindow

const sequenceRange = { min: 0n, max: 2n ** 63n - 1n }

/** @returns null if the records are not numbered. @throws UsageError */
export function numberingOf(options: OptionTexts): Numbering | null {
  const producerId = textOf(options['producerId'])
  const first = wholeOf(options['sequence'], '--sequence', sequenceRange)
  if (producerId === null && first === null) return null
  if (producerId === null) throw new UsageError('--sequence means nothing without --producer-id')
  if (producerId === '') throw new UsageError('--producer-id must not be empty')
  if (first === null) throw new UsageError('--producer-id needs --sequence, the number of its first record')
  return { producerId, first: BigInt(first) }
}

/** The sequence of the record behind `count` others. A number where it is exact, else a bigint. */
export function sequenceAt({ first }: Numbering, count: number): Whole {
  const sequence = first + BigInt(count)
  return sequence > BigInt(Number.MAX_SAFE_INTEGER) ? sequence : Number(sequence)
}
