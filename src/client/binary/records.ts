/** Arguments of the caller: checked before anything is done with them. Pure, any thread. */
import { limits } from '../../model/limits.ts'
import { FRAME_LENGTH_MIN } from '../../wire/es01/frame.ts'
import type { ProduceRecord } from '../../wire/es01/produce-frame.ts'
import { RECORD_FIXED_BYTES } from '../../wire/produce/ring-layout.ts'
import { invalidError, invalidField } from './client-error.ts'

/** A partition that no topic has: what the broker says of it is how many there are. */
export const NO_SUCH_PARTITION = 2 ** 31 - 1
const SEQUENCE_END = 2n ** 63n
/** Bytes of a produce request beside topic, producer id and records: the head of the frame, two lengths, a count. */
const REQUEST_FIXED_BYTES = FRAME_LENGTH_MIN + 2 + 4 + 4
const REQUEST_SURPLUS_BYTES_MAX = REQUEST_FIXED_BYTES + 2 * limits.nameBytesMax

function isBytes(field: unknown): field is Uint8Array | string {
  return typeof field === 'string' || field instanceof Uint8Array
}

function bytesOf(field: Uint8Array | string): number {
  return typeof field === 'string' ? Buffer.byteLength(field, 'utf8') : field.length
}

/** @returns bytes of key and value, and what a frame adds to them. @throws ClientError of kind invalid */
export function checkedBytesOf(record: ProduceRecord): number {
  if (typeof record !== 'object' || record === null) {
    throw invalidField('record', record, 'it must be an object with a value')
  }
  const { key, value, partition, sequence } = record
  if (!isBytes(value)) throw invalidField('value', value, 'it must be a string or bytes')
  const isKeyless = key === undefined || key === null
  if (!isKeyless && !isBytes(key)) throw invalidField('key', key, 'it must be a string, bytes, or null')
  if (partition !== undefined) checkPartition(partition)
  if (sequence !== undefined && (typeof sequence !== 'bigint' || sequence < 0n || sequence >= SEQUENCE_END)) {
    throw invalidField('sequence', sequence, 'it must be a bigint from 0 to 2^63 − 1')
  }
  const payload = (isKeyless ? 0 : bytesOf(key)) + bytesOf(value)
  if (payload > limits.recordBytesMax) {
    throw invalidError(`key and value have ${payload} bytes: over the limit of ${limits.recordBytesMax} of a record`)
  }
  return payload + RECORD_FIXED_BYTES
}

/** @returns what their frame will have at most. @throws ClientError of kind invalid: no list of records that can be one request */
export function checkedListBytesOf(records: readonly ProduceRecord[]): number {
  if (!Array.isArray(records)) throw invalidField('records', records, 'it must be an array')
  if (records.length > limits.requestRecordsMax) {
    throw invalidError(`records has ${records.length}: over the limit of ${limits.requestRecordsMax} in one request`)
  }
  let bytes = 0
  for (const record of records as readonly ProduceRecord[]) bytes += checkedBytesOf(record)
  return bytes
}

/**
 * @param recordsBytes of all records, with what a frame adds to each.
 * @throws ClientError of kind invalid: the broker would end the connection, which no retry could tell from a loss
 */
export function checkRequestBytes(recordsBytes: number, topic: string, producerId: string, bytesMax: number): void {
  // The names are measured only where they could matter.
  if (recordsBytes + REQUEST_SURPLUS_BYTES_MAX <= bytesMax) return
  const bytes = REQUEST_FIXED_BYTES + recordsBytes + bytesOf(topic) + bytesOf(producerId)
  if (bytes <= bytesMax) return
  throw invalidError(`the request would have ${bytes} bytes: over the limit of ${bytesMax} (requestBytesMax)`)
}

/** @throws ClientError of kind invalid: it cannot be a name of that field */
export function checkName(field: string, name: unknown): void {
  const { nameBytesMax } = limits
  if (typeof name === 'string' && name !== '' && name.length <= nameBytesMax && bytesOf(name) <= nameBytesMax) return
  throw invalidField(field, name, `it must be a name of 1 to ${nameBytesMax} bytes`)
}

/** @param last the highest that may be asked for. @throws ClientError of kind invalid */
export function checkPartition(partition: unknown, last = NO_SUCH_PARTITION - 1): void {
  if (Number.isInteger(partition) && (partition as number) >= 0 && (partition as number) <= last) return
  throw invalidField('partition', partition, 'partitions are numbered from 0')
}

/** @throws ClientError of kind invalid */
export function checkOffset(field: string, offset: unknown): void {
  if (Number.isSafeInteger(offset) && (offset as number) >= 0) return
  throw invalidField(field, offset, 'offsets are whole numbers from 0')
}
