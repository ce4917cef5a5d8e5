/** Records of the caller: checked before anything is done with them. Pure, any thread. */
import type { ProduceRecord } from '../../wire/es01/produce-frame.ts'
import { RECORD_FIXED_BYTES } from '../../wire/produce/ring-layout.ts'
import { invalidError } from './client-error.ts'

/** Key and value of one record: the highest that --max-record-bytes can be set to. */
const RECORD_BYTES_MAX = 32 * 1024 * 1024
/** A partition that no topic has: what the broker says of it is how many there are. */
export const NO_SUCH_PARTITION = 2 ** 31 - 1

function isBytes(field: unknown): field is Uint8Array | string {
  return typeof field === 'string' || field instanceof Uint8Array
}

function bytesOf(field: Uint8Array | string): number {
  return typeof field === 'string' ? Buffer.byteLength(field, 'utf8') : field.length
}

/** @returns bytes of key and value, and what a frame adds to them. @throws ClientError of kind invalid */
export function checkedBytesOf({ key = null, value, partition = 0, sequence = 0n }: ProduceRecord): number {
  if (!isBytes(value)) throw invalidError('value must be a string or bytes')
  if (key !== null && !isBytes(key)) throw invalidError('key must be a string, bytes, or null')
  if (!Number.isInteger(partition) || partition < 0 || partition >= NO_SUCH_PARTITION) {
    throw invalidError(`partition is ${partition}: partitions are numbered from 0`)
  }
  if (typeof sequence !== 'bigint' || sequence < 0n || sequence >= 2n ** 63n) {
    throw invalidError(`sequence is ${sequence}: it is a bigint from 0 to 2^63 − 1`)
  }
  const payload = bytesOf(key ?? '') + bytesOf(value)
  if (payload > RECORD_BYTES_MAX) throw invalidError(`the record has ${payload} bytes: over ${RECORD_BYTES_MAX}`)
  return payload + RECORD_FIXED_BYTES
}

/** @throws ClientError of kind invalid: such a topic cannot be */
export function checkTopic(topic: string): void {
  if (typeof topic !== 'string' || topic === '' || topic.length > 1024) {
    throw invalidError('topic must be a name of 1 to 200 characters')
  }
}

/** Bytes of the key, for its hash. */
export function keyBytesOf(key: Uint8Array | string): Uint8Array {
  return typeof key === 'string' ? Buffer.from(key, 'utf8') : key
}
