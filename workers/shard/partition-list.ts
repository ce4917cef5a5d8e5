/**
 * The answer to PARTITIONS: where partitions begin and end, and what they take, some of them at a time. Shard thread only.
 * Main asks for the next ones when it has these, so that a scrape of very many partitions keeps no produce waiting.
 */
import type { LogTable } from '../../src/log/log-table.ts'
import type { PartitionLog } from '../../src/log/partition-log.ts'
import { endOf } from '../../src/model/handles.ts'
import { limits } from '../../src/model/limits.ts'
import { write64 } from '../../src/wire/primitives/u64.ts'
import {
  NO_HANDLE,
  PARTITIONS_ENTRY_BYTES,
  REPLY_BODY_AT,
  REPLY_LAST,
  replyTypes
} from '../../src/wire/shard/messages.ts'
import type { ReplyWriter } from './reply-writer.ts'

/** Partitions without records, and those of other shards, that one answer passes over: a microsecond for some hundred. */
const LOOKED_MAX = 50_000

/** @param from handle from which on. @cost about half a microsecond for each partition that is told. */
export function sendPartitions(table: LogTable, replies: ReplyWriter, requestId: number, from: number): void {
  const logs: PartitionLog[] = []
  const next = gather(table, from, logs)
  replies.begin(replyTypes.partitions, REPLY_LAST, requestId, REPLY_BODY_AT + logs.length * PARTITIONS_ENTRY_BYTES)
  const { target } = replies
  target.writeUInt32BE(next, replies.at + REPLY_BODY_AT - 4)
  let at = replies.at + REPLY_BODY_AT
  for (const log of logs) {
    writeEntry(target, at, log)
    at += PARTITIONS_ENTRY_BYTES
  }
}

/** @returns the handle to go on from; NO_HANDLE: there are no more. */
function gather(table: LogTable, from: number, logs: PartitionLog[]): number {
  let handle = from
  let left = LOOKED_MAX
  for (;;) {
    const range = table.rangeFrom(handle)
    if (range === undefined) return NO_HANDLE
    const { topic, firstHandle, firstPartition } = range
    for (handle = Math.max(handle, firstHandle); handle < endOf(range); handle++) {
      if (logs.length === limits.partitionsPerAnswer || left-- === 0) return handle
      const log = topic.logs[firstPartition + handle - firstHandle]
      if (log !== undefined) logs.push(log)
    }
  }
}

function writeEntry(target: Buffer, at: number, log: PartitionLog): void {
  target.writeUInt32BE(log.handle, at)
  target.writeUInt32BE(log.segmentCount, at + 4)
  write64(target, at + 8, log.startOffset)
  write64(target, at + 16, log.highWatermark)
  write64(target, at + 24, log.sizeBytes)
  write64(target, at + 32, log.retired?.segments ?? 0)
  write64(target, at + 40, log.retired?.bytes ?? 0)
}
