/** Asks the shards what every producer has. Main thread. */
import { assert } from '../base/assert.ts'
import { BrokerError } from '../model/errors.ts'
import type { PendingRequest } from '../shards/pending.ts'
import type { ShardSet } from '../shards/shard-set.ts'
import { readU64 } from '../wire/primitives/u64.ts'
import { PRODUCER_ENTRY_BYTES, REPLY_HEADER_BYTES, replyTypes } from '../wire/shard/messages.ts'
import type { EnginePosition } from './engine.ts'

/** @returns isWhole false if a shard was down; what it has is missing then. */
export async function listProducers(shards: ShardSet): Promise<{ positions: EnginePosition[]; isWhole: boolean }> {
  const positions: EnginePosition[] = []
  const asked = Array.from({ length: shards.shardCount }, (_, shard) => listOn(shards, shard, positions))
  const answered = await Promise.allSettled(asked)
  for (const result of answered)
    if (result.status === 'rejected' && !(result.reason instanceof BrokerError)) throw result.reason
  return { positions, isWhole: answered.every(result => result.status === 'fulfilled') }
}

function listOn(shards: ShardSet, shard: number, positions: EnginePosition[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const request: PendingRequest = {
      endPosition: -1,
      onReply: (type, bytes, start, end, isLast) => {
        assert(type === replyTypes.producers, 'a question for producers is answered by entries')
        for (let at = start + REPLY_HEADER_BYTES; at < end; at += PRODUCER_ENTRY_BYTES)
          positions.push(positionAt(bytes, at))
        if (isLast) resolve()
      },
      onFailure: reject
    }
    const send = (): void => {
      // Looked up at each attempt: a shard that died while this waited has another link, or none.
      const link = shards.link(shard)
      if (link === null) reject(shards.refusal(shard))
      else if (link.ask({ type: 'producers', numbers: [] }, request)) shards.publishSoon()
      else shards.whenRoom(send)
    }
    send()
  })
}

function positionAt(bytes: Buffer, at: number): EnginePosition {
  return {
    handle: bytes.readUInt32BE(at),
    producer: readU64(bytes, at + 8),
    lastSequence: bytes.readBigInt64BE(at + 16),
    lastOffset: readU64(bytes, at + 24)
  }
}
