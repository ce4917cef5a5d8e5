/**
 * What the words of an ES01 error frame say to a program: the protocol has no other place for it. Pure, any thread.
 * This is the only file that reads them; a test holds it against src/model/errors.ts, whose texts they are. Names of
 * topics and producers in them have no quotes and no blanks, so nobody's name is taken for words of the broker.
 */
import { partitioners, type Partitioner } from '../../model/topic.ts'

const RATE_LIMITED = /^rate limited: .*?retry in (\d+(?:\.\d+)?)s/
const DAMAGED = /^unavailable: offsets \d+ to \d+ of partition \d+ are damaged/
const PARTITION_RANGE =
  /^bad request: partition \d+ is out of range: topic '[^']*' has (\d+) partition\(s\), numbered from 0(?:, with keys by (\w+))?/
const SEQUENCE_FAULT =
  /^bad request: sequence (gap|too low) of producer id '[^']*' in partition \d+: expected (\d+), got \d+/
const TOPIC_NOT_FOUND = /^not found: no topic named '/

/** Whether the same request may be taken later: a quota, a limit that is reached, a shard that starts, a full disk. */
export function mayPass(message: string): boolean {
  return RATE_LIMITED.test(message) || (message.startsWith('unavailable: ') && !DAMAGED.test(message))
}

/** How long the broker says to wait; null if it does not say. */
export function retryAfterMsOf(message: string): number | null {
  const seconds = RATE_LIMITED.exec(message)?.[1]
  return seconds === undefined ? null : Math.ceil(Number(seconds) * 1000)
}

/** How a topic spreads its records. */
export interface Spread {
  readonly partitionCount: number
  /** Of its keys; null: one that is not known here. */
  readonly partitioner: Partitioner | null
}

/** How the topic spreads its records, of a refusal because a partition is not among its own; else null. */
export function spreadOf(message: string): Spread | null {
  const [, count, partitioner] = PARTITION_RANGE.exec(message) ?? []
  if (count === undefined) return null
  // Brokers that know but one do not name it.
  const name = partitioner ?? 'fnv1a'
  return { partitionCount: Number(count), partitioner: partitioners.find(known => known === name) ?? null }
}

/** A sequence that the broker did not take, and the one it waits for. */
export interface SequenceFault {
  readonly kind: 'gap' | 'too low'
  readonly expected: bigint
}

/** Of a refusal because of a sequence; else null. */
export function sequenceFaultOf(message: string): SequenceFault | null {
  const [, kind, expected] = SEQUENCE_FAULT.exec(message) ?? []
  if (kind === undefined || expected === undefined) return null
  return { kind: kind === 'gap' ? 'gap' : 'too low', expected: BigInt(expected) }
}

/** Whether there is no such topic. */
export function isTopicMissing(message: string): boolean {
  return TOPIC_NOT_FOUND.test(message)
}
