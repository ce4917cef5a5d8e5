/**
 * What to do after each attempt to deliver a batch of an idempotent producer: pure decisions, any thread.
 *
 * The broker knows the last 128 sequences of a producer in a partition, and takes any sequence of one that it does not
 * know. So the first batch of a producer has at most 128 records and is simply sent again; of a longer one in doubt only
 * the last 128 are sent, the "tail", which tells what became of the whole, because a request is written whole or not:
 *
 *   | the tail is answered by            | then the batch                        | so                             |
 *   |------------------------------------|---------------------------------------|--------------------------------|
 *   | duplicates, one behind the other   | was written, in one piece             | offsets count back from the last |
 *   | gap, expected the batch's first    | was not written                       | send it whole                  |
 *   | gap, expected less                 | was not; the broker lost what it said | a new producer id, send it whole |
 *   | records that are new to it         | is gone with all the broker knew      | those are written, the rest unknown |
 *
 * "Too low" for a whole batch in doubt: an earlier copy came through meanwhile, so the tail is asked. Whatever is not in
 * the tables ends as unknown: nothing is guessed. A gap that the broker found stays one, as nobody else has the id: a late
 * copy of that batch, still in the buffers of a lost connection, is refused too.
 */
import { limits } from '../../model/limits.ts'
import type { Written } from '../../model/errors.ts'
import type { ProduceResult } from '../../wire/es01/produce-frame.ts'
import type { ClientError } from './client-error.ts'
import { partitionCountOf, sequenceFaultOf } from './refusals.ts'

/** A batch on its way. */
export interface Delivery {
  /** Sequence of its first record. */
  readonly first: bigint
  readonly count: number
  /** Every offset of this producer in the partition so far is below. */
  readonly offsetMin: number
  /** A copy of it may have reached the broker: what fails from here on is not known to be unwritten. */
  mayBeWritten: boolean
  /** Whether a copy was written is to be found out before it is sent whole again. */
  isInDoubt: boolean
}

/** How many of its last records the next attempt sends. */
export function attemptCount({ count, isInDoubt }: Delivery): number {
  return isInDoubt ? Math.min(count, limits.producerWindow) : count
}

/**
 * done: where each record lies. partly: only the last ones are known, the rest rejects. again: send the same batch.
 * renew: begin a new producer id and send it under that. smaller: less at once. reroute: the topic has so many partitions.
 */
export type Step =
  | { readonly kind: 'done'; readonly results: readonly ProduceResult[] }
  | { readonly kind: 'partly'; readonly last: readonly ProduceResult[] }
  | { readonly kind: 'again'; readonly waitMs: number | null }
  | { readonly kind: 'renew' }
  | { readonly kind: 'smaller'; readonly waitMs: number | null }
  | { readonly kind: 'reroute'; readonly partitionCount: number }
  | { readonly kind: 'reject'; readonly written: Written }

/** After an answer to the last `results.length` records. */
export function stepAfterAnswer(delivery: Delivery, results: readonly ProduceResult[]): Step {
  const { count, offsetMin } = delivery
  if (results.length === count) return { kind: 'done', results }
  const last = results.at(-1)
  const isWhole = results.every(
    (result, i) => result.duplicate && last !== undefined && result.offset === last.offset - (results.length - 1 - i)
  )
  if (!isWhole || last === undefined || last.offset - (count - 1) < offsetMin) return { kind: 'partly', last: results }
  const { partition, offset } = last
  const whole = Array.from({ length: count }, (_, i) => ({
    partition,
    offset: offset - (count - 1 - i),
    duplicate: true
  }))
  return { kind: 'done', results: whole }
}

/** After a failure. Notes in the delivery what it says. */
export function stepAfterFailure(delivery: Delivery, failure: ClientError): Step {
  const { kind, written, message } = failure
  if (kind !== 'refused' || written === 'unknown') {
    if (written === 'unknown') delivery.mayBeWritten = delivery.isInDoubt = true
    // An answer that cannot be read leaves in doubt what it was about; a peer of another protocol leaves nothing so.
    const isForeign = kind === 'protocol' && written === 'no'
    const isOver = kind === 'closed' || kind === 'untrusted' || kind === 'invalid' || isForeign
    return isOver ? rejection(delivery) : { kind: 'again', waitMs: null }
  }
  const fault = sequenceFaultOf(message)
  if (fault !== null) return stepAfterFault(delivery, fault.kind, fault.expected)
  const partitionCount = partitionCountOf(message)
  if (partitionCount !== null && !delivery.mayBeWritten) return { kind: 'reroute', partitionCount }
  if (!failure.retryable) return rejection(delivery)
  // A quota may be less than the batch: then it never passes, and its text does not tell.
  const isTooMuch = failure.retryAfterMs !== null && delivery.count > 1 && !delivery.mayBeWritten
  return { kind: isTooMuch ? 'smaller' : 'again', waitMs: failure.retryAfterMs }
}

function stepAfterFault(delivery: Delivery, kind: 'gap' | 'too low', expected: bigint): Step {
  if (kind === 'gap' && expected < delivery.first) return { kind: 'renew' }
  if (kind === 'gap' && expected === delivery.first && delivery.isInDoubt) {
    delivery.isInDoubt = false
    return { kind: 'again', waitMs: null }
  }
  if (kind === 'too low' && delivery.mayBeWritten && !delivery.isInDoubt) {
    delivery.isInDoubt = true
    return { kind: 'again', waitMs: null }
  }
  return rejection(delivery)
}

/** The batch is given up. */
function rejection({ mayBeWritten }: Delivery): Step {
  return { kind: 'reject', written: mayBeWritten ? 'unknown' : 'no' }
}
