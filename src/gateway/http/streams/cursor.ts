/**
 * The id of an event of a topic's stream: the next offsets of all its partitions, in order, joined by commas; of a stream
 * of one partition a single number. It is all that a stream knows, so any broker goes on from it. Pure; main thread.
 */
import { BrokerError } from '../../../model/errors.ts'
import { limits } from '../../../model/limits.ts'
import { U64_DIGITS, U64_MAX } from '../form.ts'

/** Of the longest id: a comma behind each number but the last. */
const CHARACTERS_MAX = limits.streamPartitionsMax * (U64_DIGITS + 1) - 1

/** Where an id was sent: the header, or the parameter for a new EventSource, which cannot send it. */
type CursorField = 'Last-Event-ID' | 'last_event_id'

/** What an id says, and what it is called where it is refused. */
export interface Cursor {
  readonly field: CursorField
  /** At least one. */
  readonly offsets: readonly bigint[]
}

function refused(field: CursorField, problem: string): BrokerError {
  return new BrokerError('FIELD_INVALID', { field, problem })
}

/** Reads an id. How many partitions there are is not asked. @throws BrokerError FIELD_INVALID */
export function readCursor(id: string, field: CursorField): Cursor {
  if (id.length > CHARACTERS_MAX) throw refused(field, `is longer than the ${CHARACTERS_MAX} characters of any id`)
  const offsets = id.split(',').map((text, i) => {
    const value = /^\d+$/.test(text) && text.length <= U64_DIGITS ? BigInt(text) : -1n
    if (value >= 0n && value <= U64_MAX) return value
    const problem = `its number ${i + 1} is not a whole number from 0 to ${U64_MAX}: send the id of an event as it came`
    throw refused(field, problem)
  })
  return { field, offsets }
}

/**
 * Where a stream of so many partitions goes on. Partitions that the id does not have came later: they begin at 0.
 * @throws BrokerError FIELD_INVALID if it has more
 */
export function fitCursor({ field, offsets }: Cursor, partitionCount: number): bigint[] {
  if (offsets.length > partitionCount) {
    throw refused(field, `has ${offsets.length} numbers, and the stream has ${partitionCount} partition(s)`)
  }
  return Array.from({ length: partitionCount }, (_, partition) => offsets[partition] ?? 0n)
}
