/**
 * What the members of a classic group of consumers tell each other through JoinGroup and SyncGroup: which topics one wants,
 * and which partitions one gets. Kafka's "consumer" protocol: i16 version, then a body that is never flexible.
 * The broker stores these bytes for its clients; it reads them only to describe groups. Pure, any thread.
 *
 * A newer version has more at its end only, so it is read as the newest that is known.
 */
import { Message } from './message.ts'
import { arrayOf, bytes, int32, string, structsOf, type FieldTable, type ReadOf, type WriteOf } from './schema.ts'
import { WireReader } from './reader.ts'
import { WireWriter } from './writer.ts'

const versions = { first: 0, last: 3, flexibleSince: Infinity }

/** What a member brings to JoinGroup. */
export const subscription = new Message('ConsumerProtocolSubscription', versions, {
  topics: arrayOf(string()),
  userData: bytes({ nullableSince: 0, default: null }),
  ownedPartitions: structsOf({ topic: string(), partitions: arrayOf(int32()) }, { since: 1, ignorable: true }),
  generationId: int32({ since: 2, default: -1, ignorable: true }),
  rackId: string({ since: 3, nullableSince: 3, default: null, ignorable: true })
})

/** What a member gets from SyncGroup. */
export const assignment = new Message('ConsumerProtocolAssignment', versions, {
  assignedPartitions: structsOf({ topic: string(), partitions: arrayOf(int32()) }),
  userData: bytes({ nullableSince: 0, default: null })
})

/** @returns the message, or a text: malformed. @param message subscription or assignment. */
export function decodeEmbedded<F extends FieldTable>(message: Message<F>, value: Buffer): ReadOf<F> | string {
  const reader = new WireReader(value, 0, value.length)
  const version = reader.readInt16()
  if (reader.hasFailed || version < versions.first) return 'the version of the consumer protocol is missing or negative'
  return message.decode(Math.min(version, versions.last), value, reader.at)
}

/** @returns the bytes for JoinGroup or SyncGroup. */
export function encodeEmbedded<F extends FieldTable>(message: Message<F>, version: number, value: WriteOf<F>): Buffer {
  const writer = new WireWriter()
  writer.writeInt16(version)
  message.write(writer, version, value)
  return Buffer.concat(writer.finish())
}
