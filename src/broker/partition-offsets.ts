/** Asks the shards for the offsets of a topic's partitions. Main thread. */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import { handleOf } from '../model/handles.ts'
import { shardOf } from '../model/ids.ts'
import type { PartitionOffsets, Topic } from '../model/topic.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { readI64, readU64 } from '../wire/primitives/u64.ts'
import { ALL_PARTITIONS, OFFSETS_ENTRY_BYTES, REPLY_HEADER_BYTES, replyTypes } from '../wire/shard/messages.ts'

/**
 * @param partition null: all of them.
 * @param timestampMs a safe integer; null: only where they begin and end.
 * @returns one entry a partition, in order. Rejects if one of their owners is down, or its disk refuses a read.
 */
export async function partitionOffsets(
  shards: ShardSet,
  topic: Topic,
  partition: number | null,
  timestampMs: number | null
): Promise<PartitionOffsets[]> {
  const wanted = partition === null ? Array.from({ length: topic.partitionCount }, (_, id) => id) : [partition]
  const owners = new Set(wanted.map(id => shardOf(handleOf(topic, id), shards.shardCount)))
  // A partition without a log on its shard never had a record.
  const entries = new Map<number, PartitionOffsets>()
  for (const id of wanted) entries.set(id, { partition: id, earliest: 0, latest: 0, found: null })
  const question = { firstHandle: topic.firstHandle, partition: partition ?? ALL_PARTITIONS, timestampMs }
  await Promise.all([...owners].map(shard => askShard(shards, shard, question, entries))).catch((error: unknown) => {
    // A shard knows handles, not names.
    const isGone = error instanceof BrokerError && error.code === 'TOPIC_NOT_FOUND'
    throw isGone ? new BrokerError('TOPIC_NOT_FOUND', { topic: topic.name }) : error
  })
  return [...entries.values()]
}

function askShard(
  shards: ShardSet,
  shard: number,
  question: { firstHandle: number; partition: number; timestampMs: number | null },
  entries: Map<number, PartitionOffsets>
): Promise<void> {
  return new Promise((resolve, reject) => {
    const request: PendingRequest = {
      endPosition: -1,
      onReply: (type, bytes, start, end, isLast) => {
        assert(type === replyTypes.offsets, 'a question for offsets is answered by entries')
        for (let at = start + REPLY_HEADER_BYTES; at < end; at += OFFSETS_ENTRY_BYTES) {
          const entry = entryAt(bytes, at)
          // The topic may have grown since it was asked about.
          if (entries.has(entry.partition)) entries.set(entry.partition, entry)
        }
        if (isLast) resolve()
      },
      onFailure: reject
    }
    const send = (): void => {
      // Looked up at each attempt: a shard that died while this waited has another link, or none.
      const link = shards.link(shard)
      if (link === null) reject(shards.refusal(shard))
      else if (link.sendOffsets(question, request)) shards.publishSoon()
      else shards.whenRoom(send)
    }
    send()
  })
}

function entryAt(bytes: Buffer, at: number): PartitionOffsets {
  const isFound = bytes.readUInt32BE(at + 4) !== 0
  return {
    partition: bytes.readUInt32BE(at),
    earliest: readU64(bytes, at + 8),
    latest: readU64(bytes, at + 16),
    found: isFound ? { offset: readU64(bytes, at + 24), timestampMs: readI64(bytes, at + 32) } : null
  }
}
