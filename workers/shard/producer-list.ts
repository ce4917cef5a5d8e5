/**
 * The answer to PRODUCERS: every producer of every open partition of this shard, as far as it is durable. Shard thread
 * only. Made at once; an operator asks for it, and it is smaller than the state it tells of.
 */
import type { LogTable } from '../../src/log/log-table.ts'
import { limits } from '../../src/model/limits.ts'
import { write64 } from '../../src/wire/primitives/u64.ts'
import { PRODUCER_ENTRY_BYTES, REPLY_HEADER_BYTES, REPLY_LAST, replyTypes } from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'

const ENTRIES_PER_FRAME = Math.floor(limits.replyChunkBytes / PRODUCER_ENTRY_BYTES)

export function sendProducers(table: LogTable, replies: ReplyWriter, requestId: number): void {
  const part = Buffer.alloc(ENTRIES_PER_FRAME * PRODUCER_ENTRY_BYTES)
  let used = 0
  const send = (flags: number): void => {
    replies.begin(replyTypes.producers, flags, requestId, REPLY_HEADER_BYTES + used)
    part.copy(replies.target, replies.at + REPLY_HEADER_BYTES, 0, used)
    used = 0
  }
  for (const log of table.openLogs()) {
    for (const [number, sequences] of log.producers.entries()) {
      const durable = sequences.durableNext(log.highWatermark)
      if (durable === 0) continue
      if (used === part.length) send(0)
      part.writeUInt32BE(log.handle, used)
      write64(part, used + 8, number)
      part.writeBigInt64BE(sequences.sequenceAt(durable - 1), used + 16)
      write64(part, used + 24, sequences.offsetOf(durable - 1))
      used += PRODUCER_ENTRY_BYTES
    }
  }
  send(REPLY_LAST)
}
