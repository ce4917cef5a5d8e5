/** What stands in replies of a shard: what acknowledgements carry, refusals, which chunks are lent. Layouts: wire/shard/messages. Main thread. */
import { assert } from '../base/assert.ts'
import { BrokerError, errorCodeOf, type ErrorDetails } from '../model/errors.ts'
import type { LentPart } from '../model/requests.ts'
import type { ChunkKeeper } from '../ring/lent-chunks.ts'
import { unpackMessage } from '../wire/msgpack.ts'
import { LENT_ENTRY_BYTES, REPLY_BODY_AT, REPLY_HEADER_BYTES, writtenOf } from '../wire/shard/messages.ts'

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

/** The chunks that a READ_LENT names in bytes[start, end): all are the taker's. */
export function lentPartsIn(chunks: ChunkKeeper, bytes: Buffer, start: number, end: number): LentPart[] {
  const parts: LentPart[] = []
  for (let at = start; at < end; at += LENT_ENTRY_BYTES) {
    const chunk = bytes.readUInt32BE(at)
    const length = bytes.readUInt32BE(at + 4)
    assert(at + LENT_ENTRY_BYTES <= end && length <= chunks.view(chunk).length, 'a part of an answer lies in its chunk')
    parts.push({ bytes: chunks.view(chunk), length, giveBack: () => chunks.giveBack(chunk) })
  }
  return parts
}
