/**
 * What to do after each attempt to deliver a batch of an idempotent producer: pure decisions, any thread.
 *
 * The broker knows the last 128 sequences of a producer in a partition, and takes any sequence of one that it does not
 * know. So the first batch of a producer has at most 128 records and is simply sent again. Of a longer one in doubt only a
 * "tail" is sent, its last records, which tells what became of the whole, because a request is written whole or not.
 *
 * A broker that has forgotten the producer takes a tail for its first records. If that answer is lost too, the records of
 * this tail are known to the broker whatever became of the batch. So each tail is longer than those that were lost: its
 * first record was in no other request but the whole batch. It begins with one record and doubles.
 *
 *   | state                  | left the client without an answer            | is sent                             |
 *   |------------------------|----------------------------------------------|-------------------------------------|
 *   | certain                | nothing: `mayBeWritten` is false             | all                                 |
 *   | in doubt               | all; perhaps tails of up to `tailCount`      | up to 128 records: all; else a tail |
 *   | cleared: the broker    | the same; what of it is on its way is        | all                                 |
 *   | waited for the first   | refused, unless the producer is forgotten    |                                     |
 *
 *   | answer                             | certain     | in doubt: all of it     | in doubt: a tail              | cleared     |
 *   |------------------------------------|-------------|-------------------------|-------------------------------|-------------|
 *   | records, new or duplicates         | done        | done                    | see below                     | done        |
 *   | none                               | in doubt    | in doubt                | in doubt, its length noted    | in doubt    |
 *   | gap, expected the batch's first    | (cannot be) | (cannot be)             | cleared, again                | (cannot be) |
 *   | gap, expected less: the broker     | renew       | renew                   | renew                         | renew       |
 *   | lost what it said was written      |             |                         |                               |             |
 *   | gap, expected more                 | (cannot be) | (cannot be)             | unknown                       | (cannot be) |
 *   | too low                            | no          | unknown                 | unknown: a shorter one was    | in doubt    |
 *   |                                    |             |                         | new to the broker             |             |
 *   | no such partition                  | reroute     | unknown                 | unknown                       | unknown     |
 *   | any other refusal for good         | no          | unknown                 | unknown                       | unknown     |
 *
 *   | the tail is answered by            | then the batch                          | so                                |
 *   |------------------------------------|-----------------------------------------|-----------------------------------|
 *   | duplicates one behind the other,   | was written, in one piece               | done: offsets count back from the |
 *   | and is longer than any lost tail   |                                         | last                              |
 *   | duplicates, but 128 were lost once | was written, or a tail alone            | partly: the rest is unknown       |
 *   | records that are new to it         | is gone with all the broker knew        | partly: the rest is unknown       |
 *
 * What is renewed begins as certain under its new id; the records themselves remember that a copy may be written. Whatever
 * is not in the tables ends as unknown: nothing is guessed. The one thing that the tables cannot exclude is a record that
 * is written twice, if the broker forgets a producer while an unanswered copy is in the log or on its way.
 */
import { limits } from '../../model/limits.ts'
import type { Written } from '../../model/errors.ts'
import type { ProduceResult } from '../../wire/es01/produce-frame.ts'
import type { ClientError } from './client-error.ts'
import { sequenceFaultOf, spreadOf, type Spread } from './refusals.ts'

/** A batch on its way. */
export interface Delivery {
  /** Sequence of its first record. */
  readonly first: bigint
  readonly count: number
  /** A copy of it may have reached the broker: what fails from here on is not known to be unwritten. */
  mayBeWritten: boolean
  /** Whether a copy was written is to be found out before it is sent whole again. */
  isInDoubt: boolean
  /** Length of the longest tail that was not answered: the broker may know those records without the rest. */
  tailCount: number
}

/** @returns the delivery of a batch before its first attempt. */
export function newDelivery(first: bigint, count: number): Delivery {
  return { first, count, mayBeWritten: false, isInDoubt: false, tailCount: 0 }
}

/** How many of its last records the next attempt sends. */
export function attemptCount({ count, isInDoubt, tailCount }: Delivery): number {
  if (!isInDoubt || count <= limits.producerWindow) return count
  return Math.min(limits.producerWindow, Math.max(1, 2 * tailCount))
}

/**
 * done: where each record lies. partly: only the last ones are known, the rest rejects. again: send the same batch.
 * renew: begin a new producer id and send it under that. smaller: less at once. reroute: the topic has other partitions.
 */
export type Step =
  | { readonly kind: 'done'; readonly results: readonly ProduceResult[] }
  | { readonly kind: 'partly'; readonly last: readonly ProduceResult[] }
  | { readonly kind: 'again'; readonly waitMs: number | null }
  | { readonly kind: 'renew' }
  | { readonly kind: 'smaller'; readonly waitMs: number | null }
  | { readonly kind: 'reroute'; readonly spread: Spread }
  | { readonly kind: 'reject'; readonly written: Written }

/** After an answer to the last `results.length` records. */
export function stepAfterAnswer(delivery: Delivery, results: readonly ProduceResult[]): Step {
  const { count, tailCount } = delivery
  if (results.length === count) return { kind: 'done', results }
  const last = results.at(-1)
  if (last === undefined) return { kind: 'partly', last: results }
  const isRun = results.every(({ duplicate, offset }, i) => {
    return duplicate && offset === last.offset - (results.length - 1 - i)
  })
  const firstOffset = last.offset - (count - 1)
  if (!isRun || results.length <= tailCount) return { kind: 'partly', last: results }
  const { partition } = last
  const whole = Array.from({ length: count }, (_, i) => ({ partition, offset: firstOffset + i, duplicate: true }))
  return { kind: 'done', results: whole }
}

/** After a failure. Notes in the delivery what it says. */
export function stepAfterFailure(delivery: Delivery, failure: ClientError): Step {
  const { kind, written, message } = failure
  if (kind !== 'refused' || written !== 'no') {
    if (written !== 'no') noteLoss(delivery)
    // An answer that cannot be read leaves in doubt what it was about; a peer of another protocol leaves nothing so.
    const isForeign = kind === 'protocol' && written === 'no'
    const isOver = kind === 'closed' || kind === 'untrusted' || kind === 'invalid' || isForeign
    return isOver ? rejection(delivery) : { kind: 'again', waitMs: null }
  }
  const fault = sequenceFaultOf(message)
  if (fault !== null) return stepAfterFault(delivery, fault.kind, fault.expected)
  const spread = spreadOf(message)
  if (spread !== null && !delivery.mayBeWritten) return { kind: 'reroute', spread }
  if (!failure.retryable) return rejection(delivery)
  // A quota may be less than the batch: then it never passes, and its text does not tell.
  const isTooMuch = failure.retryAfterMs !== null && delivery.count > 1 && !delivery.mayBeWritten
  return { kind: isTooMuch ? 'smaller' : 'again', waitMs: failure.retryAfterMs }
}

/** What was sent last may be written, and no answer says where. */
function noteLoss(delivery: Delivery): void {
  const sentCount = attemptCount(delivery)
  if (sentCount < delivery.count) delivery.tailCount = sentCount
  delivery.mayBeWritten = delivery.isInDoubt = true
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
