/**
 * What the header of a batch that a client sent must say before the batch is stored as it is. Pure, any thread, no copy.
 *
 * The records are not looked at, and the checksum is not computed: the shard does that, off the main thread. So readers must
 * bear anything behind the header.
 */
import type { ErrorCode, ErrorDetails } from '../../model/errors.ts'
import { limits } from '../../model/limits.ts'
import {
  ATTRIBUTES_AT,
  BATCH_HEADER_BYTES,
  CODEC_MASK,
  CODECS,
  CONTROL_BIT,
  LOG_APPEND_TIME_BIT,
  RECORD_BYTES_MIN,
  TRANSACTIONAL_BIT
} from './layout.ts'
import { BatchView, batchStatus, isWhole, type BatchStatus } from './view.ts'

/** Why a batch is refused. */
export interface ClientBatchFault {
  readonly code: Extract<ErrorCode, 'BATCH_CORRUPT' | 'BATCH_INVALID' | 'BATCH_TIMESTAMP' | 'BATCH_CODEC'>
  readonly details: ErrorDetails
}

/**
 * Checks the header of the one batch that bytes[start, end) must be, and sets the fields of `view`.
 *
 * @returns null: all that the header can tell is in order, and producerId is −1 or, with an epoch and a sequence, from 0.
 */
export function clientBatchFault(
  view: BatchView,
  bytes: Uint8Array,
  start: number,
  end: number
): ClientBatchFault | null {
  if (end === start) return invalid('there is none')
  if (end - start < BATCH_HEADER_BYTES) return corrupt(`${end - start} bytes are less than a header`)
  const status = view.open(bytes, start, end)
  if (status === batchStatus.numberRange) return { code: 'BATCH_TIMESTAMP', details: { problem: outOfRange } }
  if (!isWhole(status)) return frameFault(status)
  if (view.end !== end) return invalid(`it is not alone: ${end - view.end} bytes stand behind it`)
  const codec = codecOf(bytes, start)
  if (codec >= CODECS) return { code: 'BATCH_CODEC', details: { codec } }
  if ((view.attributes & (TRANSACTIONAL_BIT | CONTROL_BIT)) !== 0)
    return invalid('it is part of a transaction, and there are none here')
  if ((view.attributes & LOG_APPEND_TIME_BIT) !== 0)
    return { code: 'BATCH_TIMESTAMP', details: { problem: 'says that the broker has set its times' } }
  return countFault(view, codec) ?? producerFault(view)
}

/** The codec of the batch at bytes[start…], which must have its header; 0: none. */
export function codecOf(bytes: Uint8Array, start: number): number {
  return (bytes[start + ATTRIBUTES_AT + 1] as number) & CODEC_MASK
}

const outOfRange = 'has a timestamp beyond ±(2^53 − 1) ms'

function corrupt(problem: string): ClientBatchFault {
  return { code: 'BATCH_CORRUPT', details: { problem } }
}

function invalid(problem: string): ClientBatchFault {
  return { code: 'BATCH_INVALID', details: { problem } }
}

function frameFault(status: BatchStatus): ClientBatchFault {
  if (status === batchStatus.badMagic) return invalid('it is not of version 2')
  if (status === batchStatus.badHeader)
    return invalid('its base offset, its count or its last offset delta is out of range')
  return corrupt(`its length is ${status === batchStatus.badLength ? 'below that of a header' : 'beyond its data'}`)
}

/** A count that the bytes cannot bear would use up offsets. */
function countFault(view: BatchView, codec: number): ClientBatchFault | null {
  const { recordCount, lastOffsetDelta } = view
  if (recordCount !== lastOffsetDelta + 1) return invalid(`${recordCount} records take ${lastOffsetDelta + 1} offsets`)
  const room = codec === 0 ? view.end - view.recordsStart : limits.inflatedBatchBytesMax
  return recordCount * RECORD_BYTES_MIN <= room ? null : invalid(`${recordCount} records do not fit into it`)
}

function producerFault({ producerId, producerEpoch, baseSequence }: BatchView): ClientBatchFault | null {
  if (producerId === -1) return null
  // NaN, too: no id that was given out here is beyond exact numbers.
  if (!(producerId >= 0)) return invalid('its producer id is out of range')
  return producerEpoch >= 0 && baseSequence >= 0 ? null : invalid('it has a producer id, and no epoch or sequence')
}
