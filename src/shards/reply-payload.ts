/** What stands in replies of a shard that answer control messages or refuse requests. Layouts: wire/shard/messages. Main thread. */
import { BrokerError, errorCodeOf, type ErrorDetails } from '../model/errors.ts'
import { unpackMessage } from '../wire/msgpack.ts'
import { REPLY_BODY_AT, REPLY_HEADER_BYTES, writtenOf } from '../wire/shard/messages.ts'

/** What an acknowledgement carries; undefined: nothing. */
export function payloadOf(bytes: Buffer, start: number, end: number): unknown {
  const at = start + REPLY_HEADER_BYTES
  return end > at ? unpackMessage(bytes, at, end) : undefined
}

/** The refusal in a FAILED. */
export function failureOf(bytes: Buffer, start: number, end: number): BrokerError {
  const details = unpackMessage(bytes, start + REPLY_BODY_AT, end) as ErrorDetails
  return new BrokerError(errorCodeOf(bytes.readUInt16BE(start + 8)), details, {
    written: writtenOf(bytes[start + 10] as number)
  })
}
