/**
 * Where a read or a stream begins: an offset, the first or the last record, or a time. Main thread.
 * Only what depends on the log is asked of it, and then everything that the log's owner checks has been checked.
 */
import { BrokerError } from '../../../model/errors.ts'
import type { Principal } from '../../../model/principal.ts'
import type { Broker, ReadRequest } from '../../../model/requests.ts'
import type { PartitionOffsets } from '../../../model/topic.ts'
import { U32_MAX, U64_MAX } from '../form.ts'
import { readTime, readU64 } from '../query.ts'

/** The parameters that say it. */
export const startNames = ['offset', 'timestamp_ms'] as const

/** latest: behind what is there now. time: the first record at or after it, behind what is there now if none is so late. */
export type Start =
  | { readonly kind: 'offset'; readonly offset: bigint }
  | { readonly kind: 'earliest' }
  | { readonly kind: 'latest' }
  | { readonly kind: 'time'; readonly timestampMs: bigint }

/** Where to begin in one partition. */
export interface PartitionStart {
  readonly partition: number
  readonly offset: bigint
}

/** null: neither parameter is there. @throws BrokerError FIELD_INVALID, FIELD_RANGE */
export function readStart(parameters: ReadonlyMap<string, string>): Start | null {
  const timestampMs = readTime(parameters, 'timestamp_ms')
  const text = parameters.get('offset')
  if (text === undefined) return timestampMs === null ? null : { kind: 'time', timestampMs }
  if (timestampMs !== null) {
    throw new BrokerError('FIELD_INVALID', { field: 'timestamp_ms', problem: 'must not come with offset' })
  }
  if (text === 'earliest' || text === 'latest') return { kind: text }
  if (!/^\d/.test(text)) {
    const problem = `must be earliest, latest, or a whole number from 0 to ${U64_MAX}`
    throw new BrokerError('FIELD_INVALID', { field: 'offset', problem })
  }
  return { kind: 'offset', offset: readU64(parameters, 'offset') ?? 0n }
}

/**
 * Asks the log where that is now, by partition and in order.
 * @param place partition null: all of the topic; an offset by number is of one partition.
 * @fails FORBIDDEN, TOPIC_NOT_FOUND, PARTITION_RANGE, OVERLOADED, SHARD_DOWN, SHARD_DIED, READ_FAILED, COLD_UNAVAILABLE
 */
export async function findStart(
  broker: Pick<Broker, 'offsetsAt'>,
  who: Principal,
  place: { readonly topic: string; readonly partition: number | null },
  start: Exclude<Start, { kind: 'offset' }>
): Promise<PartitionStart[]> {
  const timestampMs = start.kind === 'time' ? start.timestampMs : null
  const entries = await broker.offsetsAt(who, place.topic, place.partition, timestampMs)
  return entries.map(entry => ({ partition: entry.partition, offset: BigInt(offsetOf(start, entry)) }))
}

function offsetOf(start: Exclude<Start, { kind: 'offset' }>, { earliest, latest, found }: PartitionOffsets): number {
  if (start.kind === 'earliest') return earliest
  return start.kind === 'latest' ? latest : (found?.offset ?? latest)
}

/** An offset, a u64, as a read has it. */
export function halvesOf(offset: bigint): Pick<ReadRequest, 'offsetHigh' | 'offsetLow'> {
  return { offsetHigh: Number(offset >> 32n), offsetLow: Number(offset & U32_MAX) }
}
